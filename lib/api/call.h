// call.h: a descriptor and arguments of attention, checked against each other and brought into the form that
// lib/attention takes. Shared by everything that computes on q and k.
#ifndef ETALON_LIB_API_CALL_H_
#define ETALON_LIB_API_CALL_H_

#include "lib/api/source.h"
#include "lib/api/validate.h"
#include "lib/attention/attention.h"

namespace etalon {

enum class Function { kAttention, kScores, kBlockStates };

// Whether sizes that a descriptor leaves 0 are taken from the tensors, or are what a plan has been made for.
enum class Sizes { kFromTensors, kPlanned };

// Whether the tensors must have their memory already.
enum class Depth { kShapes, kMemory };

struct Call {
  CheckedTensor q;
  CheckedTensor out;
  CheckedTensor lse;
  CheckedTensor slopes;
  CheckedTensor sinks;
  bool ragged;  // a tensor holds all sequences, one after the other
  Queries queries;
  int64_t num_sources;
  SourceCall sources[kMostSources];
};

// Copies and checks a caller's descriptor, as far as it can be without tensors.
etalon_status ReadDesc(const etalon_attention_desc* caller, Function function, etalon_attention_desc* desc,
                       etalon_error* error);

// Reads the arguments; what `desc` leaves open is filled in if `sizes` says so. On success *desc is complete.
etalon_status ReadArgs(const etalon_attention_args* caller, Function function, Sizes sizes, Depth depth,
                       etalon_attention_desc* desc, Call* call, etalon_error* error);

// Fills all of *problem, whose sources beyond those of the call are none of its parts.
void FillProblem(const etalon_attention_desc& desc, const Call& call, AttentionProblem* problem);

// What the call reads and writes, `out` and `lse` included.
void Touches(const Call& call, Memory* memory);

bool HasOption(const etalon_attention_desc& desc, uint32_t option);
float ScaleOf(const etalon_attention_desc& desc);
int32_t WorkersOf(int32_t max_workers);  // 0 stands for 1

}  // namespace etalon

#endif  // ETALON_LIB_API_CALL_H_

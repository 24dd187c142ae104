// source.h: the key sources of a call: the first, which stands in etalon_attention_args itself, and those that follow,
// all read in the same way.
#ifndef ETALON_LIB_API_SOURCE_H_
#define ETALON_LIB_API_SOURCE_H_

#include "lib/api/places.h"
#include "lib/api/validate.h"
#include "lib/attention/attention.h"

namespace etalon {

// What messages call the members of a source.
struct SourceNames {
  const char* object;  // "args", "args.more_sources[0]"
  const char* k;
  const char* v;
  const char* bias;
  const char* mask;
  const char* places;
};
const SourceNames& NamesOfSource(int64_t source);

struct SourceCall {
  CheckedTensor k;
  CheckedTensor v;
  CheckedTensor bias;
  CheckedTensor mask;
  CheckedPlaces places;
  Sequences sequences;
  SequenceHulls hulls;
  Hull prepared_mask;
};

// All sources in one form; left and right of the first are those of the descriptor.
etalon_status CopySources(const etalon_attention_args& args, const etalon_attention_desc& desc, int64_t num_sources,
                          etalon_key_source* sources, etalon_error* error);

// k, whose batch is not looked at: that of a ragged one is none of the tensor's.
etalon_status CheckKeys(const etalon_key_source& caller, const SourceNames& names, const CheckedTensor& q, Role role,
                        SourceCall* source, etalon_error* error);
// v, if the function uses it.
etalon_status CheckValues(const etalon_key_source& caller, const SourceNames& names, bool values, Role role,
                          SourceCall* source, etalon_error* error);
// That another source has the heads, sizes and types of the first.
etalon_status CheckLikeFirst(const SourceCall& source, const SourceCall& first, bool values, etalon_error* error);

// Lengths, then what is shaped by them: bias and masks.
etalon_status CheckSourceSequences(const etalon_key_source& caller, const SourceNames& names, const Queries& queries,
                                   SourceCall* source, etalon_error* error);
etalon_status CheckSourceMasks(const etalon_key_source& caller, const SourceNames& names, const Queries& queries,
                               int64_t num_q_heads, Role role, SourceCall* source, etalon_error* error);

void FillProblem(const SourceCall& source, SourceProblem* problem);

void Touches(const SourceCall& source, Memory* memory);

}  // namespace etalon

#endif  // ETALON_LIB_API_SOURCE_H_

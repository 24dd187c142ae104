// The scores primitive.
#include "lib/attention/score.h"

#include "lib/api/call.h"
#include "lib/api/primitives.h"

namespace etalon {
namespace {

struct ScoresCall {
  etalon_attention_desc desc;
  Call call;
  AttentionKernels kernels;
};

etalon_status Read(const etalon_attention_desc* caller, const etalon_attention_args* args, Depth depth,
                   ScoresCall* scores, etalon_error* error) {
  ETALON_CHECK(ReadDesc(caller, Function::kScores, &scores->desc, error));
  ETALON_CHECK(ReadArgs(args, Function::kScores, Sizes::kFromTensors, depth, &scores->desc, &scores->call, error));
  return ChooseAttentionKernels(scores->desc, scores->call, &scores->kernels, error);
}

}  // namespace
}  // namespace etalon

extern "C" {

etalon_status etalon_scores_workspace_bytes(const etalon_attention_desc* desc, const etalon_attention_args* args,
                                            size_t* bytes, etalon_error* error) {
  if (bytes == nullptr) return etalon::Fail(error, ETALON_NULL_POINTER, {"bytes"}, {"is NULL"});
  etalon::ScoresCall scores;
  ETALON_CHECK(etalon::Read(desc, args, etalon::Depth::kShapes, &scores, error));
  *bytes = scores.kernels.kernels.workspace_bytes;
  return etalon::Succeed(error);
}

etalon_status etalon_scores(const etalon_attention_desc* desc, const etalon_attention_args* args,
                            const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error) {
  etalon::ScoresCall scores;
  ETALON_CHECK(etalon::Read(desc, args, etalon::Depth::kMemory, &scores, error));
  etalon::ScoresProblem problem;
  etalon::FillProblem(scores.desc, scores.call, &problem.problem);
  problem.scores = scores.call.out.MutableView();
  etalon::SetScoresTiles(&problem);
  etalon::Memory memory;
  etalon::Touches(scores.call, &memory);
  etalon::Runner runner;
  ETALON_CHECK(etalon::CheckRunner(scores.kernels.kernels, &memory, workspace, parallel, &runner, error));
  etalon::FillSlopes(scores.kernels, runner, &problem.problem);
  return etalon::RunTiles<etalon::ScoresProblem, etalon::ScoreTile>(
      scores.kernels.kernels, runner, problem, problem.problem.tiles, scores.call.out.empty, error);
}

}  // extern "C"

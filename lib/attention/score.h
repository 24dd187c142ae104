// score.h: the scores primitive: S = scale q k^T of every head, -inf where a row does not see a key.
#ifndef ETALON_LIB_ATTENTION_SCORE_H_
#define ETALON_LIB_ATTENTION_SCORE_H_

#include <cstddef>
#include <cstdint>

#include "lib/attention/attention.h"

namespace etalon {

// Everything of the problem that makes a score, of its only source. scores [batch, num_q_heads, q_len, kv_len], f32,
// its rows packed.
struct ScoresProblem {
  AttentionProblem problem;
  MutableTensorView scores;
};

// Sets tiles.heads_apart as the layout of the scores demands. Everything else of the problem is filled.
void SetScoresTiles(ScoresProblem* scores);

// scratch: TileScratchBytes.
void ScoreTile(const KernelTable& table, const ScoresProblem& scores, const Tile& tile, void* scratch);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_SCORE_H_

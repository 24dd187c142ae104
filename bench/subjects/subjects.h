// subjects.h: what is measured, for whoever makes rows of it: etalon_bench and the tool. Each subject owns its data,
// checks itself and knows its limits. `target` is the kernel table that it runs on.
#ifndef ETALON_BENCH_SUBJECTS_SUBJECTS_H_
#define ETALON_BENCH_SUBJECTS_SUBJECTS_H_

#include <cstdint>
#include <string>

#include "bench/support/attention.h"
#include "bench/support/caches.h"
#include "bench/support/subject.h"

namespace etalon::bench {

// Attention of a whole prompt. Its work is flop.
Subject PrefillSubject(const AttentionShape& shape, const std::string& target);
// On two threads, beside one. Both forms take the same problem; their bits are compared by the tests, not here.
Subject TwoThreadSubject(AttentionShape shape, const std::string& target);
// One new token after as many as fill a place: group query heads to a key head, of which there is one in a cache and
// eight in DRAM; 128 channels.
AttentionShape DecodeShape(ElementType type, int64_t group, const Place& place, const Sizes& sizes);
// Attention of one new token, against reading keys and values. Its work is their bytes.
Subject DecodeSubject(const AttentionShape& shape, const std::string& target);

// n queries and n keys.
Subject ScoresSubject(int64_t n, int64_t head_dim, const std::string& target);
// Rows of n scores each.
Subject SoftmaxSubject(int64_t rows, int64_t n, bool causal, bool in_place, const std::string& target);
// n rows of n weights.
Subject WeightedSumSubject(int64_t n, int64_t value_dim, const std::string& target);
Subject MergeSubject(int64_t rows, int64_t value_dim, const std::string& target);

// A limit by itself; memory for it is taken here. There is nothing to run if the CPU has no loops for it (null).
Subject FmaSubject(const Loops* loops);
Subject ReadSubject(const Loops* loops, size_t bytes);
Subject StoreSubject(const Loops* loops, size_t bytes);
Subject CopySubject(size_t bytes);  // `bytes` in both buffers together
Subject ExpSubject(const std::string& target);

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUBJECTS_SUBJECTS_H_

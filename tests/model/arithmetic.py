"""The one arithmetic, step by step as in docs/numerics.md (steps 0 to 11), for one query row.

Written from that text alone, to be compared with code that was written from it too. Values are binary32 bit patterns (softfloat.py).
A state (m, l, o) is a tuple, an empty one (no visible key) is None: emptiness comes from visibility and never from m or l.
"""

from softfloat import (CANONICAL, INF, MASK32, NAN, NEG_INF, ONE, SIGN, WIDTH, ZERO, add, div, fma, from_int, is_nan, less,
                       maximum, mul, narrow, neg, sub, widen)

CHUNK = 128
BLOCK = 512
NO_SINK = NEG_INF

# --- step 7: what is written ------------------------------------------------------------------------------------------------


def canonical(bits, kind="f32"):
    """Any NaN that is written is the quiet positive one of its type."""
    return CANONICAL[kind] if is_nan(widen(bits, kind)) else bits


def plus_zero(x):
    """x + 0: turns -0 into +0 and changes nothing else."""
    return add(x, ZERO)


def zero_is_positive(bits, kind):
    """A negative value that narrows to zero would leave -0 in out, but zeros written in out are +0."""
    return 0 if bits == 1 << WIDTH[kind] - 1 else bits


def write_out(x, kind):
    """Steps 7 and 11: one rounding to the type of out."""
    return canonical(zero_is_positive(narrow(x, kind), kind), kind)


def write(x, kind="f32"):
    """Everything else that is written: scores, weights, lse, narrowed types."""
    return canonical(narrow(x, kind), kind)


def write_state(state, value_dim):
    """Step 7: (m + 0, l, o + 0), m NaN where l is NaN; an empty state is (-inf, 0, 0)."""
    if state is None:
        return NEG_INF, ZERO, [ZERO] * value_dim
    m, l, o = state
    return written_m(m, l), canonical(l), [canonical(plus_zero(x)) for x in o]


def written_m(m, l):
    return NAN if is_nan(l) else canonical(plus_zero(m))


# --- step 8: exp, log, tanh ---------------------------------------------------------------------------------------------------

EXP_LOWEST = 0xC2AE999A        # -87.3
LOG2_E = 0x3FB8AA3B
ROUNDER = 0x4B400000           # 1.5 * 2^23: adding it leaves the nearest integer in the low bits
LN2_HIGH = 0x3F317200
LN2_LOW = 0x35BFBE8E
EXP_TERMS = [0x3AB5BDDE, 0x3C09182B, 0x3D2AAB3E, 0x3E2AAA51, 0x3F000000, ONE, ONE]
SQRT_HALF = 0x3F3504F3
LOG_TERMS = [0x3D8A3D30, 0xBDEF0A2E, 0x3DF36335, 0xBDFE134C, 0x3E119D95, 0xBE2AAE26, 0x3E4CD23D, 0xBE800003, 0x3EAAAAA4,
             0xBF000000]
TANH_SMALL = 0x3F200000        # 0.625
TANH_TERMS = [0xBBBAB68A, 0x3CA9051D, 0xBD5C1BC9, 0x3E08837F, 0xBEAAAA99]
MINUS_TWO = 0xC0000000


def horner(terms, x):
    p = terms[0]
    for c in terms[1:]:
        p = fma(p, x, c)
    return p


def exp(t):
    if is_nan(t):
        return t
    if less(t, EXP_LOWEST):
        return ZERO
    z = fma(t, LOG2_E, ROUNDER)
    e = z << 23 & MASK32
    n = sub(z, ROUNDER)
    f = fma(neg(n), LN2_HIGH, t)
    f = fma(neg(n), LN2_LOW, f)
    return horner(EXP_TERMS, f) + e & MASK32


def log(x):
    if is_nan(x):
        return x
    k = x - SQRT_HALF & MASK32
    e = (k ^ SIGN) - SIGN >> 23                       # int32(k) >> 23, arithmetic
    f = sub((k & 0x7FFFFF) + SQRT_HALF, ONE)
    exponent = from_int(e)
    q = horner(LOG_TERMS, f)
    hi = fma(exponent, LN2_HIGH, f)
    lo = add(fma(exponent, LN2_HIGH, neg(hi)), f)     # what hi lost
    lo = fma(exponent, LN2_LOW, lo)
    lo = fma(q, mul(f, f), lo)
    return add(hi, lo)


def tanh(x):
    if is_nan(x):
        return x
    a = x & ~SIGN
    if less(a, TANH_SMALL):
        u = mul(a, a)
        r = fma(horner(TANH_TERMS, u), mul(a, u), a)
    else:
        t = exp(mul(MINUS_TWO, a))
        r = div(sub(ONE, t), add(ONE, t))
    return r & ~SIGN | x & SIGN


# --- steps 2 and 3: scores ----------------------------------------------------------------------------------------------------


class KeyOptions:
    """What step 3 needs to know of one (row, key)."""

    __slots__ = ("softcap", "slope", "distance", "bias")

    def __init__(self, softcap=ZERO, slope=None, distance=0, bias=None):
        self.softcap, self.slope, self.distance, self.bias = softcap, slope, distance, bias


def scale_query(q, scale):
    return [mul(x, scale) for x in q]


def dot(scaled_q, k):
    """Step 2: one fma chain per (query, key), channels ascending, from +0."""
    s = ZERO
    for a, b in zip(scaled_q, k):
        s = fma(a, b, s)
    return s


def softcap_step(s, key):
    return mul(key.softcap, tanh(div(s, key.softcap))) if key.softcap & ~SIGN else s


def alibi_step(s, key):
    # The distance is an exact integer, rounded once to f32; negating 0 gives -0.
    return s if key.slope is None else fma(key.slope, neg(from_int(key.distance)), s)


def bias_step(s, key):
    if key.bias is None:
        return s
    return NEG_INF if key.bias == NEG_INF else add(s, key.bias)


SCORE_STEPS = (softcap_step, alibi_step, bias_step)


def score(scaled_q, k, key, allowed):
    """Steps 2 and 3. `allowed` is geometry and masks: they come last and win over everything, so the rest need not be computed."""
    if not allowed:
        return NEG_INF
    s = dot(scaled_q, k)
    for step in SCORE_STEPS:
        s = step(s, key)
    return s


def visible(s):
    """After step 3. NaN and +inf are visible."""
    return s != NEG_INF


# --- steps 4 to 6: fused attention --------------------------------------------------------------------------------------------


def values_step(p, v, o):
    """One key of the value chains. p = 0 is no reason to skip: 0 * inf counts."""
    return [fma(p, x, y) for x, y in zip(v, o)]


def chunk_state(scores, values):
    """Step 4 over the visible keys of one chunk, ascending; scores and values hold visible keys only."""
    if not scores:
        return None
    m = scores[0]
    for s in scores[1:]:
        m = maximum(m, s)
    l = ZERO
    o = [ZERO] * len(values[0])
    for s, v in zip(scores, values):
        p = exp(sub(s, m))
        l = add(l, p)
        o = values_step(p, v, o)
    return m, l, o


def fold(left, right):
    """Step 5. An empty side is skipped: the other passes through unchanged."""
    if left is None:
        return right
    if right is None:
        return left
    m1, l1, o1 = left
    m2, l2, o2 = right
    m = maximum(m1, m2)
    a = exp(sub(m1, m))
    b = exp(sub(m2, m))
    return m, fold_sum(l1, a, l2, b), [fold_sum(x, a, y, b) for x, y in zip(o1, o2)]


def fold_sum(x1, a, x2, b):
    return fma(x1, a, mul(x2, b))


def fold_chunks(states):
    """Left to right inside a block."""
    total = None
    for state in states:
        total = fold(total, state)
    return total


def fold_blocks(states):
    """Left to right over the blocks of all sources."""
    total = None
    for state in states:
        total = fold(total, state)
    return total


def grid_position(base, i):
    """Step 4: chunks and blocks count from the source's position 0, wherever the tensor's first key stands."""
    return base + i


def source_blocks(scores, values, base):
    """Steps 4 and 5 for one source: the states of the blocks that its keys touch, ascending. Chunk t / 128, block t / 512."""
    first = grid_position(base, 0) // BLOCK
    last = grid_position(base, len(scores) - 1) // BLOCK
    chunks_per_block = BLOCK // CHUNK
    members = {}
    for i, s in enumerate(scores):
        if visible(s):
            seen = members.setdefault(grid_position(base, i) // CHUNK, ([], []))
            seen[0].append(s)
            seen[1].append(values[i])
    blocks = []
    for block in range(first, last + 1):
        chunks = range(block * chunks_per_block, (block + 1) * chunks_per_block)
        blocks.append(fold_chunks([chunk_state(*members.get(c, ([], []))) for c in chunks]))
    return blocks


def add_sink(state, sink, value_dim):
    """Step 6: the sink is the state (logit, 1, 0), folded last and once; -inf is no sink."""
    if sink == NO_SINK:
        return state
    return fold(state, (sink, ONE, [ZERO] * value_dim))


def total_state(blocks, sink, value_dim):
    return add_sink(fold_blocks(blocks), sink, value_dim)


def finish(state, value_dim):
    """Step 6: out as f32 before step 11, and lse. A row of nothing but a sink comes out as (0 / 1) + 0 and sink + log(1)."""
    if state is None:
        return [ZERO] * value_dim, NEG_INF
    m, l, o = state
    return [plus_zero(div(x, l)) for x in o], add(m, log(l))


# --- step 9: the primitives on rows -------------------------------------------------------------------------------------------


def combine_sixteen(partial):
    """The fixed tree 8, 4, 2, 1 over sixteen strided partial sums."""
    for half in (8, 4, 2, 1):
        partial = [add(partial[r], partial[r + half]) for r in range(half)]
    return partial[0]


def softmax_row(scores, allowed):
    """Weights and lse of one row; chunks count from the start of the row."""
    seen = [a and visible(s) for s, a in zip(scores, allowed)]
    row_max = NEG_INF
    for s, yes in zip(scores, seen):
        if yes:
            row_max = maximum(row_max, s)
    if True not in seen:
        return [ZERO] * len(scores), NEG_INF
    p = softmax_terms(scores, seen, row_max)
    l = softmax_sum(p, seen)
    return softmax_weights(p, seen, l), add(row_max, log(l))


def softmax_terms(scores, seen, row_max):
    return [exp(sub(s, row_max)) if yes else ZERO for s, yes in zip(scores, seen)]


def softmax_sum(p, seen):
    l = ZERO
    for start in range(0, len(p), CHUNK):
        partial = [ZERO] * 16
        for j in range(start, min(start + CHUNK, len(p))):
            if seen[j]:
                partial[j % 16] = add(partial[j % 16], p[j])
        l = add(l, combine_sixteen(partial))
    return l


def softmax_weights(p, seen, l):
    inverse = div(ONE, l)
    return [mul(x, inverse) if yes else ZERO for x, yes in zip(p, seen)]


def weighted_sum_row(weights, values, allowed, value_dim):
    """Visibility is the span and the mask alone: a weight of 0 still counts."""
    total = [ZERO] * value_dim
    for start in range(0, len(weights), CHUNK):
        o = [ZERO] * value_dim
        for j in range(start, min(start + CHUNK, len(weights))):
            if allowed[j]:
                o = values_step(weights[j], values[j], o)
        total = [add(x, y) for x, y in zip(total, o)]
    return [plus_zero(x) for x in total]


# --- step 10: merge of (out, lse) pairs ---------------------------------------------------------------------------------------


def merge(out1, lse1, out2, lse2):
    """out as f32 before step 11. What passes through is still written by step 7: -0 becomes +0 and a NaN canonical."""
    if lse1 == NEG_INF and lse2 == NEG_INF:
        return [ZERO] * len(out1), NEG_INF
    if lse2 == NEG_INF:
        return [plus_zero(x) for x in out1], lse1
    if lse1 == NEG_INF:
        return [plus_zero(x) for x in out2], lse2
    m = maximum(lse1, lse2)
    a = exp(sub(lse1, m))
    b = exp(sub(lse2, m))
    l = add(a, b)
    return [plus_zero(div(fma(x, a, mul(y, b)), l)) for x, y in zip(out1, out2)], add(m, log(l))

"""Deliberately wrong variants of the arithmetic: each is a mistake a backend could make, and the committed vectors must notice it.

`with variant("chunk64"):` replaces the names listed for it and puts them back afterwards, so arithmetic.py stays free of switches.
"""

import contextlib
import struct

import arithmetic as A
import ops
import softfloat as F

fold, merge, bias_step, narrow, fma = A.fold, A.merge, A.bias_step, F.narrow, F.fma


def same(x, *_):
    return x


def fold_right_to_left(states):
    total = None
    for state in reversed(states):
        total = fold(state, total)
    return total


def sink_before_blocks(blocks, sink, value_dim):
    states = [] if sink == A.NO_SINK else [(sink, F.ONE, [F.ZERO] * value_dim)]
    return A.fold_blocks(states + blocks)


def sink_folded_into_an_empty_state(state, sink, value_dim):
    """(-inf, 0, 0) takes part in the fold instead of being skipped, and a sink of -inf counts as one: -inf - -inf."""
    if sink == A.NO_SINK:
        return state
    nothing = [F.ZERO] * value_dim
    return fold(state or (F.NEG_INF, F.ZERO, nothing), (sink, F.ONE, nothing))


def keep_keys(scores, values):
    return (scores, values) if scores else None


def chains_run_on(chunks):
    """An online softmax: a new maximum rescales l and o, and their chains go on from there. Chunks as keep_keys left them."""
    state = None
    for scores, values in filter(None, chunks):
        m, l, o = state or (scores[0], F.ZERO, [F.ZERO] * len(values[0]))
        before = m
        for s in scores:
            m = F.maximum(m, s)
        factor = A.exp(F.sub(before, m))
        l, o = F.mul(l, factor), [F.mul(x, factor) for x in o]
        for s, v in zip(scores, values):
            p = A.exp(F.sub(s, m))
            l, o = F.add(l, p), A.values_step(p, v, o)
        state = m, l, o
    return state


def weighted_sum_runs_on(weights, values, allowed, value_dim):
    o = [F.ZERO] * value_dim
    for w, v, yes in zip(weights, values, allowed):
        o = A.values_step(w, v, o) if yes else o
    return [A.plus_zero(x) for x in o]


def softmax_sums_run_on(p, seen):
    partial = [F.ZERO] * 16
    for j, yes in enumerate(seen):
        partial[j % 16] = F.add(partial[j % 16], p[j]) if yes else partial[j % 16]
    return A.combine_sixteen(partial)


def softmax_terms_by_chunk(scores, seen, row_max):
    """The maximum of each chunk, and a factor to that of the row."""
    p = []
    for start in range(0, len(scores), A.CHUNK):
        places = range(start, min(start + A.CHUNK, len(scores)))
        m = F.NEG_INF
        for j in places:
            m = F.maximum(m, scores[j]) if seen[j] else m
        factor = A.exp(F.sub(m, row_max))
        p += [F.mul(A.exp(F.sub(scores[j], m)), factor) if seen[j] else F.ZERO for j in places]
    return p


def softmax_divides(p, seen, l):
    return [F.div(x, l) if yes else F.ZERO for x, yes in zip(p, seen)]


def skip_zero_weights(p, v, o):
    return [fma(p, x, y) for x, y in zip(v, o)] if p != F.ZERO else o


def neighbours_first(partial):
    while len(partial) > 1:
        partial = [F.add(partial[i], partial[i + 1]) for i in range(0, len(partial), 2)]
    return partial[0]


def multiply_by_reciprocal(state, value_dim):
    if state is None:
        return [F.ZERO] * value_dim, F.NEG_INF
    m, l, o = state
    inverse = F.div(F.ONE, l)
    return [A.plus_zero(F.mul(x, inverse)) for x in o], F.add(m, A.log(l))


def unfused(a, b, c):
    return F.add(F.mul(a, b), c)


def fma_rounded_twice(a, b, c):
    """Through f64, without rounding to odd."""
    x, y, z = (struct.unpack("<f", struct.pack("<I", w))[0] for w in (a, b, c))
    try:
        return struct.unpack("<I", struct.pack("<f", x * y + z))[0]
    except OverflowError:
        return fma(a, b, c)


def flush(x):
    return x & F.SIGN if x & F.INF == 0 else x


def flushing_fma(a, b, c):
    return flush(fma(flush(a), flush(b), flush(c)))


def flushing_narrow(x, kind):
    return narrow(flush(x) if kind == "bf16" else x, kind)


def lowest_bias_masks(s, key):
    return F.NEG_INF if key.bias == 0xFF7FFFFF else bias_step(s, key)


def bias_only_added(s, key):
    """Without the rule that a bias of -inf wins over NaN and +inf."""
    return s if key.bias is None else F.add(s, key.bias)


class UnscaledQuery(list):
    scale = F.ONE


def keep_scale(q, scale):
    query = UnscaledQuery(q)
    query.scale = scale
    return query


def scaled_dot(q, k):
    s = F.ZERO
    for a, b in zip(q, k):
        s = A.fma(a, b, s)
    return F.mul(s, q.scale)


def last_bit(terms, index):
    changed = list(terms)
    changed[index] ^= 1
    return changed


# name -> [(module, attribute, replacement)]
VARIANTS = {
    "chunk64": [(A, "CHUNK", 64)],
    "block256": [(A, "BLOCK", 256)],
    "one_level": [(A, "BLOCK", 128)],
    "grid_from_first_key": [(A, "grid_position", lambda base, i: i)],
    "constant": [(A, "EXP_TERMS", last_bit(A.EXP_TERMS, 1))],
    "exp_edge": [(A, "EXP_LOWEST", A.EXP_LOWEST - 1)],
    "plus_zero": [(A, "plus_zero", same), (A, "zero_is_positive", same)],
    "narrow_zero": [(A, "zero_is_positive", same)],
    "state_m": [(A, "written_m", lambda m, l: A.canonical(A.plus_zero(m)))],
    "fold_order": [(A, "fold_blocks", fold_right_to_left)],
    "fold_order_chunks": [(A, "fold_chunks", fold_right_to_left)],
    "fold_swap": [(A, "fold_sum", lambda x1, a, x2, b: fma(x2, b, F.mul(x1, a)))],
    "merge_swap": [(A, "merge", lambda out1, lse1, out2, lse2: merge(out2, lse2, out1, lse1))],
    "chains_run_on": [(A, "chunk_state", keep_keys), (A, "fold_chunks", chains_run_on)],
    "weighted_sum_runs_on": [(A, "weighted_sum_row", weighted_sum_runs_on)],
    "softmax_sums_run_on": [(A, "softmax_sum", softmax_sums_run_on)],
    "softmax_chunk_max": [(A, "softmax_terms", softmax_terms_by_chunk)],
    "softmax_divides": [(A, "softmax_weights", softmax_divides)],
    "softmax_tree": [(A, "combine_sixteen", neighbours_first)],
    "alibi_order": [(A, "SCORE_STEPS", (A.softcap_step, A.bias_step, A.alibi_step))],
    "softcap_after_bias": [(A, "SCORE_STEPS", (A.alibi_step, A.bias_step, A.softcap_step))],
    "scale_after_dot": [(A, "scale_query", keep_scale), (A, "dot", scaled_dot)],
    "bias_lowest_masks": [(A, "bias_step", lowest_bias_masks), (A, "SCORE_STEPS", (A.softcap_step, A.alibi_step, lowest_bias_masks))],
    "bias_only_added": [(A, "SCORE_STEPS", (A.softcap_step, A.alibi_step, bias_only_added))],
    "masked_joins": [(A, "visible", lambda s: True)],
    "skip_zero_p": [(A, "values_step", skip_zero_weights)],
    "sink_first": [(A, "total_state", sink_before_blocks)],
    # None is a case without sinks, so that -inf reaches the fold. One that skips empty states would give the same bits.
    "sink_minus_inf": [(A, "NO_SINK", None), (A, "add_sink", sink_folded_into_an_empty_state)],
    "reciprocal": [(A, "finish", multiply_by_reciprocal)],
    "nan_payload": [(A, "canonical", same)],
    "unfused": [(A, "fma", unfused), (ops, "fma", unfused)],
    "fma_rounded_twice": [(A, "fma", fma_rounded_twice), (ops, "fma", fma_rounded_twice)],
    "flush_subnormals": [(A, "fma", flushing_fma), (ops, "fma", flushing_fma)],
    "bf16_flush": [(A, "narrow", flushing_narrow)],
}

# The other constants of exp, log and tanh, each with its last bit changed: constant_exp_0 and so on.
for _table in ("EXP_TERMS", "LOG_TERMS", "TANH_TERMS"):
    for _index, _word in enumerate(getattr(A, _table)):
        _name = "constant_%s_%d" % (_table[:-6].lower(), _index)
        VARIANTS[_name] = [(A, _table, last_bit(getattr(A, _table), _index))]
for _constant in ("LOG2_E", "LN2_HIGH", "LN2_LOW"):
    VARIANTS["constant_" + _constant.lower()] = [(A, _constant, getattr(A, _constant) ^ 1)]


@contextlib.contextmanager
def replaced(changes):
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    for module, name, value in changes:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def variant(name):
    """None is the arithmetic as it should be."""
    return replaced(VARIANTS[name] if name else [])

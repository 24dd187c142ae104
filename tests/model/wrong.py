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
    "softmax_tree": [(A, "combine_sixteen", neighbours_first)],
    "alibi_order": [(A, "SCORE_STEPS", (A.softcap_step, A.bias_step, A.alibi_step))],
    "softcap_after_bias": [(A, "SCORE_STEPS", (A.alibi_step, A.bias_step, A.softcap_step))],
    "scale_after_dot": [(A, "scale_query", keep_scale), (A, "dot", scaled_dot)],
    "bias_lowest_masks": [(A, "bias_step", lowest_bias_masks), (A, "SCORE_STEPS", (A.softcap_step, A.alibi_step, lowest_bias_masks))],
    "masked_joins": [(A, "visible", lambda s: True)],
    "skip_zero_p": [(A, "values_step", skip_zero_weights)],
    "sink_first": [(A, "total_state", sink_before_blocks)],
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

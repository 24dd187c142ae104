"""Directed cases: each is about one sentence of the text, and its name says which, so that a failure explains itself.

Inputs are literals, or come from splitmix64 where rounding errors are what is compared. Decimal literals become f32 through struct:
inputs only, never arithmetic.
"""

import struct

from caseformat import Case
from cases import (SPECIAL, Rng, Shape, attention_case, expect_attention, fma_case, fold_case, merge_case, narrowed, random_exp,
                   random_log, random_tanh, scores_case, softmax_case, unary_case, weighted_sum_case)

NAN, INF, NEG_INF, MINUS_ZERO, TINY, MINUS_TINY = 0x7FC00000, 0x7F800000, 0xFF800000, 0x80000000, 1, 0x80000001
PAYLOADS = [0x7F800001, 0xFFC00000, 0x7FC12345, 0xFF800001, 0xFFFFFFFF]
LOWEST = 0xFF7FFFFF            # -FLT_MAX


def f(x):
    """f32 bits of a decimal literal; an int is bits already."""
    return x if isinstance(x, int) else struct.unpack("<I", struct.pack("<f", x))[0]


def fs(*values):
    return [f(x) for x in values]


class Attention:
    """Short spelling of hand-written attention cases: one channel per key unless `v` has rows of several."""

    def __init__(self, name, scores, v, rows=1, **options):
        """`scores` become keys of one channel met by q = 1 at scale 1, so each is the score itself."""
        self.case = Case(name, "attention").param("scale", "f32", f(1.0))
        if "softcap" in options:
            self.case.param("softcap", "f32", f(options["softcap"]))
        self.case.tensor("q", options.get("q_type", "f32"), [rows, 1], narrowed(fs(*options.get("q", [1.0] * rows)), options.get("q_type", "f32")))
        self.rows, self.sources = rows, 0
        self.source(scores, v, **options)

    def source(self, scores, v, base=0, span=None, mask=None, bias=None, bias_type="f32", k_type="f32", v_type="f32", **_):
        n, keys = str(self.sources), len(scores)
        self.sources += 1
        if base:
            self.case.param("base" + n, "i64", base)
        v = [x if isinstance(x, list) else [x] for x in v]
        self.case.tensor("k" + n, k_type, [keys, 1], narrowed(fs(*scores), k_type))
        self.case.tensor("v" + n, v_type, [keys, len(v[0])], narrowed([f(x) for row in v for x in row], v_type))
        if span is not None:
            self.case.tensor("span" + n, "i64", [self.rows, 2], span)
        if mask is not None:
            self.case.tensor("mask" + n, "u8", [self.rows, keys], mask)
        if bias is not None:
            self.case.tensor("bias" + n, bias_type, [self.rows, keys], narrowed(fs(*bias), bias_type))
        return self

    def sink(self, *logits):
        self.case.tensor("sink", "f32", [self.rows], fs(*logits))
        return self

    def alibi(self, q_pos, slope):
        self.case.tensor("q_pos", "i64", [self.rows], q_pos).tensor("slope", "f32", [self.rows], fs(*slope))
        return self

    def done(self, states=False, out="f32"):
        return expect_attention(self.case, states, out)


def directed_cases():
    for group in (functions, conversions, score_cases, zero_signs, special_values, masks, sinks, grids, random_looking, softmax_rows,
                  weighted_sums, merges, folds):
        yield from group()


# --- fma, exp, log, tanh ------------------------------------------------------------------------------------------------------------


def functions():
    yield fma_triples("fma-half-ulp-and-a-little", [       # rounding the sum to f64 first makes these ties
        (0x3F800001, 0x337FFFFE, 0x3F800001), (0x3F800001, 0x337FFFFE, 0x3F800000), (0x3F800001, 0x33800001, 0x3F800000),
        (0x3F800001, 0xB37FFFFE, 0x3F800001), (0x3F800001, 0xB2FFFFFE, 0x3F800000), (0x3F800001, 0x33800000, 0x3F800001)])
    yield fma_triples("fma-tie-broken-by-a-tiny-c", [
        (f(4097.0), f(4097.0), 0), (f(4097.0), f(4097.0), TINY), (f(4097.0), f(4097.0), MINUS_TINY), (f(4097.0), f(4099.0), 0),
        (f(4097.0), f(4099.0), TINY), (f(4097.0), f(4099.0), MINUS_TINY), (f(4097.0), f(-4097.0), TINY), (f(4097.0), f(-4097.0), MINUS_TINY)])
    yield fma_triples("fma-cancellation-leaves-the-rounding-error", [
        (0x3F800001, 0x3F800001, 0xBF800002), (0x3FFFFFFF, 0x3FFFFFFF, 0xC07FFFFE), (f(3.0), f(1.0 / 3), f(-1.0)), (f(0.1), f(10.0), f(-1.0)),
        (f(2.0), f(3.0), f(-6.0)), (f(-2.0), f(3.0), f(6.0))])
    yield fma_triples("fma-subnormal-results", [
        (0x20000000, 0x1F800000, 0), (0x1A000000, 0x1A000000, 0), (0x1A000000, 0x9A000000, 0), (0x1A800001, 0x1A000000, TINY),
        (0x00000001, 0x3F000000, 0), (0x00000001, 0x3F000001, 0), (0x00000003, 0x3F000000, 0), (0x00000003, 0xBF000000, 0),
        (0x00800000, 0x3F7FFFFF, 0), (0x007FFFFF, 0x3F800000, TINY), (0x00800001, 0x3F000000, 0), (0x00800001, 0x3F000000, MINUS_TINY)])
    yield fma_triples("fma-overflow-boundary", [
        (0x7F7FFFFF, f(1.0), 0x73000000), (0x7F7FFFFF, f(1.0), 0x72FFFFFF), (0x7F7FFFFF, f(2.0), 0xFF7FFFFF), (0x7F7FFFFF, f(2.0), 0xFF7FFFFE),
        (0x7F7FFFFF, 0x7F7FFFFF, 0xFF800000), (0xFF7FFFFF, f(1.0), 0xF3000000), (0x7F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF)])
    yield fma_triples("fma-signs-of-zero", [(a, b, c) for a in (0, MINUS_ZERO) for b in (f(1.0), f(-1.0)) for c in (0, MINUS_ZERO)]
                      + [(f(1.0), f(1.0), f(-1.0)), (f(-1.0), f(1.0), f(1.0)), (0x0D800000, 0x8D800000, 0), (0x0D800000, 0x8D800000, MINUS_ZERO)])
    yield fma_triples("fma-inf-and-nan", [
        (INF, 0, f(1.0)), (0, NEG_INF, NAN), (INF, f(1.0), NEG_INF), (INF, f(-1.0), NEG_INF), (f(1.0), f(1.0), NEG_INF), (INF, INF, f(-1.0)),
        (0x7F800001, f(1.0), f(1.0)), (f(1.0), 0xFFC12345, f(1.0)), (f(1.0), f(1.0), 0xFF800001), (INF, TINY, f(1.0))])
    rng = Rng(11)
    for n in range(4):
        yield fma_case(rng, "fma-hard-triples-%d" % n, 48)

    edge = 0xC2AE999A
    yield unary_case("exp-at-the-lower-edge", "exp", [edge - 2, edge - 1, edge, edge + 1, edge + 2, f(-87.5), f(-88.0), f(-104.0), f(-1e30)])
    yield unary_case("exp-special", "exp", [0, MINUS_ZERO, NEG_INF, LOWEST, TINY | MINUS_ZERO, 0x807FFFFF, 0x80800000, 0xB3000000, 0xB3000001,
                                            0xB3800000] + PAYLOADS)
    yield unary_case("exp-around-multiples-of-half-ln2", "exp", [n + d for n in fs(*[-0.34657359 * k for k in range(1, 40, 2)]) for d in (-1, 0, 1)])
    yield unary_case("exp-random", "exp", [random_exp(rng) for _ in range(150)])
    yield unary_case("exp-inputs-that-tell-a-changed-last-bit-of-each-constant", "exp", [
        0xC294EC60, 0xC240BA64, 0xC22A8C21, 0xC281950B, 0xC26FCC79, 0xC2599E36, 0xC21CBA48, 0xC272AF95, 0xC1B42D40, 0xC264C58A, 0xC2384ECC,
        0xC28722A2, 0xC25C5A60, 0xC18D4B5A, 0xC047A05B, 0xC1E624BC, 0xC2ABE6F1, 0xC2A92797, 0xC2A92752, 0xC2ABE6A6, 0xC2A4F9CA, 0xC2A4F969,
        0xC2888CCC, 0xC2067877])
    yield unary_case("log-powers-of-two", "log", [127 + k << 23 for k in range(-24, 41, 4)] + [f(1.0), f(2.0), f(0.5)])
    yield unary_case("log-around-one-and-around-the-split", "log", [n + d for n in (0x3F800000, 0x3F3504F3, 0x3FB504F3, 0x403504F3, 0x33800003, 0x537FFFFC)
                                                                    for d in (-3, -2, -1, 0, 1, 2, 3)])
    yield unary_case("log-nan", "log", PAYLOADS + [NAN])
    yield unary_case("log-random", "log", [random_log(rng) for _ in range(150)])
    yield unary_case("log-inputs-that-tell-a-changed-last-bit-of-each-constant", "log", [
        0x33800000, 0x3FA84C2C, 0x3E19B44C, 0x3FB0F3DA, 0x3FA0AF76, 0x40AC515E, 0x3FAF5636, 0x3FB4A83C, 0x3F40B390, 0x3F4BF6AA, 0x3FA2EE92,
        0x3FA72A0C, 0x3F3B5792, 0x3FAEE810, 0x39A96CFE, 0x3FAFA2D6, 0x492A4BC0, 0x40A26D32, 0x3FB45672])
    yield unary_case("tanh-at-the-threshold", "tanh", [s | x for x in range(0x3F1FFFFD, 0x3F200004) for s in (0, MINUS_ZERO)])
    yield unary_case("tanh-inputs-that-tell-a-changed-last-bit-of-each-constant", "tanh", [
        0x3F0D0CD0, 0x3F1D3F49, 0x3F1324C7, 0x3F183111, 0x3F18C660, 0x3F12CD5E, 0x3F1F39AA, 0x3F0A6141, 0x3F02B7A8, 0x3F058DCE])
    yield unary_case("tanh-special", "tanh", [s | x for x in (0, INF, TINY, 0x007FFFFF, 0x00800000, 0x1A000000, 0x39800000, 0x41100000, 0x41200000,
                                                              0x422EBBBB, 0x422EA8F6, 0x7F000000, 0x7F7FFFFF, f(43.65), f(43.66)) for s in (0, MINUS_ZERO)] + PAYLOADS)
    yield unary_case("tanh-random", "tanh", [random_tanh(rng) for _ in range(150)])


def fma_triples(name, triples):
    a, b, c = (list(x) for x in zip(*triples))
    n = [len(a)]
    return Case(name, "fma").tensor("a", "f32", n, a).tensor("b", "f32", n, b).tensor("c", "f32", n, c).expect("y", "f32", n)


def conversions():
    def narrow_case(name, kind, words):
        return Case(name, "narrow").tensor("x", "f32", [len(words)], words).expect("y", kind, [len(words)])

    def widen_case(name, kind, words):
        return Case(name, "widen").tensor("x", kind, [len(words)], words).expect("y", "f32", [len(words)])

    num10 = [0x3E89CCD5, 0x3F808000, 0x3F818000, 0x3F808001, 0x00008000, 0x00008001, 0x00018000, 0x7F800001]
    num11 = [0x33000000, 0x33000001, 0x33400000, 0x337FFFFF, 0x33800000, 0xB3000001, 0xB3400000, 0x387FC000, 0x387FE000, 0x38800000,
             0x301F6DDF, 0x3649539C, 0x477FEFFF, 0x477FF000]
    yield narrow_case("narrow-bf16-NUM-10", "bf16", num10)
    yield narrow_case("narrow-f16-NUM-11", "f16", num11)
    both = SPECIAL + num10 + num11 + PAYLOADS + [x | MINUS_ZERO for x in num11]
    yield narrow_case("narrow-bf16-special-values-and-f16-ties", "bf16", both + [0x7F7F7FFF, 0x7F7F8000, 0x7F7F8001, 0xFF7F8000, 0x007F7FFF, 0x007F8000])
    yield narrow_case("narrow-f16-special-values-and-bf16-ties", "f16", both + [0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0x387FF000, 0x387FEFFF,
                                                                               0x477FE000, 0x477FE001, 0x477FEFFF, 0xC77FF000, 0x47800000, 0x33000000 | MINUS_ZERO])
    yield widen_case("widen-f16", "f16", [0, 0x8000, 1, 0x8001, 2, 3, 0x1FF, 0x200, 0x3FF, 0x400, 0x83FF, 0x3C00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00,
                                          0xFE00, 0xFFFF, 0x7DFF])
    yield widen_case("widen-bf16", "bf16", [0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7F81, 0x7FC0, 0xFFC0, 0xFFFF])


# --- steps 1 to 3 ---------------------------------------------------------------------------------------------------------------------


def score_row(name, q, k, scale=1.0, q_type="f32", k_type="f32", **options):
    """One query row; k is a list of keys."""
    case = Case(name, "scores").param("scale", "f32", f(scale))
    if "softcap" in options:
        case.param("softcap", "f32", f(options["softcap"]))
    if "base" in options:
        case.param("base", "i64", options["base"])
    keys = len(k)
    case.tensor("q", q_type, [1, len(q)], narrowed(fs(*q), q_type))
    case.tensor("k", k_type, [keys, len(q)], narrowed([f(x) for key in k for x in key], k_type))
    if "slope" in options:
        case.tensor("q_pos", "i64", [1], [options["q_pos"]]).tensor("slope", "f32", [1], [f(options["slope"])])
    if "bias" in options:
        kind = options.get("bias_type", "f32")
        case.tensor("bias", kind, [1, keys], narrowed(fs(*options["bias"]), kind))
    if "mask" in options:
        case.tensor("mask", "u8", [1, keys], options["mask"])
    if "span" in options:
        case.tensor("span", "i64", [1, 2], options["span"])
    return case.expect("s", "f32", [1, keys])


def score_cases():
    rng = Rng(22)
    yield score_row("scores-scale-goes-into-q-not-into-the-dot", rng.normals(7), [rng.normals(7) for _ in range(6)], scale=0.3779645)
    yield score_row("scores-one-chain-in-channel-order", [1.0] * 5, [[1e8, 1.0, -1e8, 1.0, 3.0], [1.0, 1e8, 1.0, -1e8, 3.0]])
    yield score_row("scores-chain-is-fused", [0x3F800001, 1.0], [[0x3F800001, -1.0], [0x3F800001, 0xBF800002]])
    for head_dim in (1, 2, 3, 15, 16, 17, 31, 33):
        yield scores_case(rng, "scores-head-dim-%d" % head_dim, Shape(head_dim=head_dim, keys=(9,), rows=1))
    yield score_row("scores-f16-256-times-256-is-65536-NUM-3", [256.0] + [0.0] * 7, [[256.0] + [0.0] * 7], q_type="f16", k_type="f16")
    yield score_row("scores-f16-subnormal-inputs-are-not-flushed", [0x33800000, 1.0], [[1.0, 0x33800000], [0x33800000, 0x387FC000]], q_type="f16", k_type="f16")
    yield score_row("scores-bf16-subnormal-inputs-are-not-flushed", [0x00010000, 1.0], [[1.0, 0x00010000], [1e30, 0x007F0000]], q_type="bf16", k_type="bf16")
    yield score_row("scores-scaled-query-is-subnormal", [0x00800001, 0x00800003], [[1e30, 1e30], [1e30, -1e30]], scale=0.125)
    yield score_row("scores-product-underflows-to-minus-zero", [0x0D800000], [[0x8D800000], [0x0D800000]])
    yield score_row("scores-dot-overflows", [1e30, 1e30], [[1e30, -1e30], [-1e30, 1e30], [1e30, 1.0], [-1e30, 1.0]])
    yield score_row("scores-softcap-NUM-12", [1.0], [[x] for x in (1.0, 100.0, 1000.0, 4400.0, 5000.0, 10000.0, -10000.0)], softcap=50.0)
    yield score_row("scores-softcap-of-inf-is-the-cap-and-nan-stays", [1.0], [[INF], [NEG_INF], [0x7F800001], [MINUS_ZERO], [TINY]], softcap=30.0)
    yield score_row("scores-softcap-overflowing-quotient", [1.0], [[1e30], [-1e30]], softcap=1e-20)
    yield score_row("scores-softcap-around-the-tanh-threshold", [1.0], [[x] for x in (31.25, 0x41F9FFFF, 0x41FA0001, -31.25, 0.001)], softcap=50.0)
    yield score_row("scores-softcap-zero-is-off", [1.0], [[100.0], [NEG_INF], [INF]], softcap=0.0)
    yield score_row("scores-softcap-alibi-bias-in-this-order", [1.0], [[3.3], [-2.7], [40.1]], softcap=2.0, q_pos=10, slope=0.3, bias=[0.7, -0.45, 1.3])
    yield score_row("scores-alibi-before-bias", [1.0], [[0.1], [0.7], [1.3]], q_pos=1000, slope=0.0123, bias=[12.3, 11.7, 10.9])
    yield score_row("scores-alibi-is-one-fma", [1.0], [[x] for x in (1.0, 0.3, -7.7)], q_pos=77777, slope=0.7)
    yield score_row("scores-alibi-distance-is-absolute-both-ways", [1.0], [[0.0]] * 6, q_pos=3, slope=0.5)
    yield score_row("scores-alibi-64-bit-difference-rounds-once", [1.0], [[0.0]] * 4, q_pos=(1 << 40) + 16777219, base=(1 << 40), slope=1.0)
    yield score_row("scores-alibi-huge-distance-rounds-once", [1.0], [[0.0]] * 4, q_pos=(1 << 40) + 65536, slope=1.0)
    yield score_row("scores-alibi-distance-is-no-32-bit-integer", [1.0], [[1.0]] * 2, q_pos=(1 << 32) + 5, slope=0.001)
    yield score_row("scores-alibi-minus-zero-score-at-distance-zero", [1.0], [[0.0], [0.0]], q_pos=0, slope=1.0)
    yield score_row("scores-bias-minus-inf-masks-nan-and-inf", [1.0], [[NAN], [INF], [1.0], [2.0]], bias=[NEG_INF, NEG_INF, NEG_INF, 0.5])
    yield score_row("scores-bias-lowest-float-does-not-mask", [1.0], [[1.0], [2.0]], bias=[LOWEST, LOWEST])
    yield score_row("scores-bias-sum-of-minus-inf-is-not-visible", [1.0], [[NEG_INF], [-3e38], [1.0]], bias=[1.0, -3e38, INF])
    yield score_row("scores-bias-inf-minus-inf-is-nan", [1.0], [[NEG_INF], [INF], [1.0]], bias=[INF, 1.0, 0x7F800001])
    yield score_row("scores-bias-f16-minus-inf-masks-and-65504-does-not", [1.0], [[1.0], [2.0], [3.0]], bias=[NEG_INF, -65504.0, 0.1], bias_type="f16")
    yield score_row("scores-bias-bf16-widens-exactly", [1.0], [[1.0], [2.0], [3.0]], bias=[0x00010000, 0xFF7F0000, 0.1], bias_type="bf16")
    yield score_row("scores-bias-of-zero-on-minus-zero", [1.0], [[0.0], [0.0]], bias=[MINUS_ZERO, 0.0])
    yield score_row("scores-mask-hides-nan-and-inf", [1.0], [[NAN], [INF], [1.0], [5.0]], mask=[0, 0, 0, 1])
    yield score_row("scores-mask-any-non-zero-byte-is-visible", [1.0], [[1.0], [2.0], [3.0], [4.0]], mask=[0, 1, 2, 255])
    yield score_row("scores-nan-is-canonical", [1.0], [[x] for x in PAYLOADS + [2.0]])
    yield score_row("scores-span-mask-and-bias-together", [1.0], [[float(i)] for i in range(8)], span=[102, 107], base=100, mask=[1, 1, 1, 0, 1, 1, 1, 1],
                    bias=[0.5, 0.5, 0.5, 0.5, NEG_INF, 0.5, 0.5, 0.5])
    yield score_row("scores-empty-span", [1.0], [[1.0], [2.0]], span=[1, 1])
    yield score_row("scores-backwards-span-is-empty", [1.0], [[1.0], [2.0]], span=[2, 1])


# --- attention: signs of zero, special values, masks ----------------------------------------------------------------------------------


def zero_signs():
    yield Attention("attention-equal-scores-negative-tiny-value-gives-plus-zero", [0.0] * 3, [MINUS_TINY, MINUS_ZERO, MINUS_ZERO]).done(states=True)
    yield Attention("attention-all-minus-zero-values-give-plus-zero", [0.0] * 3, [MINUS_ZERO] * 3).done(states=True)
    yield Attention("attention-one-minus-zero-value-gives-plus-zero", [5.0], [MINUS_ZERO]).done(states=True)
    yield Attention("attention-one-key-negative-subnormal-value-stays", [5.0], [MINUS_TINY]).done(states=True)
    yield Attention("attention-cancelling-values-give-plus-zero", [1.0, 1.0], [-3.0, 3.0]).done(states=True)
    yield Attention("attention-state-o-is-minus-zero-by-underflow-but-written-plus-zero", [0.0, -80.0], [MINUS_ZERO, MINUS_TINY]).done(states=True)
    yield Attention("attention-row-max-is-minus-zero", [MINUS_ZERO, MINUS_ZERO], [1.0, 2.0]).done(states=True)
    yield Attention("attention-single-score-minus-zero-lse-is-plus-zero", [0x8D800000], [1.0], q=[0x0D800000]).done(states=True)
    yield Attention("attention-scores-of-both-zero-signs", [MINUS_ZERO, 0.0, MINUS_ZERO], [1.0, 2.0, 4.0]).done(states=True)
    yield Attention("attention-narrowing-a-negative-value-to-zero-gives-plus-zero-f16", [0.0, 0.0], [-1e-9, -1e-9]).done(out="f16")
    yield Attention("attention-narrowing-a-negative-value-to-zero-gives-plus-zero-bf16", [0.0, 0.0], [MINUS_TINY, MINUS_TINY]).done(out="bf16")


def special_values():
    low = [0.0, -200.0, 0.0]
    yield Attention("attention-visible-key-with-p-zero-and-nan-value-counts", low, [[1.0, 1.0], [0x7F800001, 5.0], [3.0, 2.0]]).done(states=True)
    yield Attention("attention-visible-key-with-p-zero-and-inf-value-is-nan", low, [[1.0, 1.0], [INF, 5.0], [3.0, 2.0]]).done(states=True)
    yield Attention("attention-inf-value-with-weight-is-inf", [0.0, 1.0], [[1.0, 2.0], [INF, NEG_INF]]).done(states=True)
    yield Attention("attention-inf-values-of-both-signs-are-nan", [0.0, 0.0], [[INF, 1.0], [NEG_INF, 2.0]]).done(states=True)
    yield Attention("attention-p-subnormal-result-is-flushed-by-definition-only", [0.0, -87.3, f(-87.3) + 1, -88.0], [1.0, 1e38, 1e38, 1e38]).done()
    yield Attention("attention-inf-value-in-first-chunk-scaled-to-zero-later-is-nan", [-200.0] + [0.0] * 3, [INF, 1.0, 1.0, 1.0], base=127).done(states=True)
    yield Attention("attention-inf-value-in-later-chunk-of-tiny-weight-is-nan", [0.0, -200.0], [1.0, INF], base=127).done(states=True)
    yield Attention("attention-nan-key-makes-its-row-nan-and-no-other", [1.0, NAN, 2.0], [1.0, 2.0, 3.0], rows=3,
                    mask=[1, 1, 1, 1, 0, 1, 0, 1, 0]).done(states=True)
    yield Attention("attention-nan-key-first", [0x7F800001, 1.0, 2.0], [1.0, 2.0, 3.0]).done(states=True)
    yield Attention("attention-nan-key-last", [1.0, 2.0, 0xFFC00000], [1.0, 2.0, 3.0]).done(states=True)
    yield Attention("attention-nan-key-alone-in-its-chunk", [1.0, 2.0, NAN, 3.0], [1.0, 2.0, 3.0, 4.0], base=126, span=[126, 129]).done(states=True)
    yield Attention("attention-nan-key-in-second-block-only", [1.0, NAN], [1.0, 2.0], base=511).done(states=True)
    yield Attention("attention-nan-query-row-and-finite-row", [1.0, 2.0], [1.0, 2.0], rows=3, q=[1.0, 0xFFFFFFFF, 2.0]).done(states=True)
    yield Attention("attention-nan-in-one-value-channel-stays-there", [1.0, 2.0, 0.5],
                    [[1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 0xFF800001, 4.0, 5.0], [0.0] * 5]).done(states=True)
    yield Attention("attention-plus-inf-score-makes-the-row-nan", [1.0, INF, 2.0], [1.0, 2.0, 3.0]).done(states=True)
    yield Attention("attention-single-plus-inf-score-makes-the-row-nan", [INF], [1.0]).done(states=True)
    yield Attention("attention-plus-inf-score-in-other-chunk", [1.0, INF], [1.0, 2.0], base=127).done(states=True)
    yield Attention("attention-minus-inf-score-by-itself-is-not-visible", [1.0, NEG_INF, 2.0], [1.0, NAN, 3.0]).done(states=True)
    yield Attention("attention-all-scores-minus-inf-is-an-empty-row", [NEG_INF, NEG_INF], [NAN, INF]).done(states=True)
    yield Attention("attention-softcap-makes-minus-inf-visible", [NEG_INF, 0.0], [1.0, 2.0], softcap=2.0).done(states=True)
    yield Attention("attention-overflowing-value-sum-is-inf-though-the-mean-is-finite", [0.0, 0.0], [3e38, 3e38]).done(states=True)
    yield Attention("attention-subnormal-values", [0.0, 0.3, 0.7], [TINY, 0x00000007, 0x80000003]).done(states=True)
    yield Attention("attention-f16-subnormal-values-and-output", [0.0, 0.3, 0.7], [0x33800000, 0x35000000, 0x387FC000], v_type="f16").done(out="f16")
    yield Attention("attention-huge-logits-NUM-2a", [-245000.0, -240000.0], [1.0, 2.0]).done()
    yield Attention("attention-huge-equal-logits-NUM-2b", [-60000.0] * 4, [0.0, 1.0, 2.0, 3.0]).done()
    yield Attention("attention-f16-values-60000-NUM-9", [0.0] * 8, [60000.0] * 8, v_type="f16").done(out="f16")
    yield Attention("attention-out-overflows-f16-to-inf", [0.0], [[70000.0, 65519.0, 65520.0, -65520.0]]).done(out="f16")
    yield Attention("attention-nan-out-f16-is-7E00", [0.0], [[0xFFC00001, 1.0]]).done(out="f16")
    yield Attention("attention-nan-out-bf16-is-7FC0", [0.0], [[0xFFC00001, 1.0]]).done(out="bf16")


def masks():
    yield Attention("attention-masked-nan-key-and-value-do-not-count", [1.0, NAN, 2.0, INF], [1.0, NAN, 3.0, INF], mask=[1, 0, 1, 0]).done(states=True)
    yield Attention("attention-nan-outside-the-span-does-not-count", [NAN, 1.0, 2.0, INF], [NAN, 1.0, 3.0, INF], span=[1, 3]).done(states=True)
    yield Attention("attention-bias-minus-inf-hides-nan", [1.0, NAN, 2.0], [1.0, INF, 3.0], bias=[0.0, NEG_INF, 0.25]).done(states=True)
    yield Attention("attention-bias-lowest-float-is-visible", [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], bias=[LOWEST] * 3).done(states=True)
    yield Attention("attention-bias-lowest-float-beside-zero-has-p-zero-but-counts", [1.0, 2.0], [NAN, 4.0], bias=[LOWEST, 0.0]).done(states=True)
    yield Attention("attention-all-keys-masked", [1.0, 2.0], [1.0, 2.0], mask=[0, 0]).done(states=True)
    yield Attention("attention-all-keys-masked-nan-everywhere", [NAN, INF], [NAN, INF], mask=[0, 0]).done(states=True)
    yield Attention("attention-empty-row-between-others", [1.0, 2.0], [1.0, 2.0], rows=3, span=[0, 2, 1, 1, 0, 1]).done(states=True)
    yield Attention("attention-backwards-span-is-empty", [1.0, 2.0], [1.0, 2.0], span=[2, 0]).done()
    yield Attention("attention-empty-row-f16-out", [1.0], [1.0], mask=[0]).done(out="f16")
    yield Attention("attention-MSK-8-softcap-before-bias", [1.0, 3.0], [0.0, 1.0], softcap=2.0, bias=[0.0, -1.0]).done()
    yield Attention("attention-masked-key-is-absent-not-zero-weight", [0.0, 0.0, 0.0], [MINUS_TINY, 1e38, MINUS_TINY], mask=[1, 0, 1]).done(states=True)
    yield Attention("attention-row-max-ignores-masked-keys", [0.1, 300.0, 0.2], [1.0, 2.0, 3.0], mask=[1, 0, 1]).done(states=True)


def sinks():
    yield Attention("sink-MSK-11-zero", [0.0] * 4, [1.0] * 4).sink(0.0).done(states=True)
    yield Attention("sink-MSK-11-ln4", [0.0] * 4, [1.0] * 4).sink(1.3862944).done()
    yield Attention("sink-minus-inf-is-no-sink", [0.3, 0.7], [1.0, 2.0]).sink(NEG_INF).done()
    yield Attention("sink-empty-row-gives-zero-and-the-sink", [1.0], [1.0], rows=4, mask=[0, 0, 0, 0]).sink(3.5, -1000.0, NEG_INF, 1e30).done(states=True)
    yield Attention("sink-empty-row-with-minus-zero-sink-lse", [1.0], [1.0], mask=[0]).sink(MINUS_ZERO).done()
    yield Attention("sink-empty-row-with-nan-sink-lse-is-nan-out-is-zero", [1.0], [1.0], mask=[0]).sink(0xFFC00001).done()
    yield Attention("sink-empty-row-with-plus-inf-sink-lse-is-inf-out-is-zero", [1.0], [1.0], mask=[0]).sink(INF).done()
    yield Attention("sink-nan-makes-the-row-nan", [1.0, 2.0], [1.0, 2.0]).sink(0x7F800001).done(states=True)
    yield Attention("sink-plus-inf-makes-the-row-nan", [1.0, 2.0], [1.0, 2.0]).sink(INF).done(states=True)
    yield Attention("sink-dominates", [1.0, 2.0], [1.0, -2.0]).sink(50.0).done(states=True)
    yield Attention("sink-dominates-out-underflows", [1.0, 2.0], [1.0, -2.0]).sink(500.0).done(states=True)
    yield Attention("sink-dominates-an-inf-value-is-nan", [0.0], [INF]).sink(500.0).done()
    yield Attention("sink-far-below-changes-nothing", [1.0, 2.0], [1.0, -2.0]).sink(-500.0).done()
    yield Attention("sink-is-not-capped-or-biased", [1.0, 3.0], [0.25, 1.0], softcap=2.0, bias=[0.3, -1.0]).sink(7.0).done()
    rng = Rng(33)
    s = Shape(rows=4, keys=(150, 40), bases=(0, 100), head_dim=2, value_dim=2, k_type="f16", v_type="f16", sink=True, states=True)
    yield attention_case(rng, "sink-folded-last-and-once-after-all-sources", s)


# --- chunks, blocks, sources --------------------------------------------------------------------------------------------------------


def grids():
    rng = Rng(44)

    def grid(name, keys, bases=None, **fields):
        fields.setdefault("rows", 1)
        fields.setdefault("head_dim", 2)
        fields.setdefault("value_dim", 2)
        fields.setdefault("states", True)
        fields.setdefault("q_type", "f32")
        return attention_case(rng, name, Shape(keys=keys, bases=bases or (0,) * len(keys), k_type="f16", v_type="bf16", **fields))

    for keys in (1, 2, 127, 128, 129):
        yield grid("grid-%d-keys" % keys, (keys,))
    for keys in (255, 256, 257, 511, 512, 513):
        yield grid("grid-%d-keys" % keys, (keys,), head_dim=1, value_dim=1)
    yield grid("grid-three-blocks-fold-left", (1060,), head_dim=1, value_dim=1)
    yield grid("grid-three-blocks-logits-x10", (700,), (400,), head_dim=1, value_dim=1, logit_factor=0x41200000)
    yield grid("grid-first-key-mid-chunk", (100,), (77,))
    yield grid("grid-first-key-last-of-its-chunk", (130,), (127,))
    yield grid("grid-first-key-mid-block", (300,), (400,), head_dim=1)
    yield grid("grid-first-key-last-of-its-block", (3,), (511,))
    yield grid("grid-keys-end-with-their-block", (100,), (412,))
    yield grid("grid-base-is-a-multiple-of-a-chunk-not-of-a-block", (260,), (384,), head_dim=1, value_dim=1)
    yield grid("grid-base-beyond-32-bits", (90,), ((1 << 40) + 100,))
    yield grid("grid-base-around-2-to-the-31", (90,), ((1 << 31) - 50,))
    yield grid("grid-two-sources-each-from-its-own-zero", (140, 50))
    yield grid("grid-second-source-continues-mid-chunk", (70, 100), (0, 70))
    yield grid("grid-three-sources-of-one-block-each", (20, 30, 40), (0, 600, 5))
    yield grid("grid-sources-overlap-in-position", (60, 60), (10, 10))

    def picked(name, base, keys, shown, sources=1, sink=False):
        """Only the positions `shown` are visible, by mask: what is left of chunks and blocks decides which folds happen."""
        case = grid(name, (keys,) * sources, (base,) * sources, head_dim=1, value_dim=1, sink=sink)
        for n in range(sources):
            case.tensor("mask%d" % n, "u8", [1, keys], [1 if shown(n, base + i) else 0 for i in range(keys)])
        return case

    yield picked("grid-empty-chunk-inside-a-block", 0, 300, lambda n, t: t // 128 != 1)
    yield picked("grid-only-one-chunk-of-the-block", 200, 200, lambda n, t: 256 <= t < 300)
    yield picked("grid-only-the-last-chunk-of-the-block", 370, 142, lambda n, t: t >= 500)
    yield picked("grid-empty-first-chunk", 60, 120, lambda n, t: t >= 128)
    yield picked("grid-empty-block-between-full-ones", 450, 650, lambda n, t: t // 512 != 1)
    yield picked("grid-empty-first-and-last-block", 470, 600, lambda n, t: t // 512 == 1)
    yield picked("grid-one-key-in-every-chunk", 100, 540, lambda n, t: t % 128 == 101)
    yield picked("grid-every-other-key", 1, 150, lambda n, t: t % 2 == 0)
    yield picked("grid-first-source-all-masked", 70, 90, lambda n, t: n == 1, sources=2)
    yield picked("grid-middle-source-all-masked-with-sink", 90, 80, lambda n, t: n != 1, sources=3, sink=True)
    yield picked("grid-last-source-all-masked", 70, 90, lambda n, t: n == 0, sources=2)
    yield picked("grid-all-sources-masked", 120, 20, lambda n, t: False, sources=2)
    yield picked("grid-all-sources-masked-with-sink", 30, 20, lambda n, t: False, sources=2, sink=True)
    yield Attention("grid-equal-positions-equal-bits-128-zeros-then-one", [0.0] * 129, [1.0] * 128 + [-127.0]).done(states=True)
    yield Attention("grid-window-of-four-across-a-chunk-border", [0.1, 0.7, -0.3, 1.9], [0.3, 0.1, 0.7, 0.9], base=126).done(states=True)
    yield Attention("grid-same-window-inside-a-chunk-may-differ", [0.1, 0.7, -0.3, 1.9], [0.3, 0.1, 0.7, 0.9], base=10).done(states=True)
    yield Attention("grid-same-window-across-a-block-border", [0.1, 0.7, -0.3, 1.9], [0.3, 0.1, 0.7, 0.9], base=510).done(states=True)
    yield Attention("grid-max-is-of-the-chunk-not-running-inside-it", [-3.1, -1.7, 0.9, 2.3, 5.7], [0.3, 0.1, 0.7, 0.9, 0.2]).done(states=True)
    yield Attention("grid-later-chunk-has-lower-max", [9.7, 9.1, -3.0, -2.5], [0.3, 0.1, 0.7, 0.9], base=126).done(states=True)
    yield Attention("grid-later-chunk-has-higher-max", [-3.0, -2.5, 9.7, 9.1], [0.3, 0.1, 0.7, 0.9], base=126).done(states=True)
    yield Attention("grid-fold-factor-underflows-to-zero", [100.0, 1.0], [0.3, 0.1], base=127).done(states=True)


def random_looking():
    """Finite rows where nothing but the order of operations can go wrong."""
    rng = Rng(55)
    types = ("f32", "f16", "bf16")
    for n, (head_dim, value_dim) in enumerate(((1, 1), (3, 5), (7, 2), (16, 16), (17, 9), (33, 33))):
        s = Shape(rows=1 if head_dim > 16 else 2, head_dim=head_dim, value_dim=value_dim, keys=(24 if head_dim < 16 else 9,))
        s.q_type, s.k_type, s.v_type, s.out_type = types[n % 3], types[(n + 1) % 3], types[(n + 2) % 3], types[n * 2 % 3]
        yield attention_case(rng, "attention-%s-%s-%s-to-%s-dims-%d-%d" % (s.q_type, s.k_type, s.v_type, s.out_type, head_dim, value_dim), s)
    for out_type in types:
        s = Shape(rows=2, keys=(30, 100), bases=(0, 50), head_dim=3, value_dim=2, v_type="f16", softcap=0x41200000, alibi=True, biases=True, bias_type=out_type, masks=True, sink=True, out_type=out_type)
        yield attention_case(rng, "attention-every-option-out-%s" % out_type, s)
    for label, factor in (("tiny", 0x30800000), ("x30", 0x41F00000), ("x1000", 0x447A0000)):
        yield attention_case(rng, "attention-logits-%s" % label, Shape(rows=2, keys=(40,), value_dim=2, logit_factor=factor))
    case = attention_case(rng, "attention-alibi-64-bit-difference-rounds-once", Shape(rows=2, keys=(40,), bases=(1 << 40,), alibi=True))
    case.tensor("q_pos", "i64", [2], [(1 << 40) + 16777219, 3]).tensor("slope", "f32", [2], fs(0.00001, 1e-11))
    yield case
    case = attention_case(rng, "attention-alibi-second-source-uses-its-own-positions", Shape(rows=2, keys=(10, 10), bases=(0, 300), alibi=True))
    case.tensor("q_pos", "i64", [2], [310, 5])
    yield case
    yield attention_case(rng, "attention-negative-scale", Shape(scale=f(-0.7)))
    yield attention_case(rng, "attention-sixty-keys-odd-dims", Shape(rows=1, keys=(40,), head_dim=5, value_dim=7, k_type="f16"))


# --- primitives, merges, folds ----------------------------------------------------------------------------------------------------------


def softmax_rows():
    def row(name, words, mask=None, span=None):
        n = len(words)
        case = Case(name, "softmax").tensor("s", "f32", [1, n], fs(*words))
        if span:
            case.tensor("span", "i64", [1, 2], span)
        if mask:
            case.tensor("mask", "u8", [1, n], mask)
        return case.expect("w", "f32", [1, n]).expect("lse", "f32", [1])

    yield row("softmax-NUM-5-underflow", [0.0, -87.0, -87.5, -88.1, -88.5, -103.0, -104.0, -1000.0, NEG_INF])
    num6 = [9.34623, 8.43469, 7.19462, 6.59385, 5.89481, 5.67304]
    for n in range(1, 7):
        yield row("softmax-NUM-6-prefix-%d" % n, num6[:n])
    yield row("softmax-NUM-7-64-zeros", [0.0] * 64)
    yield row("softmax-NUM-8-nan", [1.0, NAN, 2.0])
    yield row("softmax-NUM-13-plus-inf", [2.5, 7.0, INF, -1.0, 0.5])
    yield row("softmax-nan-row-keeps-invisible-weights-at-zero", [1.0, 0xFFC00001, 2.0, NEG_INF, 3.0], mask=[1, 1, 1, 1, 0])
    yield row("softmax-masked-nan-and-inf-do-not-count", [1.0, NAN, 2.0, INF], mask=[1, 0, 1, 0])
    yield row("softmax-outside-span-does-not-count", [NAN, 1.0, 2.0, INF], span=[1, 3])
    yield row("softmax-all-minus-inf", [NEG_INF] * 3)
    yield row("softmax-all-masked", [1.0, NAN], mask=[0, 0])
    yield row("softmax-empty-span", [1.0, 2.0], span=[2, 2])
    yield row("softmax-minus-zeros", [MINUS_ZERO, 0.0])
    yield row("softmax-single-minus-zero-lse", [MINUS_ZERO])
    yield row("softmax-large-logits", [-245000.0, -240000.0, -240000.5])
    yield row("softmax-lowest-float-is-visible", [LOWEST, LOWEST, NEG_INF])
    rng = Rng(66)
    for keys in (15, 16, 17, 33, 127, 128, 129, 260):
        yield softmax_with(rng, "softmax-%d-keys" % keys, keys)
    yield softmax_with(rng, "softmax-chunks-count-from-the-row-start-not-the-span", 200, span=[100, 190])
    yield softmax_with(rng, "softmax-strides-count-positions-not-visible-keys", 60, mask=[1 if i % 3 else 0 for i in range(60)])
    yield softmax_with(rng, "softmax-empty-chunk-in-the-middle", 280, mask=[0 if 128 <= i < 256 else 1 for i in range(280)])


def softmax_with(rng, name, keys, span=None, mask=None):
    case = Case(name, "softmax").tensor("s", "f32", [1, keys], rng.normals(keys))
    if span:
        case.tensor("span", "i64", [1, 2], span)
    if mask:
        case.tensor("mask", "u8", [1, keys], mask)
    return case.expect("w", "f32", [1, keys]).expect("lse", "f32", [1])


def weighted_sums():
    def simple(name, w, v, kind="f32", out="f32", span=None, mask=None):
        v = [x if isinstance(x, list) else [x] for x in v]
        case = Case(name, "weighted_sum").tensor("w", "f32", [1, len(w)], fs(*w))
        case.tensor("v", kind, [len(w), len(v[0])], narrowed([f(x) for key in v for x in key], kind))
        if span:
            case.tensor("span", "i64", [1, 2], span)
        if mask:
            case.tensor("mask", "u8", [1, len(w)], mask)
        return case.expect("out", out, [1, len(v[0])])

    yield simple("weighted-sum-zero-weight-times-nan-counts", [0.5, 0.0, 0.5], [[1.0, 1.0], [NAN, 2.0], [3.0, 3.0]])
    yield simple("weighted-sum-zero-weight-times-inf-counts", [0.5, 0.0, 0.5], [[1.0, 1.0], [INF, 2.0], [3.0, 3.0]])
    yield simple("weighted-sum-masked-nan-does-not-count", [0.5, 0.0, 0.5], [1.0, NAN, 3.0], mask=[1, 0, 1])
    yield simple("weighted-sum-nan-outside-span-does-not-count", [NAN, 0.5, 0.5, 0.0], [1.0, 2.0, 3.0, INF], span=[1, 3])
    yield simple("weighted-sum-masked-nan-weight-does-not-count", [0.5, 0x7F800001, 0.5], [1.0, 2.0, 3.0], mask=[1, 0, 1])
    yield simple("weighted-sum-nothing-visible", [0.5, 0.5], [NAN, 3.0], mask=[0, 0])
    yield simple("weighted-sum-minus-zero-becomes-plus-zero", [1.0, 0.0], [MINUS_ZERO, MINUS_ZERO])
    yield simple("weighted-sum-underflow-to-minus-zero-becomes-plus-zero", [0.25], [MINUS_TINY])
    yield simple("weighted-sum-narrowing-to-minus-zero-becomes-plus-zero", [0.25], [-1e-8], out="f16")
    yield simple("weighted-sum-nan-is-canonical-f16", [1.0], [[0xFFC00001, 1.0]], out="f16")
    yield simple("weighted-sum-inf-minus-inf", [1.0, 1.0], [INF, NEG_INF])
    yield simple("weighted-sum-overflow", [1.0, 1.0], [3e38, 3e38])
    rng = Rng(77)
    for keys in (1, 127, 128, 129, 260):
        yield weighted_sum_plain(rng, "weighted-sum-%d-keys" % keys, keys)
    yield weighted_sum_plain(rng, "weighted-sum-chunks-count-from-the-row-start-not-the-span", 200, span=[100, 190])
    yield weighted_sum_plain(rng, "weighted-sum-empty-chunk-in-the-middle", 270, mask=[0 if 128 <= i < 256 else 1 for i in range(270)])


def weighted_sum_plain(rng, name, keys, span=None, mask=None):
    case = Case(name, "weighted_sum").tensor("w", "f32", [1, keys], [rng.uniform() for _ in range(keys)])
    case.tensor("v", "f16", [keys, 2], narrowed(rng.normals(keys * 2), "f16"))
    if span:
        case.tensor("span", "i64", [1, 2], span)
    if mask:
        case.tensor("mask", "u8", [1, keys], mask)
    return case.expect("out", "f32", [1, 2])


def merges():
    def pairs(name, rows, kind="f32"):
        """rows of (out1, lse1, out2, lse2), out one value or a list"""
        rows = [[x if isinstance(x, list) else [x] for x in row] for row in rows]
        n, d = len(rows), len(rows[0][0])
        case = Case(name, "merge")
        for side, at in (("1", 0), ("2", 2)):
            case.tensor("out" + side, kind, [n, d], narrowed([f(x) for row in rows for x in row[at]], kind))
            case.tensor("lse" + side, "f32", [n], [f(row[at + 1][0]) for row in rows])
        return case.expect("out", kind, [n, d]).expect("lse", "f32", [n])

    for kind in ("f32", "f16", "bf16"):
        yield pairs("merge-KVC-7-%s" % kind, [(0.0, NEG_INF, 0.0, NEG_INF), (1.0, 0.0, 0.0, NEG_INF), (0.0, NEG_INF, 1.0, 0.0), (1.0, 0.0, 3.0, 1.0986123)], kind)
        yield pairs("merge-pass-through-is-exact-%s" % kind, [(0.1, 0.7, NAN, NEG_INF), (INF, NEG_INF, 0.3, -33.3), (INF, 1.0, 5.0, NEG_INF),
                                                             (0x00010000, 1.0, 5.0, NEG_INF)], kind)
        yield pairs("merge-pass-through-minus-zero-becomes-plus-zero-%s" % kind, [(MINUS_ZERO, 1.0, 5.0, NEG_INF), (5.0, NEG_INF, MINUS_ZERO, 1.0)], kind)
        yield pairs("merge-pass-through-nan-is-canonical-%s" % kind, [(0xFFC10000, 1.0, 5.0, NEG_INF), (5.0, NEG_INF, 0xFFC10000, 1.0)], kind)
        yield pairs("merge-both-minus-zero-gives-plus-zero-%s" % kind, [(MINUS_ZERO, 1.0, MINUS_ZERO, 2.0)], kind)
    yield pairs("merge-both-empty-ignores-what-out-holds", [(NAN, NEG_INF, INF, NEG_INF), (7.0, NEG_INF, 8.0, NEG_INF)])
    yield pairs("merge-pass-through-lse-keeps-minus-zero", [(1.0, MINUS_ZERO, 5.0, NEG_INF), (5.0, NEG_INF, 1.0, MINUS_ZERO)])
    yield pairs("merge-lse-of-both-zero-signs", [(1.0, MINUS_ZERO, 3.0, 0.0), (1.0, 0.0, 3.0, MINUS_ZERO), (1.0, MINUS_ZERO, 3.0, MINUS_ZERO), (1.0, MINUS_ZERO, 3.0, -500.0)])
    yield pairs("merge-lse-nan-or-inf-gives-nan", [(1.0, NAN, 3.0, 0.0), (1.0, 0.0, 3.0, 0xFF800001), (1.0, INF, 3.0, 0.0), (1.0, 0.0, 3.0, INF), (1.0, INF, 3.0, INF)])
    yield pairs("merge-pass-through-of-lse-inf-and-nan", [(1.0, INF, 3.0, NEG_INF), (1.0, NEG_INF, 3.0, 0xFF800001)])
    yield pairs("merge-nan-in-one-channel-stays-there", [([1.0, 0x7F800001, 2.0], 0.3, [3.0, 4.0, 5.0], 0.7)])
    yield pairs("merge-weight-underflows-but-inf-counts", [(1.0, 200.0, INF, 0.0), (INF, 0.0, 1.0, 200.0), (1.0, 200.0, 3e38, 0.0)])
    yield pairs("merge-narrowing-to-minus-zero-becomes-plus-zero", [(0xB3800000, 0.0, 0.0, 3.0)], "f16")
    yield pairs("merge-cancels-to-plus-zero", [(1.0, 0.0, -1.0, 0.0), (-1.0, 0.0, 1.0, 0.0)])
    rng = Rng(88)
    for n in range(4):
        yield merge_case(rng, "merge-random-%d" % n)


def folds():
    def states(name, m, l, o, sink=None, out="f32"):
        case = Case(name, "fold").tensor("m", "f32", [1, len(m)], fs(*m)).tensor("l", "f32", [1, len(l)], fs(*l))
        o = [x if isinstance(x, list) else [x] for x in o]
        case.tensor("o", "f32", [1, len(o), len(o[0])], [f(x) for state in o for x in state])
        if sink is not None:
            case.tensor("sink", "f32", [1], [f(sink)])
        return case.expect("out", out, [1, len(o[0])]).expect("lse", "f32", [1])

    yield states("fold-one-state-passes-through", [0.3], [3.7], [[0.7, -0.1]])
    yield states("fold-all-empty", [NEG_INF] * 3, [0.0] * 3, [0.0] * 3)
    yield states("fold-all-empty-with-sink", [NEG_INF] * 2, [0.0] * 2, [0.0] * 2, sink=2.5)
    yield states("fold-all-empty-with-sink-minus-inf", [NEG_INF] * 2, [0.0] * 2, [0.0] * 2, sink=NEG_INF)
    yield states("fold-first-empty", [NEG_INF, 0.3, 0.9], [0.0, 1.5, 2.5], [0.0, 0.7, -0.2])
    yield states("fold-middle-empty", [0.3, NEG_INF, 0.9], [1.5, 0.0, 2.5], [0.7, 0.0, -0.2])
    yield states("fold-last-empty", [0.3, 0.9, NEG_INF], [1.5, 2.5, 0.0], [0.7, -0.2, 0.0])
    yield states("fold-emptiness-is-l-zero-whatever-m-and-o-hold", [0.3, 7.0, 0.9], [1.5, 0.0, 2.5], [0.7, NAN, -0.2])
    yield states("fold-nan-state-makes-the-row-nan", [0.3, NAN, 0.9], [1.5, NAN, 2.5], [0.7, NAN, -0.2])
    yield states("fold-nan-in-one-channel-only", [0.3, 0.5], [1.5, 2.5], [[0.7, 0.3], [NAN, 0.2]])
    yield states("fold-minus-zero-o-gives-plus-zero", [0.0, 0.0], [1.0, 1.0], [MINUS_ZERO, MINUS_ZERO])
    yield states("fold-inf-o-scaled-by-zero-is-nan", [0.0, 500.0], [1.0, 1.0], [INF, 1.0])
    yield states("fold-l-is-fma-of-the-left", [0.1, 0.7], [0x3FFFFFFF, 0x3FAAAAAB], [0.3, 0.1])
    yield states("fold-out-f16", [0.1, 0.7], [1.7, 1.3], [0.3, 0.1], out="f16")
    yield states("fold-with-sink-last", [0.1, 0.7, -0.4], [1.7, 1.3, 2.9], [0.3, 0.1, -0.9], sink=0.9)
    rng = Rng(99)
    for n in range(4):
        yield fold_case(rng, "fold-random-%d" % n)

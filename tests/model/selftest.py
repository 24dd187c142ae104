"""Tests of the model itself; exits 1 at the first thing that is wrong.

  selftest.py [--quick]

1. fma, add, sub, mul, div, conversions and comparisons against fractions.Fraction with a rounding written another way.
2. exp, log, tanh against 40-digit decimals: the error bounds of numerics step 8.
3. Freedoms that the text grants (which NaN an operation makes, what max does with NaN and zeros, running fma(0, v, o) for an invisible
   key of finite value) change no written word.
4. The written states of a call fold to the bytes of that call (numerics step 10), and finite rows agree with plain f64 attention.
5. Text written and read again is the same text.
"""

import decimal
import math
import struct
import sys
import time
from fractions import Fraction

import arithmetic as A
import ops
import softfloat as F
import wrong
from caseformat import Case, format_case, parse_cases
from cases import SPECIAL, Rng, Shape, attention_case, hard_fma, random_cases, random_exp, random_log, random_narrow, random_tanh
from directed import directed_cases

QUICK = "--quick" in sys.argv
decimal.getcontext().prec = 40


def fail(what, *words):
    print("FAILED %s: %s" % (what, " ".join("%08X" % w if isinstance(w, int) else str(w) for w in words)))
    sys.exit(1)


# --- 1. softfloat against Fraction ----------------------------------------------------------------------------------------------

FORMATS = {"f32": (23, 8), "f16": (10, 5), "bf16": (7, 8)}


def value(bits, kind="f32"):
    """A finite value as a Fraction, None for anything else."""
    fraction_bits, exponent_bits = FORMATS[kind]
    e = bits >> fraction_bits & (1 << exponent_bits) - 1
    m = bits & (1 << fraction_bits) - 1
    if e == (1 << exponent_bits) - 1:
        return None
    bias = (1 << exponent_bits - 1) - 1
    unit = Fraction(2) ** ((e or 1) - bias - fraction_bits)
    x = (m + (1 << fraction_bits if e else 0)) * unit
    return -x if bits >> fraction_bits + exponent_bits else x


def bisect(x, kind):
    """Nearest pattern of x >= 0 by bisection over all patterns, ties to the even one: no exponent arithmetic at all."""
    fraction_bits, exponent_bits = FORMATS[kind]
    infinity = (1 << exponent_bits) - 1 << fraction_bits
    low, high = 0, infinity
    while high - low > 1:
        middle = (low + high) // 2
        if value(middle, kind) <= x:
            low = middle
        else:
            high = middle
    # The pattern of infinity stands for the power of two that would come next.
    above = value(high, kind) if high < infinity else value(infinity - 1, kind) + (value(infinity - 1, kind) - value(infinity - 2, kind))
    twice = 2 * x - value(low, kind) - above
    return high if twice > 0 or twice == 0 and low & 1 else low


def rounded(x, zero_sign, kind="f32"):
    width = sum(FORMATS[kind]) + 1
    if x == 0:
        return zero_sign
    return (1 << width - 1 if x < 0 else 0) | bisect(abs(x), kind)


def sign_of_sum(x, y):
    """The zero of x + y when it is exact: negative only if both terms are negative zeros; x, y are bit patterns."""
    return F.SIGN if x & y & F.SIGN else 0


def test_fma(rng, count):
    tested = 0
    for _ in range(count):
        a, b, c = hard_fma(rng)
        exact = [value(w) for w in (a, b, c)]
        got = F.fma(a, b, c)
        if None in exact:
            check_not_finite(a, b, c, got)
            continue
        x = exact[0] * exact[1] + exact[2]
        zero = sign_of_sum(a ^ b, c) if exact[0] * exact[1] == 0 and exact[2] == 0 else 0
        want = rounded(x, zero)
        if got != want:
            fail("fma(a, b, c), got, want", a, b, c, got, want)
        tested += 1
    return tested


def check_not_finite(a, b, c, got):
    """The machine's f64 follows IEEE rules for inf and NaN, and what an f32 product and sum do then is the same in f64."""
    x, y, z = (struct.unpack("<f", struct.pack("<I", w))[0] for w in (a, b, c))
    want = x * y + z
    if math.isnan(want) != F.is_nan(got) or math.isinf(want) and got != (F.INF if want > 0 else F.NEG_INF):
        fail("fma(a, b, c) not finite, got, want", a, b, c, got, want)


def random_word(rng):
    choice = rng.below(8)
    if choice == 0:
        return rng.pick(SPECIAL)
    if choice < 4:
        return rng.normal()
    if choice == 4:
        return rng.below(1 << 24) | rng.pick((0, F.SIGN))
    return rng.bits32()


def test_pairs(rng, count):
    for _ in range(count):
        a, b = random_word(rng), random_word(rng)
        if rng.one_in(3):
            b = a + rng.between(-2, 2) & F.MASK32 ^ rng.pick((0, F.SIGN))
        x, y = value(a), value(b)
        f, g = (struct.unpack("<f", struct.pack("<I", w))[0] for w in (a, b))
        if F.less(a, b) != (f < g):
            fail("less", a, b)
        if not F.is_nan(a) and not F.is_nan(b) and value(F.maximum(a, b)) != value(a if f > g else b):
            fail("maximum", a, b)
        if x is None or y is None:
            for name, got, want in (("add", F.add(a, b), f + g), ("sub", F.sub(a, b), f - g), ("mul", F.mul(a, b), f * g)):
                if math.isnan(want) != F.is_nan(got) or math.isinf(want) and got != (F.INF if want > 0 else F.NEG_INF):
                    fail(name + " not finite", a, b, got, want)
            test_div_special(a, b, f, g)
            continue
        both_zero = x == 0 and y == 0
        expected = [("add", F.add(a, b), rounded(x + y, sign_of_sum(a, b) if both_zero else 0)),
                    ("sub", F.sub(a, b), rounded(x - y, sign_of_sum(a, b ^ F.SIGN) if both_zero else 0)),
                    ("mul", F.mul(a, b), rounded(x * y, (a ^ b) & F.SIGN))]
        if y:
            got = rounded(x / y, 0)
            # A quotient that rounds to zero keeps its sign, an exact zero takes it from both operands.
            expected.append(("div", F.div(a, b), got & ~F.SIGN | (a ^ b) & F.SIGN))
        else:
            test_div_special(a, b, f, g)
        for name, got, want in expected:
            if got != want:
                fail(name + "(a, b), got, want", a, b, got, want)


def test_div_special(a, b, f, g):
    got, sign = F.div(a, b), (a ^ b) & F.SIGN
    if math.isnan(f) or math.isnan(g) or f == g == 0 or math.isinf(f) and math.isinf(g):
        good = F.is_nan(got)
    elif g == 0 or math.isinf(f):
        good = got == sign | F.INF
    else:
        good = got == sign
    if not good:
        fail("div special", a, b, got)


def test_conversions(rng, count):
    for kind in ("f16", "bf16"):
        for word in range(1 << 16):
            wide, exact = F.widen(word, kind), value(word, kind)
            if exact is not None and (value(wide) != exact or wide >> 31 != word >> 15):
                fail("widen " + kind, word, wide)
            if exact is None and F.is_nan(wide) != (word & 0x7FFF > F.INFINITY[kind]):
                fail("widen " + kind, word, wide)
            if exact is not None and F.narrow(wide, kind) != word:
                fail("narrow of widen " + kind, word, wide)
        for _ in range(count):
            x = random_narrow(rng, kind) if rng.one_in(2) else random_word(rng)
            exact = value(x)
            got = F.narrow(x, kind)
            if exact is None:
                good = F.is_nan(F.widen(got, kind)) if F.is_nan(x) else F.widen(got, kind) == x
            else:
                good = got & 0x7FFF == rounded(abs(exact), 0, kind) and got >> 15 == x >> 31
            if not good:
                fail("narrow " + kind, x, got)
    for _ in range(count):
        n = rng.next() >> rng.below(64)
        for m in (n, -n):
            if F.from_int(m) != rounded(Fraction(m), 0):
                fail("from_int of %d" % m, F.from_int(m))


# --- 2. exp, log, tanh ------------------------------------------------------------------------------------------------------------


def as_decimal(bits):
    x = value(bits)
    return decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)


def ulp_error(bits, exact):
    """In units of the last place of the exact value's binade."""
    exponent = max(math.frexp(float(abs(exact)))[1] - 24, -149)
    return abs(as_decimal(bits) - exact) / (decimal.Decimal(2) ** exponent) if exact else as_decimal(bits)


def exact_tanh(x):
    if abs(x) < decimal.Decimal("1e-8"):
        return x - x ** 3 / 3
    e = (2 * x).exp()
    return (e - 1) / (e + 1)


def test_functions(rng, count):
    worst = []
    for name, function, exact, draw, bound in (("exp", A.exp, lambda x: x.exp(), random_exp, 1),
                                               ("log", A.log, lambda x: x.ln(), random_log, 1),
                                               ("tanh", A.tanh, exact_tanh, random_tanh, 2)):
        most = 0
        for _ in range(count):
            x = draw(rng)
            if name == "exp" and F.less(x, A.EXP_LOWEST):
                if A.exp(x) != 0:
                    fail("exp below its range", x)
                continue
            error = ulp_error(function(x), exact(as_decimal(x)))
            most = max(most, error)
            if error > bound:
                fail(name + " has an error of %.3f ulp at" % error, x)
        worst.append("%s %.3f" % (name, most))
    for x, want in ((0, F.ONE), (F.SIGN, F.ONE), (F.NEG_INF, 0)):
        if A.exp(x) != want:
            fail("exp", x)
    if A.log(F.ONE) != 0 or A.tanh(0) != 0 or A.tanh(F.SIGN) != F.SIGN or A.tanh(F.INF) != F.ONE or A.tanh(F.NEG_INF) != F.ONE | F.SIGN:
        fail("log(1) or tanh of 0 or inf")
    return "worst ulp: " + ", ".join(worst)


# --- 3. freedoms ------------------------------------------------------------------------------------------------------------------


def last_nan_result(*operands):
    """Another legal choice: the last NaN operand, and a positive NaN for an invalid operation, as on Arm."""
    for x in reversed(operands):
        if F.is_nan(x):
            return x | 0x400000
    return F.NAN


def nan_keeping_maximum(a, b):
    if F.is_nan(a) or F.is_nan(b):
        return F.NAN
    return b if F.less(a, b) else a


def blocks_with_idle_lanes(scores, values, base):
    """source_blocks where invisible keys of finite value take part in o with p = 0, as in kernels whose lanes are queries."""
    chunks = {}
    for i, (s, v) in enumerate(zip(scores, values)):
        chunks.setdefault((base + i) // 128, []).append((s, v))
    blocks = []
    for block in range(base // 512, (base + len(scores) - 1) // 512 + 1):
        states = []
        for c in range(block * 4, block * 4 + 4):
            keys = chunks.get(c, [])
            seen = [s for s, _ in keys if A.visible(s)]
            state = A.chunk_state(seen, [v for s, v in keys if A.visible(s)])
            if state is not None and all(F.is_nan(x) is False and x & F.INF != F.INF for _, v in keys for x in v):
                o = [0] * len(keys[0][1])
                for s, v in keys:
                    o = A.values_step(A.exp(F.sub(s, state[0])) if A.visible(s) else 0, v, o)
                state = state[0], state[1], o
            states.append(state)
        blocks.append(A.fold_chunks(states))
    return blocks


FREEDOMS = {
    "NaN of the last operand, positive when invalid": [(F, "nan_result", last_nan_result), (F, "INVALID", F.NAN)],
    "max keeps NaN and the first of equals": [(A, "maximum", nan_keeping_maximum)],
    "lanes that do not see a key add 0 * v": [(A, "source_blocks", blocks_with_idle_lanes)],
}


def test_freedoms(cases):
    for name, changes in FREEDOMS.items():
        with wrong.replaced(changes):
            for case in cases:
                words = ops.compute(case)
                for field, tensor in case.expects.items():
                    if words[field] != tensor.words:
                        fail("%s changes %s of %s" % (name, field, case.name))


# --- 4. states fold to the call, and f64 ----------------------------------------------------------------------------------------------


def test_states_fold(cases):
    tested = 0
    for case in cases:
        if case.op != "attention" or "m" not in case.expects:
            continue
        fold = Case(case.name, "fold")
        fold.tensors = {name: case.expects[name] for name in ("m", "l", "o")}
        if "sink" in case.tensors:
            fold.tensors["sink"] = case.tensors["sink"]
        fold.expects = {name: case.expects[name] for name in ("out", "lse")}
        words = ops.compute(fold)
        if any(words[n] != case.expects[n].words for n in ("out", "lse")):
            fail("the states of %s do not fold to its out and lse" % case.name)
        tested += 1
    return tested


def to_float(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def test_against_f64(rng, count):
    """Plain softmax in f64 on small rows with a sink and a bias: catches a formula that is wrong rather than imprecise."""
    worst = 0.0
    for n in range(count):
        s = Shape(rows=1, keys=(rng.between(1, 200), rng.between(1, 20)), bases=(rng.below(600), 3), head_dim=rng.between(1, 9),
                  value_dim=rng.between(1, 4), biases=True, alibi=True, softcap=0x41200000, sink=True, spans="maybe", masks="maybe")
        case = ops.fill(attention_case(rng, "f64-%d" % n, s))
        got = [to_float(w) for w in case.expects["out"].words + case.expects["lse"].words]
        want = f64_attention(case, s)
        for a, b in zip(got, want):
            if not (a == b or abs(a - b) <= 3e-5 * (1 + abs(b))):
                fail("case %d differs from f64: %r, %r" % (n, a, b))
            if a != b:
                worst = max(worst, abs(a - b))
    return "largest difference from f64 %.1e" % worst


def f64_attention(case, s):
    q, scale = [to_float(w) for w in case.tensors["q"].words], to_float(case.params["scale"][1])
    cap = to_float(case.params["softcap"][1])
    logits, values = [], []
    for n, base in zip("01", s.bases):
        k, v = ([[to_float(w) for w in row] for row in case.tensors[x + n].rows()] for x in "kv")
        bias = [to_float(F.widen(w, case.tensors["bias" + n].kind)) for w in case.tensors["bias" + n].words]
        span = case.tensors["span" + n].words if "span" + n in case.tensors else (base, base + len(k))
        mask = case.tensors["mask" + n].words if "mask" + n in case.tensors else [1] * len(k)
        for i, key in enumerate(k):
            distance = abs(case.tensors["q_pos"].words[0] - base - i)
            x = cap * math.tanh(sum(a * b for a, b in zip(q, key)) * scale / cap) - to_float(case.tensors["slope"].words[0]) * distance + bias[i]
            if span[0] <= base + i < span[1] and mask[i] and x > -math.inf:
                logits.append(x)
                values.append(v[i])
    sink = to_float(case.tensors["sink"].words[0])
    if sink > -math.inf:
        logits.append(sink)
        values.append([0.0] * s.value_dim)
    if not logits:
        return [0.0] * s.value_dim + [-math.inf]
    m = max(logits)
    w = [math.exp(x - m) for x in logits]
    return [sum(a * v[c] for a, v in zip(w, values)) / sum(w) for c in range(s.value_dim)] + [m + math.log(sum(w))]


# --- 5. text ------------------------------------------------------------------------------------------------------------------------------


def test_text(cases):
    text = "".join(map(format_case, cases))
    if "".join(map(format_case, parse_cases(text.splitlines()))) != text:
        fail("text written and read again differs")


def first_random(count, seed):
    source = random_cases(seed)
    return [ops.fill(next(source)) for _ in range(count)]


def main():
    rng = Rng(2024)
    share = 10 if QUICK else 1

    def step(name, function, *arguments):
        start = time.time()
        detail = function(*arguments)
        print("ok %-48s %5.1f s  %s" % (name, time.time() - start, "" if detail is None else detail), flush=True)

    step("fma against Fraction", test_fma, rng, 60000 // share)
    step("add, sub, mul, div, less, max against Fraction", test_pairs, rng, 20000 // share)
    step("conversions against Fraction", test_conversions, rng, 10000 // share)
    step("exp, log, tanh against 40 digits", test_functions, rng, 10000 // share)
    cases = [ops.fill(c) for c in directed_cases()] + first_random(250 // share, 7)
    step("freedoms change nothing", test_freedoms, cases)
    step("states fold to the call", test_states_fold, cases)
    step("attention against f64", test_against_f64, rng, 200 // share)
    step("text round trip", test_text, cases)


if __name__ == "__main__":
    main()

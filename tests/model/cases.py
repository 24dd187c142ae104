"""Random cases from integer code alone (splitmix64), so that the same seed gives the same words on every machine and version.

`random_cases(seed)` yields cases without end; their expects are placeholders until ops.fill. Most values are roughly normal; special
values go into a minority of cases, so that most rows stay finite and the order of their operations is what gets compared.
"""

from caseformat import Case
from softfloat import ONE, SIGN, add, from_int, mul, narrow, widen

NORMAL_UNIT = 0x2FDDB3D7       # 2^-32 * sqrt(12 / 4), see Rng.normal
FLOATS = ("f32", "f16", "bf16")

SPECIAL = [0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FC12345, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000, 0x00000001,
           0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7149F2CA, 0xF149F2CA, 0x0DA24260, 0x8DA24260]
NOT_FINITE = [0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF923456, 0x7F800000, 0xFF800000]


class Rng:
    """splitmix64."""

    def __init__(self, seed):
        self.state = seed & 0xFFFFFFFFFFFFFFFF

    def next(self):
        self.state = self.state + 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        z = (z ^ z >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        return z ^ z >> 31

    def below(self, n):
        return (self.next() >> 11) % n

    def between(self, low, high):
        """low <= result <= high"""
        return low + self.below(high - low + 1)

    def one_in(self, n):
        return self.below(n) == 0

    def pick(self, items):
        return items[self.below(len(items))]

    def bits32(self):
        return self.next() >> 32

    def normal(self):
        """Roughly N(0, 1) with a full mantissa: the sum of four uniform 32-bit integers, centred, over its deviation."""
        a, b = self.next(), self.next()
        total = (a >> 32) + (a & 0xFFFFFFFF) + (b >> 32) + (b & 0xFFFFFFFF) - 0x1FFFFFFFE
        return mul(from_int(total), NORMAL_UNIT)   # four uniforms of width 2^32 have variance 4 * 2^64 / 12

    def normals(self, count, factor=ONE):
        return [mul(self.normal(), factor) for _ in range(count)]

    def uniform(self):
        """In [0, 1)."""
        return mul(from_int(self.next() >> 40), 0x33800000)


def narrowed(words, kind):
    return [narrow(w, kind) for w in words]


def sprinkle(rng, words, one_in, values=SPECIAL):
    """Replaces about one word in `one_in`."""
    return [rng.pick(values) if rng.one_in(one_in) else w for w in words]


# --- element-wise cases ---------------------------------------------------------------------------------------------------------


def hard_fma(rng):
    """A triple that a sloppy fma gets wrong: near a tie, cancelling, subnormal, overflowing, or any bits at all."""
    family = rng.below(7)
    sign = rng.pick((0, SIGN))
    if family == 0:      # c plus almost exactly half an ulp: rounding to f64 first loses the difference
        e = rng.between(60, 200)
        i = rng.between(0, 3)
        c = e << 23 | rng.below(1 << 23)
        a = ONE + i
        b = (e - 24 << 23) - rng.between(0, 3) + rng.between(0, 3)
        return a, b ^ sign, c
    if family == 1:      # a 25-bit odd product (a tie) and a tiny c on either side of it
        u, v = rng.below(1 << 11) * 2 + 1 | 1 << 11, rng.below(1 << 12) * 2 + 1 | 1 << 12
        up, down = rng.between(40, 120), rng.between(40, 120)
        a, b = from_int(u), from_int(v)
        return a + (up - 80 << 23), b + (down - 80 << 23) ^ sign, rng.pick((0, 1, 0x80000001, 0x00400000, 0x80800000, 0x8A000000, 0x0A000000))
    if family == 2:      # results around the smallest normal
        a = rng.between(20, 100) << 23 | rng.below(1 << 23)
        b = max(1, 127 + rng.between(-4, 3) - (a >> 23)) << 23 | rng.below(1 << 23)
        return a, b ^ sign, rng.pick((0, SIGN, rng.below(1 << 24), rng.below(1 << 24) | SIGN, 1, 0x80000001))
    if family == 3:      # cancellation: c = -(a * b) rounded, so the result is the rounding error
        a, b = rng.normal(), rng.normal()
        return a, b, mul(a, b) ^ SIGN ^ rng.pick((0, 0, 1))
    if family == 4:      # around the largest finite number
        a = rng.between(180, 200) << 23 | rng.below(1 << 23)
        b = 127 + 254 - (a >> 23) << 23 | rng.pick((0, 0x7FFFFF, rng.below(1 << 23)))
        return a, b, rng.pick((0x73000000, 0xF3000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x72FFFFFF, rng.bits32())) ^ sign
    if family == 5:      # factors far apart from c in both directions
        return rng.bits32() & 0xBFFFFFFF, rng.bits32() & 0xBFFFFFFF, rng.bits32()
    return tuple(rng.pick(SPECIAL) if rng.one_in(4) else rng.bits32() for _ in range(3))


def fma_case(rng, name, count=32):
    a, b, c = zip(*[hard_fma(rng) for _ in range(count)])
    return (Case(name, "fma").tensor("a", "f32", [count], list(a)).tensor("b", "f32", [count], list(b))
            .tensor("c", "f32", [count], list(c)).expect("y", "f32", [count]))


def unary_case(name, op, words):
    return Case(name, op).tensor("x", "f32", [len(words)], words).expect("y", "f32", [len(words)])


def random_exp(rng):
    """[-100, 0], with more of the small arguments than a uniform draw has."""
    return mul(rng.uniform(), rng.pick((0xC2C80000, 0xC1200000, 0xBF800000, 0xB8000000)))


def random_log(rng):
    """[2^-24, 2^40], half of them near 1."""
    if rng.one_in(2):
        return 0x3F800000 + rng.between(-(1 << 22), 1 << 22)
    return rng.between(0x33800000, 0x53800000)


def random_tanh(rng):
    return rng.between(0x38000000, 0x41800000) | rng.pick((0, SIGN))


def elementwise_case(rng, name):
    which = rng.below(6)
    count = rng.between(1, 40)
    if which == 0:
        return fma_case(rng, name, count)
    if which == 1:
        return unary_case(name, "exp", [random_exp(rng) for _ in range(count)])
    if which == 2:
        return unary_case(name, "log", [random_log(rng) for _ in range(count)])
    if which == 3:
        return unary_case(name, "tanh", [random_tanh(rng) for _ in range(count)])
    kind = rng.pick(("f16", "bf16"))
    if which == 4:
        words = [rng.below(1 << 16) for _ in range(count)]
        return Case(name, "widen").tensor("x", kind, [count], words).expect("y", "f32", [count])
    words = [random_narrow(rng, kind) for _ in range(count)]
    return Case(name, "narrow").tensor("x", "f32", [count], words).expect("y", kind, [count])


def random_narrow(rng, kind):
    """Exact values of the narrow type, ties between two of them, and their neighbours."""
    exact = widen(rng.below(1 << 16) & 0xFBFF, kind)
    choice = rng.below(4)
    if choice == 0:
        return rng.bits32()
    half = 0x8000 if kind == "bf16" else 0x1000
    return exact + (0, half, half + rng.pick((-1, 1)))[choice - 1]


# --- keys, masks, spans -----------------------------------------------------------------------------------------------------------


def key_count(rng):
    n = rng.below(20)
    if n < 8:
        return rng.between(1, 40)
    if n < 15:
        return rng.between(41, 300)
    if n < 18:
        return rng.between(126, 130)
    return rng.pick((255, 256, 257, 384, 385, 511, 512, 513, rng.between(514, 1300)))


def random_base(rng):
    """0 half of the time; else a first key that stands mid-chunk, mid-block, at a border, or very far out."""
    if rng.one_in(2):
        return 0
    return rng.pick((rng.between(1, 127), rng.between(128, 2000), 128 * rng.between(1, 9), 512 * rng.between(1, 5) - 1,
                     (1 << 31) - rng.between(1, 100), (1 << 40) + rng.between(0, 600)))


def random_span(rng, rows, keys, base):
    """Row by row: a prefix, a window or nothing. Both ends stay within the tensor; an empty one may be backwards."""
    words = []
    for row in range(rows):
        kind = rng.below(8)
        if kind == 0:
            first = last = rng.between(0, keys)
            if first > 0 and rng.one_in(2):
                last = first - 1
        elif kind < 4:
            first, last = 0, rng.between(1, keys)
        else:
            first = rng.below(keys)
            last = rng.between(first + 1, keys)
        words += [base + first, base + last]
    return words


def random_mask(rng, rows, keys):
    one_in = rng.pick((2, 4, 20))
    words = []
    for row in range(rows):
        if rng.one_in(12):
            words += [0] * keys
        else:
            words += [0 if rng.one_in(one_in) else 1 for _ in range(keys)]
    return words


def add_bias(rng, case, name, rows, keys, kind=None):
    kind = kind or rng.pick(FLOATS)
    words = rng.normals(rows * keys, rng.pick((0x3F800000, 0x40800000, 0x3C000000)))
    words = sprinkle(rng, words, rng.pick((5, 20)), [0xFF800000])
    if rng.one_in(6):
        words = sprinkle(rng, words, 20, [0xFF7FFFFF, 0x80000000])   # in f16 the first becomes -inf, which is a mask
    case.tensor(name, kind, [rows, keys], narrowed(words, kind))


def hidden_from_all(case, suffix, rows, keys, base):
    """Indices of keys that no row's span or mask lets through."""
    hidden = set(range(keys))
    for row in range(rows):
        for i in list(hidden):
            shown = True
            if "span" + suffix in case.tensors:
                first, last = case.tensors["span" + suffix].rows()[row]
                shown = first <= base + i < last
            if shown and "mask" + suffix in case.tensors:
                shown = case.tensors["mask" + suffix].rows()[row][i] != 0
            if shown:
                hidden.discard(i)
    return hidden


def poison(rng, words, width, rows):
    """Fills whole rows with values that must not be noticed."""
    for i in rows:
        words[i * width:(i + 1) * width] = [rng.pick(NOT_FINITE) for _ in range(width)]


# --- scores and attention -----------------------------------------------------------------------------------------------------------


class Shape:
    """What a score or attention case looks like; `random_shape` draws one, directed.py sets single fields."""

    rows = 2
    head_dim = 4
    value_dim = 3
    keys = (20,)
    bases = (0,)
    q_type = k_type = v_type = out_type = "f32"
    scale = 0x3F000000
    logit_factor = ONE
    softcap = None
    alibi = False
    spans = masks = biases = False      # True: every source has one; "maybe": each source tosses a coin
    bias_type = None
    sink = False
    states = False
    dirty = None                        # which of q, k, v get special values
    poisoned = False

    def __init__(self, **fields):
        for name, value in fields.items():
            if not hasattr(Shape, name):
                raise AttributeError(name)
            setattr(self, name, value)


def random_shape(rng):
    sources = rng.pick((1, 1, 1, 1, 1, 1, 2, 2, 2, 3))
    keys = tuple(key_count(rng) for _ in range(sources))
    widest = 20 if max(keys) <= 130 else 8 if max(keys) <= 300 else 2
    s = Shape(rows=rng.pick((1, 1, 2, 2, 3, 4)) if max(keys) <= 300 else 1, keys=keys, bases=tuple(random_base(rng) for _ in keys))
    s.head_dim, s.value_dim = rng.between(1, widest), rng.between(1, widest)
    if rng.one_in(25) and max(keys) <= 40:
        s.head_dim, s.value_dim = rng.pick((32, 33, 59, 64, 80)), rng.pick((31, 32, 65))
    s.q_type, s.k_type, s.v_type, s.out_type = (rng.pick(("f32", "f32", "f16", "bf16")) for _ in range(4))
    s.scale = rng.pick((0x3F800000, 0x3F000000, 0x3EB504F3, 0x3DB504F3, rng.uniform() | 1, 0xBE800000))
    s.logit_factor = rng.pick((ONE, ONE, ONE, 0x40800000, 0x41200000, 0x41F00000, 0x3E000000, 0x30800000))
    if rng.one_in(4):
        s.softcap = rng.pick((0x42480000, 0x41F00000, 0x40000000, 0x3F000000, rng.uniform() | 1, 0x00000000))
    s.alibi = rng.one_in(4)
    s.spans, s.masks, s.biases = (rng.pick((False, False, "maybe")) for _ in range(3))
    s.sink = rng.one_in(3)
    s.states = rng.one_in(3)
    if rng.one_in(8):
        s.dirty = rng.pick(("q", "k", "v", "v", "kv"))
    s.poisoned = rng.one_in(2)
    return s


def random_values(rng, count, factor, dirty):
    words = rng.normals(count, factor)
    return sprinkle(rng, words, max(8, count // 2)) if dirty else words


def add_query(rng, case, s):
    q = random_values(rng, s.rows * s.head_dim, s.logit_factor, s.dirty and "q" in s.dirty)
    case.param("scale", "f32", s.scale)
    if s.softcap is not None:
        case.param("softcap", "f32", s.softcap)
    case.tensor("q", s.q_type, [s.rows, s.head_dim], narrowed(q, s.q_type))


def add_alibi(rng, case, s):
    where = s.bases[0] + s.keys[0]
    case.tensor("q_pos", "i64", [s.rows], [where + rng.between(-s.keys[0], 20) for _ in range(s.rows)])
    case.tensor("slope", "f32", [s.rows], [rng.pick((0x3F000000, 0x3D800000, 0x3B800000, rng.uniform(), mul(rng.uniform(), 0x3C000000)))
                                           for _ in range(s.rows)])


def add_source(rng, case, s, suffix, keys, base):
    """k, v (not for scores) and the options of one source."""
    def wanted(option):
        return rng.one_in(2) if option == "maybe" else option

    with_values = case.op == "attention"
    if base:
        case.param("base" + suffix, "i64", base)
    k = random_values(rng, keys * s.head_dim, ONE, s.dirty and "k" in s.dirty)
    v = random_values(rng, keys * s.value_dim, ONE, s.dirty and "v" in s.dirty) if with_values else []
    if wanted(s.spans):
        case.tensor("span" + suffix, "i64", [s.rows, 2], random_span(rng, s.rows, keys, base))
    if wanted(s.masks):
        case.tensor("mask" + suffix, "u8", [s.rows, keys], random_mask(rng, s.rows, keys))
    if wanted(s.biases):
        add_bias(rng, case, "bias" + suffix, s.rows, keys, s.bias_type)
    if s.poisoned:
        hidden = sorted(hidden_from_all(case, suffix, s.rows, keys, base))
        poison(rng, k, s.head_dim, hidden)
        if with_values:
            poison(rng, v, s.value_dim, hidden)
    case.tensor("k" + suffix, s.k_type, [keys, s.head_dim], narrowed(k, s.k_type))
    if with_values:
        case.tensor("v" + suffix, s.v_type, [keys, s.value_dim], narrowed(v, s.v_type))


def attention_case(rng, name, s):
    case = Case(name, "attention")
    add_query(rng, case, s)
    for n, (keys, base) in enumerate(zip(s.keys, s.bases)):
        add_source(rng, case, s, str(n), keys, base)
    if s.alibi:
        add_alibi(rng, case, s)
    if s.sink:
        sink = rng.normals(s.rows, rng.pick((ONE, 0x40800000)))
        case.tensor("sink", "f32", [s.rows], sprinkle(rng, sink, 5, [0xFF800000]))
    return expect_attention(case, s.states, s.out_type)


def expect_attention(case, states=False, out_type="f32"):
    """The placeholders, from the shapes of the inputs."""
    rows, value_dim = case.tensors["q"].dims[0], case.tensors["v0"].dims[1]
    case.expect("out", out_type, [rows, value_dim]).expect("lse", "f32", [rows])
    if states:
        blocks = 0
        n = 0
        while "k%d" % n in case.tensors:
            base = case.params.get("base%d" % n, ("i64", 0))[1]
            blocks += (base + case.tensors["k%d" % n].dims[0] - 1) // 512 - base // 512 + 1
            n += 1
        case.expect("m", "f32", [rows, blocks]).expect("l", "f32", [rows, blocks]).expect("o", "f32", [rows, blocks, value_dim])
    return case


def scores_case(rng, name, s):
    case = Case(name, "scores")
    add_query(rng, case, s)
    add_source(rng, case, s, "", s.keys[0], s.bases[0])
    if s.alibi:
        add_alibi(rng, case, s)
    return case.expect("s", "f32", [s.rows, s.keys[0]])


# --- primitives on rows, merges -------------------------------------------------------------------------------------------------------


def add_row_options(rng, case, rows, keys):
    if rng.one_in(3):
        case.tensor("span", "i64", [rows, 2], random_span(rng, rows, keys, 0))
    if rng.one_in(3):
        case.tensor("mask", "u8", [rows, keys], random_mask(rng, rows, keys))


def softmax_case(rng, name, rows=None, keys=None):
    rows = rows or rng.between(1, 4)
    keys = keys or key_count(rng)
    s = rng.normals(rows * keys, rng.pick((ONE, 0x40800000, 0x41F00000, 0x33000000)))
    if rng.one_in(3):
        s = sprinkle(rng, s, 6, [0xFF800000])
    if rng.one_in(8):
        s = sprinkle(rng, s, rows * keys)
    case = Case(name, "softmax").tensor("s", "f32", [rows, keys], s)
    add_row_options(rng, case, rows, keys)
    return case.expect("w", "f32", [rows, keys]).expect("lse", "f32", [rows])


def weighted_sum_case(rng, name, rows=None, keys=None, value_dim=None):
    rows = rows or rng.between(1, 3)
    keys = keys or key_count(rng)
    value_dim = value_dim or rng.between(1, 20 if keys <= 130 else 4)
    kind = rng.pick(FLOATS)
    case = Case(name, "weighted_sum").tensor("w", "f32", [rows, keys], sprinkle(rng, [rng.uniform() for _ in range(rows * keys)], 30, [0]))
    v = random_values(rng, keys * value_dim, ONE, rng.one_in(8))
    add_row_options(rng, case, rows, keys)
    if rng.one_in(2):
        poison(rng, v, value_dim, sorted(hidden_from_all(case, "", rows, keys, 0)))
    case.tensor("v", kind, [keys, value_dim], narrowed(v, kind))
    return case.expect("out", rng.pick(FLOATS), [rows, value_dim])


def merge_case(rng, name):
    rows, value_dim, kind = rng.between(1, 5), rng.between(1, 20), rng.pick(FLOATS)
    case = Case(name, "merge")
    dirty = rng.one_in(4)
    for side in "12":
        out = random_values(rng, rows * value_dim, ONE, dirty)
        lse = sprinkle(rng, rng.normals(rows, rng.pick((ONE, 0x41200000))), 6, [0xFF800000])
        case.tensor("out" + side, kind, [rows, value_dim], narrowed(out, kind)).tensor("lse" + side, "f32", [rows], lse)
    return case.expect("out", kind, [rows, value_dim]).expect("lse", "f32", [rows])


def fold_case(rng, name):
    """States as a splitting caller would have them: l between 1 and some hundreds, empty ones flagged by l = 0."""
    rows, n, value_dim = rng.between(1, 4), rng.between(1, 7), rng.between(1, 12)
    factor = rng.pick((ONE, 0x41200000))
    m, l = rng.normals(rows * n, factor), [add(ONE, mul(rng.uniform(), 0x43800000)) for _ in range(rows * n)]
    o = rng.normals(rows * n * value_dim, 0x41200000)
    for i in range(rows * n):
        if rng.one_in(5):
            m[i], l[i] = 0xFF800000, 0
            o[i * value_dim:(i + 1) * value_dim] = [0] * value_dim
    if rng.one_in(8):
        o = sprinkle(rng, o, len(o))
    case = Case(name, "fold").tensor("m", "f32", [rows, n], m).tensor("l", "f32", [rows, n], l)
    case.tensor("o", "f32", [rows, n, value_dim], o)
    if rng.one_in(2):
        case.tensor("sink", "f32", [rows], sprinkle(rng, rng.normals(rows, ONE), 5, [0xFF800000]))
    return case.expect("out", rng.pick(FLOATS), [rows, value_dim]).expect("lse", "f32", [rows])


def random_cases(seed):
    """Case n depends on the seed and n alone, so one case can be looked at without the ones before it."""
    n = 0
    while True:
        rng = Rng(seed * 0x9E3779B97F4A7C15 + n * 0xD1342543DE82EF95)
        kind = rng.below(20)
        if kind < 11:
            yield attention_case(rng, "random-attention-%d-%d" % (seed, n), random_shape(rng))
        elif kind < 13:
            yield scores_case(rng, "random-scores-%d-%d" % (seed, n), random_shape(rng))
        elif kind < 15:
            yield softmax_case(rng, "random-softmax-%d-%d" % (seed, n))
        elif kind < 17:
            yield weighted_sum_case(rng, "random-weighted-sum-%d-%d" % (seed, n))
        elif kind == 17:
            yield merge_case(rng, "random-merge-%d-%d" % (seed, n))
        elif kind == 18:
            yield fold_case(rng, "random-fold-%d-%d" % (seed, n))
        else:
            yield elementwise_case(rng, "random-elementwise-%d-%d" % (seed, n))
        n += 1

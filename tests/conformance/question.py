"""What a case is made of, and the inputs that cases share."""
import dataclasses
import math

from arrays import stored


@dataclasses.dataclass
class Question:
    """One case before its answers are computed. `others` maps the name of each other answer to what `definition.attention` is told for
    it, or has "refuses", which is not computed. Arrays besides q, k and v are named by the options that take them."""
    id: str
    subject: str
    asks: str
    field: list  # ids of tests/cases.txt
    section: str  # heading of docs/semantics.md
    arrays: dict
    options: dict
    expected: str
    others: dict
    signed_zeros: bool = False


def floats(shape, values, kind="f32"):
    return stored(kind, shape, list(values))


def same(shape, value, kind="f32"):
    return floats(shape, [value] * math.prod(shape), kind)


def flags(shape, values):
    return stored("bool", shape, [bool(x) for x in values])


def ramp(shape, a, b, kind="f32"):
    """Numbers below 1 that are exact in f16."""
    return floats(shape, [((a * i + b) % 61 - 30) / 32 for i in range(math.prod(shape))], kind)


def trio(heads, q_len, kv_len, dim, value_dim=None, kv_heads=None):
    kv_heads = kv_heads or heads
    return {"q": ramp((heads, q_len, dim), 3, 1), "k": ramp((kv_heads, kv_len, dim), 5, 2),
            "v": ramp((kv_heads, kv_len, value_dim or dim), 7, 3)}


def counting(heads, q_len, kv_len, dim=8):
    """q = 0, so all scores are equal, and v[j] = j: the output is the mean of the numbers of the keys that a row sees."""
    return {"q": same((heads, q_len, dim), 0), "k": ramp((heads, kv_len, dim), 5, 2),
            "v": floats((heads, kv_len, dim), [float(j) for _ in range(heads) for j in range(kv_len) for _ in range(dim)])}


def given(scores, values):
    """One row whose scores, at a scale of 1, are these; values are rows of v, repeated up to 8 channels, which some want at least."""
    return {"q": floats((1, 1, 8), [1] + [0] * 7), "k": floats((1, len(scores), 8), [x for s in scores for x in [s] + [0] * 7]),
            "v": floats((1, len(values), 8), [row[c % len(row)] for row in values for c in range(8)])}


def identity(n):
    """As v, they make weights of the output."""
    return [[float(i == j) for j in range(n)] for i in range(n)]

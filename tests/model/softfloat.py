"""IEEE binary32 in exact integer arithmetic: round to nearest even, subnormals kept, nothing read from the machine's own floats.

A value is its bit pattern, an int in [0, 2^32). A finite one is mantissa * 2^(exponent - 150) with exponent >= 1, which holds for
subnormals too. Every operation forms the exact result as an integer (or an integer with a sticky bit) and rounds it once in `pack`.

NaN: which payload and sign a NaN gets is left to hardware by IEEE 754; here the first NaN operand wins and is made quiet, and an
invalid operation makes INVALID, a *negative* NaN as on x86. The arithmetic must not let this show: selftest.py swaps the choice.
"""

SIGN = 0x80000000
INF = 0x7F800000
NEG_INF = 0xFF800000
ZERO = 0
ONE = 0x3F800000
NAN = 0x7FC00000          # the canonical one (numerics step 7)
INVALID = 0xFFC00000
MASK32 = 0xFFFFFFFF
_FRACTION = 0x7FFFFF
_HIDDEN = 0x800000
_MAGNITUDE = 0x7FFFFFFF


def is_nan(a):
    return a & _MAGNITUDE > INF


def nan_result(*operands):
    """The NaN an operation returns when an operand is NaN or the operation is invalid."""
    for x in operands:
        if x & _MAGNITUDE > INF:
            return x | 0x400000
    return INVALID


def split(a):
    """(mantissa, exponent) of a finite value's magnitude."""
    e = a >> 23 & 255
    return (a & _FRACTION | _HIDDEN, e) if e else (a & _FRACTION, 1)


def round_shift(s, n):
    """s / 2^n rounded to nearest even, for integers s >= 0; exact when n <= 0."""
    if n <= 0:
        return s << -n
    # Adding half an ulp less one, plus the bit that will be last, carries exactly when the rest is above half, or half and odd.
    return (s + (1 << n - 1) - 1 + (s >> n & 1)) >> n


def pack(sign, s, e):
    """s * 2^(e - 150) rounded to binary32; sign is 0 or SIGN. s = 0 gives the zero of that sign."""
    if s == 0:
        return sign
    n = s.bit_length() - 24
    if e + n < 1:
        n = 1 - e                       # the last bit of a subnormal is worth 2^-149
    r = (e + n - 1 << 23) + round_shift(s, n)   # a carry out of the mantissa raises the exponent by itself
    return sign | (r if r < INF else INF)


def fma(a, b, c):
    """a * b + c with one rounding."""
    ea = a >> 23 & 255
    eb = b >> 23 & 255
    e = c >> 23 & 255
    if not (0 < ea < 255 and 0 < eb < 255 and e < 255):
        return _fma_rare(a, b, c)
    m = c & 0x7FFFFF
    if e:
        m |= 0x800000
    else:
        e = 1
    p = (a & 0x7FFFFF | 0x800000) * (b & 0x7FFFFF | 0x800000)   # times 2^(ea + eb - 300)
    d = ea + eb - 150 - e
    if d >= 0:
        p <<= d
    else:
        m <<= -d
        e += d
    sign = c & 0x80000000
    if (a ^ b ^ c) & 0x80000000:
        s = m - p
        if s <= 0:
            if s == 0:
                return 0                # exact cancellation is +0 when rounding to nearest
            s = -s
            sign ^= 0x80000000
    else:
        s = m + p
    # `pack` written out: this is the inner loop of everything.
    n = s.bit_length() - 24
    if e + n < 1:
        n = 1 - e
    if n > 0:
        r = (e + n - 1 << 23) + ((s + (1 << n - 1) - 1 + (s >> n & 1)) >> n)
    else:
        r = (e + n - 1 << 23) + (s << -n)
    return sign | r if r < 0x7F800000 else sign | 0x7F800000


def _fma_rare(a, b, c):
    """fma where a factor is zero or subnormal or anything is not finite."""
    if is_nan(a) or is_nan(b) or is_nan(c):
        return nan_result(a, b, c)
    sign = (a ^ b) & SIGN
    a &= _MAGNITUDE
    b &= _MAGNITUDE
    if a == INF or b == INF:
        if a == 0 or b == 0 or c == sign ^ NEG_INF:
            return INVALID
        return sign | INF
    if c & _MAGNITUDE == INF:
        return c
    ma, ea = split(a)
    mb, eb = split(b)
    return _sum(sign, ma * mb, ea + eb - 150, c)


def _sum(sign, p, e, c):
    """(-1)^sign * p * 2^(e - 150) + c, c finite."""
    m, ec = split(c)
    low = min(e, ec)
    p <<= e - low
    m <<= ec - low
    if sign == c & SIGN:
        return pack(sign, p + m, low)
    if p == m:
        return ZERO
    return pack(sign, p - m, low) if p > m else pack(sign ^ SIGN, m - p, low)


def add(a, b):
    if a & INF == INF or b & INF == INF:
        if is_nan(a) or is_nan(b):
            return nan_result(a, b)
        if a & b & INF == INF and a != b:
            return INVALID
        return a if a & INF == INF else b
    m, e = split(a)
    return _sum(a & SIGN, m, e, b)


def sub(a, b):
    return add(a, b if is_nan(b) else b ^ SIGN)


def mul(a, b):
    # A zero of the product's own sign changes neither a rounded product nor the sign of a zero one.
    return fma(a, b, (a ^ b) & SIGN)


def div(a, b):
    if is_nan(a) or is_nan(b):
        return nan_result(a, b)
    sign = (a ^ b) & SIGN
    a &= _MAGNITUDE
    b &= _MAGNITUDE
    if a == b and (a == 0 or a == INF):
        return INVALID
    if a == INF or b == 0:
        return sign | INF
    if a == 0 or b == INF:
        return sign
    ma, ea = split(a)
    mb, eb = split(b)
    q, rest = divmod(ma << 50, mb)      # at least 27 bits, so a sticky last bit cannot be mistaken for half an ulp
    return pack(sign, q | (rest != 0), ea - eb + 100)


def neg(a):
    """Flips the sign bit, of a NaN too: no arithmetic."""
    return a ^ SIGN


def from_int(n):
    """An integer of any size, rounded once; 0 is +0."""
    return pack(SIGN if n < 0 else 0, abs(n), 150)


def order(a):
    """An integer that sorts like the value: -0 and +0 are equal. Not for NaN."""
    return a if a < SIGN else SIGN - a


def less(a, b):
    if is_nan(a) or is_nan(b):
        return False
    return order(a) < order(b)


def maximum(a, b):
    """The second operand where either is NaN or both are equal, as x86 does. Nothing may depend on that choice."""
    return a if less(b, a) else b


# --- storage types: f32, f16 (5 exponent bits), bf16 (the upper half of an f32) --------------------------------------------

WIDTH = {"f32": 32, "f16": 16, "bf16": 16}
CANONICAL = {"f32": NAN, "f16": 0x7E00, "bf16": 0x7FC0}
INFINITY = {"f32": INF, "f16": 0x7C00, "bf16": 0x7F80}


def widen(x, kind):
    """Exact. A NaN keeps its payload."""
    if kind == "f32":
        return x
    if kind == "bf16":
        return x << 16
    sign = (x & 0x8000) << 16
    e = x >> 10 & 31
    m = x & 0x3FF
    if e == 31:
        return sign | INF | m << 13
    return pack(sign, m | 0x400 if e else m, (e or 1) + 125)   # mantissa * 2^(e - 25)


def narrow(x, kind):
    """Rounded once to nearest even. A NaN keeps the upper part of its payload and is made quiet."""
    if kind == "f32":
        return x
    if kind == "bf16":
        return x >> 16 | 0x40 if is_nan(x) else round_shift(x, 16)   # the carry may reach infinity, as it must
    sign = x >> 16 & 0x8000
    if is_nan(x):
        return sign | 0x7E00 | x >> 13 & 0x3FF
    if x & INF == INF:
        return sign | 0x7C00
    m, e = split(x)
    e -= 112                             # the exponent field in f16, if it were normal
    n = 13 if e >= 1 else 14 - e
    r = (max(e, 1) - 1 << 10) + round_shift(m, n)
    return sign | min(r, 0x7C00)

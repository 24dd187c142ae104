"""The bits that Etalon must give, from the model of its arithmetic in exact integers (tests/model), which shares no code with it."""
import math
import pathlib
import struct
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "model"))

import caseformat  # noqa: E402
import definition  # noqa: E402
import ops  # noqa: E402
from arrays import from_bytes, stored  # noqa: E402


def words(array, first, count):
    """Bit patterns of a run of elements of an array of floats."""
    size = {"f16": 2, "f32": 4}[array.kind]
    data = array.data()[first * size:(first + count) * size]
    return list(struct.unpack("<%d%s" % (count, {2: "H", 4: "I"}[size]), data))


def f32_word(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def head_case(arrays, options, head, out_type):
    """One query head as a case of the model: rows that share keys."""
    (num_heads, q_len, dim), (kv_heads, kv_len, value_dim) = arrays["q"].shape, arrays["v"].shape
    kv_head = head // (num_heads // kv_heads)
    case = caseformat.Case("head", "attention")
    case.tensor("q", arrays["q"].kind, (q_len, dim), words(arrays["q"], head * q_len * dim, q_len * dim))
    case.tensor("k0", arrays["k"].kind, (kv_len, dim), words(arrays["k"], kv_head * kv_len * dim, kv_len * dim))
    case.tensor("v0", arrays["v"].kind, (kv_len, value_dim), words(arrays["v"], kv_head * kv_len * value_dim, kv_len * value_dim))
    case.param("scale", "f32", f32_word(options.get("scale", 1 / math.sqrt(dim))))
    if "softcap" in options:
        case.param("softcap", "f32", f32_word(options["softcap"]))
    if "alibi" in options:
        slope = definition.standard_slope(head, num_heads) if options["alibi"] == "standard" else arrays["alibi"].at(head)
        offset = definition.q_offset(options, q_len, kv_len)
        case.tensor("slope", "f32", (q_len,), [f32_word(slope)] * q_len)
        case.tensor("q_pos", "i64", (q_len,), [row + offset for row in range(q_len)])
    pairs = [(row, key) for row in range(q_len) for key in range(kv_len)]
    if pairs:  # the model's tensors have no dimension of 0, but a source may be without keys
        case.tensor("mask0", "u8", (q_len, kv_len), [int(definition.shown(arrays, options, head, *pair)) for pair in pairs])
    if "bias" in options:
        bias = stored("f32", (q_len, kv_len), [arrays["bias"].at(head, *pair) for pair in pairs])
        case.tensor("bias0", "f32", (q_len, kv_len), words(bias, 0, len(pairs)))
    if "sinks" in options:
        case.tensor("sink", "f32", (q_len,), [f32_word(arrays["sinks"].at(head))] * q_len)
    return case.expect("out", out_type, (q_len, value_dim)).expect("lse", "f32", (q_len,))


def attention(arrays, options):
    """(out, lse) as Arrays."""
    kind = options.get("out_type", "f32")
    parts = [ops.compute(head_case(arrays, options, head, kind)) for head in range(arrays["q"].shape[0])]
    shape = (*arrays["q"].shape[:2], arrays["v"].shape[2])
    result = []
    for name, kind, dims in (("out", kind, shape), ("lse", "f32", shape[:2])):
        flat = [word for part in parts for word in part[name]]
        result.append(from_bytes(kind, dims, struct.pack("<%d%s" % (len(flat), {"f16": "H", "f32": "I"}[kind]), *flat)))
    return result

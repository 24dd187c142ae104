"""Writes small .npz layers with the standard library alone, right or wrong on purpose."""
import json
import struct
import zipfile


def npy(shape, values, code="e", descr=None, order="False"):
    """An array as .npy bytes; code is struct's: e = f16, f = f32, d = f64, ? = bool, B = u8, i = i32, q = i64."""
    descr = descr or {"e": "<f2", "f": "<f4", "d": "<f8", "?": "|b1", "B": "|u1", "i": "<i4", "q": "<i8"}[code]
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, order, repr(tuple(shape)))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%d%s" % (len(values), code), *values)


def split_npy(content):
    """(type, shape, data) of .npy bytes, which must be as numpy writes them."""
    assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
    length, = struct.unpack("<H", content[8:10])
    assert (10 + length) % 64 == 0 and content[9 + length] == ord("\n")
    header = eval(content[10:10 + length], {"__builtins__": {}})
    assert list(header) == ["descr", "fortran_order", "shape"] and header["fortran_order"] is False
    return header["descr"], header["shape"], content[10 + length:]


def ramp(shape, a, code="e"):
    """An array whose element i is (((a*i) mod 61) - 30) / 32: exact in f16."""
    count = 1
    for dim in shape:
        count *= dim
    return npy(shape, [((a * i) % 61 - 30) / 32 for i in range(count)], code)


def write(path, arrays, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in arrays.items():
            archive.writestr(name + ".npy", content)
    return str(path)


def small(code="e", q=(4, 20, 8), k=(2, 20, 8), v=(2, 20, 5)):
    return {"q": ramp(q, 7, code), "k": ramp(k, 11, code), "v": ramp(v, 13, code)}


def index(folder, entries):
    (folder / "index.json").write_text(entries if isinstance(entries, str) else json.dumps(entries))

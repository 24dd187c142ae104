#!/usr/bin/env python3
"""Writes the seeds of the fuzzer of .npz files, which are its committed corpus with what it found itself.

    python3 tests/fuzz/npz_corpus.py FOLDER

Archives as Python's zipfile (hence numpy) writes them and some that were spoilt by hand, .npy files, and inputs for
npz_archive.cc. The same bytes each time.
"""

import hashlib
import io
import pathlib
import sys
import zipfile


class Pipe(io.RawIOBase):
    """What cannot seek: zipfile then puts CRC and sizes behind the data."""

    def __init__(self):
        super().__init__()
        self.bytes = b""

    def writable(self):
        return True

    def seekable(self):
        return False

    def write(self, data):
        self.bytes += bytes(data)
        return len(data)


def npy(descr="<f4", order="False", shape="(2, 3)", data=bytes(range(24)), major=1):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    width = 2 if major == 1 else 4
    header += " " * (-(8 + width + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY" + bytes([major, 0]) + len(header).to_bytes(width, "little") + header.encode() + data


def npz(arrays, method=zipfile.ZIP_STORED, zip64=True, pipe=False, comment=b""):
    target = Pipe() if pipe else io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in arrays.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            with archive.open(info, "w", force_zip64=zip64) as entry:
                entry.write(content)
        archive.comment = comment
    return target.bytes if pipe else target.getvalue()


def seeds():
    arrays = {"q.npy": npy(shape="(1, 2, 3)"), "k.npy": npy("<f2", data=bytes(12)), "v.npy": npy("<f8", data=bytes(48))}
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for zip64 in (False, True):
            for pipe in (False, True):
                yield npz(arrays, method, zip64, pipe)
    yield npz(arrays, comment=b"a comment")
    yield npz(arrays) + b"bytes after the end"
    yield npz({"q.npy": bytes(100000)}, zipfile.ZIP_DEFLATED)
    yield npz({"q.npy": npy()}, zipfile.ZIP_BZIP2)
    limit, zipfile.ZIP64_LIMIT = zipfile.ZIP64_LIMIT, 5   # all that an archive of more than 4 GB has
    yield npz(arrays)
    zipfile.ZIP64_LIMIT = limit
    good = npz({"q.npy": npy()}, zip64=False)
    directory, end = good.find(b"PK\1\2"), good.find(b"PK\5\6")
    for at in (6, 8, 14, 18, 22, 26, 28, *(directory + i for i in (8, 10, 16, 20, 24, 28, 30, 42)), *(end + i for i in (4, 8, 12, 16, 20))):
        yield good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]
    yield good[:end]
    yield from arrays.values()
    yield npy(major=2)
    yield npy(major=3)
    yield npy(shape="()", data=bytes(4))
    yield npy(shape="(0, 7)", data=b"")
    yield npy(shape="(" + "1, " * 32 + ")", data=bytes(4))
    yield npy(shape="(9223372036854775807, 9223372036854775807)")
    yield npy(shape="(" + "9223372036854775807, " * 32 + ")")   # an error longer than a line, if it were shown whole
    yield npy(shape="(4294967296, 4294967296)", data=b"")       # whose bytes are 0 modulo 2^64
    yield npy(shape="(4294967296, 0, 4294967296)", data=b"")
    yield npy(order="True")
    yield npy(">f4")
    yield npy("|O")
    yield npy()[:-1]
    for n in range(8):                                    # decisions of npz_archive.cc, honest and not
        yield bytes([n]) + hashlib.sha256(bytes([n])).digest() * 3


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds():
        (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


if __name__ == "__main__":
    main()

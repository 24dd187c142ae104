"""Arrays of numbers, and the .npz files that hold them, with the standard library alone: whoever runs Etalon's part needs no numpy."""
import dataclasses
import itertools
import math
import struct
import zipfile

# kind: (what .npy calls it, what struct calls it)
KINDS = {"f16": ("<f2", "e"), "f32": ("<f4", "f"), "bool": ("|b1", "?"), "i64": ("<i8", "q")}


@dataclasses.dataclass
class Array:
    """Row-major; values is flat."""
    kind: str
    shape: tuple
    values: list

    def __post_init__(self):
        self.shape = tuple(self.shape)
        if math.prod(self.shape) != len(self.values):
            raise ValueError("%d values for the shape %s" % (len(self.values), list(self.shape)))

    def data(self):
        return struct.pack("<%d%s" % (len(self.values), KINDS[self.kind][1]), *self.values)

    def size(self):
        """Bytes of an element."""
        return struct.calcsize(KINDS[self.kind][1])

    def at(self, *index):
        """The element whose last indices are these; a size of 1 counts for all, and so does a dimension that is not there."""
        flat = 0
        for size, i in zip(self.shape, index[len(index) - len(self.shape):]):
            flat = flat * size + (i if size > 1 else 0)
        return self.values[flat]

    def numpy(self):
        """For adapters of those who take nothing else."""
        import numpy
        return numpy.frombuffer(self.data(), KINDS[self.kind][0].lstrip("|")).reshape(self.shape).copy()


def stored(kind, shape, values):
    """An array of what is left of these numbers once they are stored in this type."""
    code = KINDS[kind][1]
    data = struct.pack("<%d%s" % (len(values), code), *values)
    return Array(kind, shape, list(struct.unpack("<%d%s" % (len(values), code), data)))


def from_numpy(x):
    """An Array of any numpy array of a type that KINDS has."""
    kind, = (kind for kind, (name, _) in KINDS.items() if name.lstrip("|<") == x.dtype.str.lstrip("|<"))
    return from_bytes(kind, x.shape, x.tobytes())


def from_bytes(kind, shape, data):
    return Array(kind, shape, list(struct.unpack("<%d%s" % (math.prod(shape), KINDS[kind][1]), data)))


def npy(array):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (KINDS[array.kind][0], repr(array.shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.data()


def parse_npy(content):
    length, = struct.unpack("<H", content[8:10])
    if content[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("not a .npy file of version 1")
    header = eval(content[10:10 + length], {"__builtins__": {}})
    kind, = (kind for kind, (name, _) in KINDS.items() if name == header["descr"])
    return from_bytes(kind, header["shape"], content[10 + length:])


def write_npz(path, arrays):
    """Without the time of writing, so that the same arrays give the same file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), npy(array))


def read_npz(path):
    with zipfile.ZipFile(path) as archive:
        return {name[:-len(".npy")]: parse_npy(archive.read(name)) for name in archive.namelist()}


def indices(shape):
    return itertools.product(*map(range, shape))

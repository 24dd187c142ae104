"""The cases as runner and adapters see them, and the name of an answer."""
import contextlib
import dataclasses
import json
import math
import pathlib

from arrays import read_npz

HERE = pathlib.Path(__file__).resolve().parent
FORMAT = 1
REFUSES = "refuses"  # the answer without numbers
INPUTS = ("q", "k", "v", "bias", "mask", "alibi", "sinks", "segments")


@dataclasses.dataclass
class Case:
    """What was asked: `options` in the words of `etalon attend`, `arrays` q, k and v of [heads, length, channels] and those that options name.
    The file at `path` holds the answers too."""
    id: str
    options: dict
    arrays: dict
    path: pathlib.Path
    about: dict  # the case's line of cases.json
    answers: dict  # name -> what the whole output is then; None for REFUSES
    bits: dict  # what Etalon must give, of "out" and "lse"; nothing where it refuses

    @property
    def expected(self):
        return self.about["expected"]

    def lacks(self, offered):
        """"" if all options are among the offered ones, else a sentence that names the rest."""
        missing = [name for name in self.options if name not in offered and name != "out_type"]
        return "has no " + ", ".join(missing) if missing else ""


class Unreadable(Exception):
    """A sentence of one line that names the file."""


@contextlib.contextmanager
def reading(path):
    try:
        yield
    except Exception as problem:  # a file that is not as it should be has many
        raise Unreadable("%s: %s: %s" % (path, type(problem).__name__, " ".join(str(problem).split()))) from problem


def load(folder=HERE):
    path, result = folder / "cases.json", []
    with reading(path):
        said = json.loads(path.read_text())
        if said["format"] != FORMAT:
            raise ValueError("it has format %s, this reads %d" % (said["format"], FORMAT))
        entries = [(about, folder / "cases" / (about["id"] + ".npz")) for about in said["cases"]]
    for about, path in entries:
        with reading(path):
            members = read_npz(path)
            result.append(Case(about["id"], about["options"], {name: members[name] for name in INPUTS if name in members}, path, about,
                               {name: member and members[member] for name, member in about["answers"].items()},
                               {name: members["etalon_" + name] for name in ("out", "lse") if "etalon_" + name in members}))
    return result


def same(a, b, near, signed_zeros=False):
    return (math.isnan(a) and math.isnan(b) or a == b or abs(a - b) <= near) and (
        not signed_zeros or math.copysign(1, a) == math.copysign(1, b))


def name_of(case, out):
    """(name, more): the answer that this output is, or "something else" with the first number that differs from what is expected."""
    wanted = [(name, answer) for name, answer in case.answers.items() if answer is not None]
    for name, answer in wanted:
        if out.shape == answer.shape and all(same(x, y, case.about["near"], case.about["signed_zeros"])
                                             for x, y in zip(out.values, answer.values)):
            return name, ""
    answer = dict(wanted).get(case.expected, wanted[0][1])
    if out.shape != answer.shape:
        return "something else", "its shape is %s, not %s" % (list(out.shape), list(answer.shape))
    first = next(i for i, (x, y) in enumerate(zip(out.values, answer.values)) if not same(x, y, case.about["near"], case.about["signed_zeros"]))
    where, row = divmod(first, answer.shape[2]), out.values[first // answer.shape[2] * answer.shape[2]:][:4]
    return "something else", "head %d, row %d begins %s" % (*divmod(where[0], answer.shape[1]), " ".join("%.4g" % x for x in row))


def fault_of_etalon(case, result):
    """Why this result is not Etalon's; "" if all is as it must be. Without bits it had to refuse."""
    if not case.bits:
        return "" if result.get("refuses") else "does not refuse"
    if "out" not in result:
        return "gives no result"
    for name, wanted in case.bits.items():
        mine = result.get(name)
        if mine is None or mine.kind != wanted.kind or mine.shape != wanted.shape:
            return "%s has another type or shape" % name
        different = sum(a != b for a, b in zip(chunks(mine), chunks(wanted)))
        if different:
            return "%d of %d elements of %s have other bits" % (different, len(wanted.values), name)
    return "" if name_of(case, result["out"])[0] == case.expected else "has the bits, but not the expected answer"


def chunks(array):
    data, size = array.data(), array.size()
    return [data[i:i + size] for i in range(0, len(data), size)]

"""One adapter in a process of its own, for tools/conformance.py: one that crashes or hangs has given an answer, and the next case is put to a
new process."""
import dataclasses
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "conformance"
sys.path += [str(FOLDER), str(FOLDER / "adapters")]

import answers  # noqa: E402
from arrays import from_bytes  # noqa: E402


# ------------------------------------------------------------------------------------------------ in the child


def adapter_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise ValueError("no file of Python (.py)")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.Adapter
    lacking = [word for word in ("name", "supports", "run") if not hasattr(made, word)]
    if lacking:
        raise ValueError("Adapter has no " + ", ".join(lacking))
    return made


def plain(said):
    """On one line, and of characters that any encoding of Unicode has."""
    return " ".join(str(said).encode(errors="backslashreplace").decode().split())


def answer(say, made, settings, names):
    """Says a line about the adapter, then one for each case."""
    try:
        adapter = made(settings)
    except ImportError as problem:
        say({"missing": plain(problem)})
        return
    say({"version": plain(adapter.version)})
    cases = {case.id: case for case in answers.load()}
    for name in names:
        case = cases[name]
        lacking = adapter.supports(case)
        if lacking:
            say({"case": name, "lacks": plain(lacking)})
            continue
        try:
            result = adapter.run(case)
            if not isinstance(result, dict) or "out" not in result:
                raise ValueError("gives no out")
            say({"case": name, **{key: [x.kind, x.shape, x.data().hex()] for key, x in result.items() if key in ("out", "lse")}})
        except Exception as problem:  # whatever it is, it is what the library has to say
            say({"case": name, "refuses": plain(problem) or type(problem).__name__})


def heading_of(made):
    name = plain(made.name)
    if not name or "|" in name:
        raise ValueError("Adapter has the name %r, which heads no column" % name)
    return name


def main(path, settings="", *names):
    """Lines of JSON. Without settings the adapter is only looked at, and nothing started. What libraries print goes elsewhere."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(what):
        print(json.dumps(what), file=lines, flush=True)

    made = adapter_of(pathlib.Path(path))
    if settings:
        answer(say, made, json.loads(settings), names)
    else:
        say({"name": heading_of(made), "function": plain(getattr(made, "function", ""))})


# ----------------------------------------------------------------------------------------------- in the parent


class Fault(Exception):
    """A sentence of one line about what cannot be asked."""


def talk(seconds, *words):
    """(what a child said, how it ended if not well, the last line that it printed elsewhere)"""
    try:
        done = subprocess.run([sys.executable, __file__, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=seconds)
        said, printed = done.stdout, done.stderr
        end = "" if done.returncode == 0 else "ends with exit code %d" % done.returncode
        if done.returncode < 0:
            end = "crashes with signal %d" % -done.returncode
    except subprocess.TimeoutExpired as late:
        said, printed, end = late.stdout or b"", b"", "hangs"
    lines = [json.loads(line) for line in said.splitlines(True) if line.endswith(b"\n")]
    return lines, end, "".join(printed.decode(errors="replace").strip().splitlines()[-1:])


def silence(seconds, end, printed):
    """Why a child said nothing."""
    if end == "hangs":
        return "no word in %g s" % seconds
    # 1 is Python's, whose traceback ends with the reason.
    return printed if printed and end == "ends with exit code 1" else end or "ends with exit code 0"


def look(path, seconds):
    """What an adapter says of itself, without what it asks."""
    if not path.exists():
        raise Fault("%s: there is no such file" % path)
    lines, end, printed = talk(seconds, str(path))
    if not lines:
        raise Fault("%s: %s" % (path, silence(seconds, end, printed)))
    return lines[0]


@dataclasses.dataclass
class Answers:
    """results is {case id: result}; a result has "out" and perhaps "lse", or one word: lacks, refuses, crashes. Who gives none is absent."""
    version: str = None
    absent: str = ""
    why: str = ""
    results: dict = dataclasses.field(default_factory=dict)


def ask(path, settings, cases, seconds):
    result, left = Answers(), [case.id for case in cases]
    while left:
        lines, end, printed = talk(seconds, str(path), json.dumps(settings), *left)
        if result.version is None:
            if not lines:
                return Answers(absent="does not start", why=silence(seconds, end, printed))
            if "missing" in lines[0]:
                return Answers(absent="not installed", why=lines[0]["missing"])
            result.version = lines[0]["version"]
        elif not lines:
            result.results.update({name: {"crashes": "does not start again (%s)" % silence(seconds, end, printed)} for name in left})
            break
        for line in lines[1:]:
            result.results[line.pop("case")] = {key: x if isinstance(x, str) else from_bytes(x[0], tuple(x[1]), bytes.fromhex(x[2]))
                                                for key, x in line.items()}
        left = [name for name in left if name not in result.results]
        if left:
            result.results[left.pop(0)] = {"crashes": end or "ends with exit code 0"}
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])

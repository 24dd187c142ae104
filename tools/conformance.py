#!/usr/bin/env python3
"""Asks attention libraries what they mean: the cases of tests/conformance, put to Etalon (through its tool) and to others.

    python3 tools/conformance.py --tool build/release/cli/etalon [--only NAME]... [--markdown | --json]
    python3 tools/conformance.py --tool ... --every-table        Etalon alone, on every kernel table that can run here
    python3 tools/conformance.py --tool ... --adapter FILE.py    somebody else too; docs/conformance.md says how to write one

Others are asked where their wheels can be imported; one that cannot is "not installed". The exit code is 1 if Etalon's answer to any case
is not the expected one, to the bit; 2 if there was nothing to ask. Others are only described.

Each is asked in a process of its own, so that one that crashes or hangs has given an answer, and the next case is put to a new process.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "conformance"
sys.path += [str(FOLDER), str(FOLDER / "adapters")]

import answers  # noqa: E402
import conformance_report as report  # noqa: E402
from arrays import from_bytes  # noqa: E402

ETALON = "etalon_tool"
OTHERS = ["torch_sdpa", "onnxruntime_attention", "onnxruntime_gqa", "openvino_sdpa"]

# ------------------------------------------------------------------------------------------------ in the child


def adapter_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Adapter


def answer(path, settings, names):
    """Prints a line of JSON about the adapter, then one for each case. What libraries print goes elsewhere."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(what):
        print(json.dumps(what), file=lines, flush=True)

    made = adapter_of(path)
    try:
        adapter = made(settings)
    except ImportError as problem:
        say({"name": made.name, "missing": str(problem)})
        return
    say({"name": made.name, "version": adapter.version})
    cases = {case.id: case for case in answers.load()}
    for name in names:
        case = cases[name]
        lacking = adapter.supports(case)
        if lacking:
            say({"case": name, "lacks": lacking})
            continue
        try:
            result = adapter.run(case)
            say({"case": name, **{key: [x.kind, x.shape, x.data().hex()] for key, x in result.items()}})
        except Exception as problem:  # whatever it is, it is what the library has to say
            say({"case": name, "refuses": " ".join((str(problem) or type(problem).__name__).split())})


# ----------------------------------------------------------------------------------------------- in the parent


def ask(path, settings, cases, seconds):
    """(name, version or None, {case id: result}); a result has "out" and perhaps "lse", or one word: lacks, refuses, crashes."""
    about, results, left = {}, {}, [case.id for case in cases]
    while left:
        command = [sys.executable, __file__, "--answer", str(path), json.dumps(settings), *left]
        said = ""
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                  timeout=seconds)
            said, end = done.stdout, "" if done.returncode == 0 else "ends with exit code %d" % done.returncode
            if done.returncode < 0:
                end = "crashes with signal %d" % -done.returncode
        except subprocess.TimeoutExpired as late:
            said, end = (late.stdout or b"").decode(), "hangs"
        lines = [json.loads(line) for line in said.splitlines(True) if line.endswith("\n")]
        if not lines:
            raise SystemExit("%s: %s\n%s" % (path, end, "" if end == "hangs" else done.stderr))
        about = lines[0]
        if "missing" in about:
            return about["name"], None, {}
        for line in lines[1:]:
            results[line.pop("case")] = {key: x if isinstance(x, str) else from_bytes(x[0], tuple(x[1]), bytes.fromhex(x[2]))
                                         for key, x in line.items()}
        left = [name for name in left if name not in results]
        if left and not end:
            raise SystemExit("%s: no answer to %s" % (path, ", ".join(left)))
        if left:
            results[left.pop(0)] = {"crashes": end}
    return about["name"], about["version"], results


def describe(case, result):
    """(a few words, more about it)"""
    for word in ("lacks", "refuses", "crashes"):
        if word in result:
            return ("-" if word == "lacks" else word), result[word]
    return answers.name_of(case, result["out"])


def judge(held, cases, results):
    """{case id: (words, more, fault)}; only those have faults who are held to Etalon's bits."""
    return {case.id: (*describe(case, results[case.id]), answers.fault_of_etalon(case, results[case.id]) if held else "") for case in cases}


def tables(tool):
    said = json.loads(subprocess.run([tool, "info", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    return [table["name"] for table in said["tables"] if table["available"]]


def columns(args, cases):
    """A Column of everybody who was asked."""
    etalon = {"tool": os.path.abspath(args.tool)}
    if args.every_table:
        jobs = [(args.etalon, {**etalon, "target": table}, "Etalon " + table) for table in tables(etalon["tool"])]
    else:
        others = args.adapter if args.alone else [FOLDER / "adapters" / (name + ".py") for name in OTHERS] + args.adapter
        jobs = [(args.etalon, etalon, "Etalon")] + [(path, {}, "") for path in others]
    for path, settings, heading in jobs:
        name, version, results = ask(path, settings, cases, args.seconds)
        held = bool(heading)
        yield report.Column(heading or name, version, None if version is None else judge(held, cases, results), held)


def main():
    if sys.argv[1:2] == ["--answer"]:
        return answer(pathlib.Path(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True, help="the program etalon")
    parser.add_argument("--only", action="append", help="cases and subjects whose names contain this", default=[])
    parser.add_argument("--adapter", action="append", type=pathlib.Path, default=[], help="one more to ask")
    parser.add_argument("--alone", action="store_true", help="of the others, ask those of --adapter alone")
    parser.add_argument("--every-table", action="store_true", help="Etalon on every table, and nobody else")
    parser.add_argument("--etalon", type=pathlib.Path, default=FOLDER / "adapters" / (ETALON + ".py"),
                        help="another adapter in Etalon's place, held to Etalon's bits (for the tests)")
    parser.add_argument("--seconds", type=float, default=120, help="that a library may take for its start and all cases")
    parser.add_argument("--markdown", action="store_true", help="the table for docs/conformance.md")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    cases = [case for case in answers.load() if not args.only or any(part in case.id or part in case.about["subject"] for part in args.only)]
    if not cases:
        parser.error("no case has such a name")
    if not os.access(args.tool, os.X_OK):
        parser.error("--tool: there is no program " + args.tool)
    asked = list(columns(args, cases))
    print((report.as_json if args.json else report.as_markdown if args.markdown else report.as_text)(cases, asked))
    return 1 if any(column.wrong() for column in asked) else 0


if __name__ == "__main__":
    sys.exit(main())

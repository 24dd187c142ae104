#!/usr/bin/env python3
"""Asks attention libraries what they mean: the cases of tests/conformance, put to Etalon (through its tool) and to others.

    python3 tools/conformance.py --tool build/release/cli/etalon [--only NAME]... [--markdown | --json]
    python3 tools/conformance.py --tool ... --every-table        Etalon alone, on every kernel table that can run here
    python3 tools/conformance.py --tool ... --adapter FILE.py    one more library; docs/conformance.md says how to write an adapter

Others are asked where their wheels can be imported; one that cannot is "not installed". The exit code is 1 if Etalon's answer to any case
is not the expected one, to the bit; 2, with a line of why, if what is to be asked is not there, before anybody is asked. Others are only
described.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import conformance_ask
import conformance_report as report
from conformance_ask import FOLDER, Fault, answers

ETALON = FOLDER / "adapters" / "etalon_tool.py"
OTHERS = [FOLDER / "adapters" / (name + ".py") for name in (
    "torch_sdpa", "torch_causal_bias", "torch_flex", "onnxruntime_attention", "onnxruntime_gqa", "openvino_sdpa")]
LONGEST = 86400  # seconds; subprocess cannot wait for any number of them


class Parser(argparse.ArgumentParser):
    def error(self, message):  # without the usage, which is longer than what is wrong
        self.exit(2, "%s: %s\n" % (self.prog, message))


def seconds(text):
    try:
        if 0 < float(text) <= LONGEST:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError("'%s' is no number of seconds between 0 and %d" % (text, LONGEST))


def arguments():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True, help="the program etalon")
    parser.add_argument("--only", action="append", help="cases and subjects whose names contain this", default=[])
    parser.add_argument("--adapter", action="append", type=pathlib.Path, default=[], help="one more to ask")
    parser.add_argument("--alone", action="store_true", help="of the others, ask those of --adapter alone")
    parser.add_argument("--every-table", action="store_true", help="Etalon on every table, and nobody else")
    parser.add_argument("--etalon", type=pathlib.Path, default=ETALON,
                        help="another adapter in Etalon's place, held to Etalon's bits (for the tests)")
    parser.add_argument("--seconds", type=seconds, default=120, help="that a library may take for its start and all cases")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="the table for docs/conformance.md")
    form.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for name in ("adapter", "alone"):
        if args.every_table and getattr(args, name):
            parser.error("--every-table asks Etalon alone: leave out --" + name)
    return parser, args


def chosen(only):
    """The cases to ask."""
    def holds(part, case):
        return part in case.id or part in case.about["subject"]
    cases = answers.load()
    for part in only:
        if not part:
            raise Fault("--only: a name is empty")
        if not any(holds(part, case) for case in cases):
            raise Fault("--only: no case and no subject has '%s' in its name" % part)
    return [case for case in cases if not only or any(holds(part, case) for part in only)]


def said_by(tool, limit, *words):
    try:
        return subprocess.run([tool, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=limit).stdout
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Fault("--tool: %s" % problem) from problem


def tables(tool, limit):
    try:
        said = json.loads(said_by(tool, limit, "info", "--json"))
        names = [table["name"] for table in said["tables"] if table["available"]]
    except (ValueError, KeyError, TypeError):
        names = []
    if not names:
        raise Fault("--tool: %s info --json names no table" % tool)
    return names


def look(option, path, limit):
    """(name, function) of an adapter."""
    try:
        said = conformance_ask.look(path, limit)
        return said["name"], said["function"]
    except Fault as fault:
        raise Fault("%s: %s" % (option, fault)) from fault


def jobs(args):
    """(adapter, settings, heading, function, whether it is held to Etalon's bits) of everybody who is to be asked."""
    tool = os.path.abspath(args.tool)
    if not said_by(tool, args.seconds, "--version").startswith(b"etalon"):
        raise Fault("--tool: %s is not etalon, by what its --version says" % tool)
    _, function = look("--etalon", args.etalon, args.seconds)
    if args.every_table:
        return [(args.etalon, {"tool": tool, "target": table}, "Etalon " + table, function, True) for table in tables(tool, args.seconds)]
    result = [(args.etalon, {"tool": tool}, "Etalon", function, True)]
    result += [(path, {}, *look("--adapter", path, args.seconds), False) for path in (args.adapter if args.alone else OTHERS + args.adapter)]
    headings = [heading for _, _, heading, _, _ in result]
    for heading in headings:
        if headings.count(heading) > 1:
            raise Fault('two are called "%s"' % heading)
    return result


def describe(case, result):
    """(a few words, more about it)"""
    for word in ("lacks", "refuses", "crashes"):
        if word in result:
            return ("-" if word == "lacks" else word), result[word]
    return answers.name_of(case, result["out"])


def judge(held, cases, results):
    """{case id: (words, more, fault)}; only those have faults who are held to Etalon's bits."""
    return {case.id: (*describe(case, results[case.id]), answers.fault_of_etalon(case, results[case.id]) if held else "") for case in cases}


def column(path, settings, heading, function, held, cases, limit):
    given = conformance_ask.ask(path, settings, cases, limit)
    return report.Column(heading, function, given, None if given.absent else judge(held, cases, given.results), held)


def main():
    parser, args = arguments()
    try:
        cases = chosen(args.only)
        to_ask = jobs(args)
    except (Fault, answers.Unreadable) as fault:
        parser.error(str(fault))
    asked = [column(*job, cases, args.seconds) for job in to_ask]
    print((report.as_json if args.json else report.as_markdown if args.markdown else report.as_text)(cases, asked))
    return 1 if any(x.wrong() for x in asked) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks that each required case has a test or a step that will bring one: tests/cases.txt against the tests themselves.

    python3 tools/check_cases.py [ROOT]

A test names its cases: TEST_CASE("NUM-1: ...") or TEST_CASE("NUM-1, NUM-2: ...") in C++, a comment line "# case: NUM-1" in others,
tools/*.sh among them (in C with // or /*). What only people judge, a time, has "bench" in the list and a line "// case: PRF-4" in bench/*.cc.
Where the list of requirements lies beside the checkout (../shared/CASES.md), the ids must be the same as there.
Prints one line for each fault, with what to do about it; the exit code is 1 if there is one.
"""

import re
import sys

import checker
from source_text import strip_comments

LIST = "tests/cases.txt"
REQUIREMENTS = "../shared/CASES.md"

ID = r"[A-Z]{3}-\d+"
STEPS = r"(?:1[ab]|[2-8]|9[ab]?)"
BENCH_MARKER = re.compile(rf"^[ \t]*//[ \t]*case: ({ID}(?:, {ID})*)", re.MULTILINE)
TEST_ENTRY = re.compile(r"test(?: kernel)?")
LATER_ENTRY = re.compile(rf"(?:after )?step {STEPS}")
TEST_CASE = re.compile(r'\b(?:TEST_CASE\w*|SCENARIO)\s*\(\s*"((?:\\.|[^"\\])*)"([^{;]*)')
# A comment line that names cases, by suffix of the file; ".txt" is CMakeLists.txt. C has no TEST_CASE.
MARKERS = {
    **dict.fromkeys([".py", ".sh", ".cmake", ".txt"], rf"^[ \t]*#[ \t]*case: ({ID}(?:, {ID})*)"),
    ".c": rf"^[ \t]*(?://|/\*)[ \t]*case: ({ID}(?:, {ID})*)",
}


def read_list(path):
    """(line of each id, has a test, is timed, comes later, faults)"""
    lines, tested, timed, later, faults = {}, set(), set(), set(), []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"{LIST}:{number}"
        match = re.fullmatch(rf"({ID})(?:\s+(.*))?", line.rstrip())
        if match is None:
            faults.append(f'{where}: write "ID  test; step N", not "{line.strip()}"')
            continue
        case, entries = match.group(1), [e.strip() for e in (match.group(2) or "").split(";") if e.strip()]
        if case in lines:
            faults.append(f"{where}: {case} stands in line {lines[case]} already: join the two lines")
        lines.setdefault(case, number)
        if not entries:
            faults.append(f'{where}: {case} has neither a test nor a step: write "test", or the step that brings it')
        for entry in entries:
            if TEST_ENTRY.fullmatch(entry):
                tested.add(case)
            elif entry == "bench":
                timed.add(case)
            elif LATER_ENTRY.fullmatch(entry):
                later.add(case)
            else:
                faults.append(f'{where}: {case}: "{entry}" is not one of: test, test kernel, bench, step N, after step N')
    return lines, tested, timed, later, faults


def cases_of_tests(root):
    """({id: "path:line" of its first test}, faults)"""
    found, faults = {}, []

    def add(path, text, offset, ids):
        for case in ids:
            found.setdefault(case, f"{path}:{text.count(chr(10), 0, offset) + 1}")

    for file in sorted([*(root / "tests").rglob("*"), *(root / "tools").glob("*.sh")]):  # some tests are builds, of .ci/run or by night
        path = file.relative_to(root).as_posix()
        if not file.is_file() or (file.suffix == ".txt" and file.name != "CMakeLists.txt"):
            continue
        if file.suffix == ".cc":
            text = strip_comments(file.read_text(encoding="utf-8"))
            for match in TEST_CASE.finditer(text):
                name, decorators = match.groups()
                if not re.match(ID, name):
                    continue
                if re.match(rf"{ID}(?:, {ID})*: ", name) is None:
                    line = text.count("\n", 0, match.start()) + 1
                    faults.append(f'{path}:{line}: write TEST_CASE("ID: ...") or "ID, ID: ...", not "{name}"')
                elif "skip" not in decorators:   # a test that never runs is none
                    add(path, text, match.start(), re.findall(ID, name.split(": ")[0]))
        elif file.suffix in MARKERS:
            text = file.read_text(encoding="utf-8")
            for match in re.finditer(MARKERS[file.suffix], text, re.MULTILINE):
                add(path, text, match.start(), re.findall(ID, match.group(1)))
    return found, faults


def cases_of_benches(root):
    """{id: "path:line" of the first row that times it}"""
    found = {}
    for file in sorted((root / "bench").rglob("*.cc")):
        text = file.read_text(encoding="utf-8")
        for match in BENCH_MARKER.finditer(text):
            for case in re.findall(ID, match.group(1)):
                found.setdefault(case, f"{file.relative_to(root).as_posix()}:{text.count(chr(10), 0, match.start(1)) + 1}")
    return found


def check(root):
    if not (root / LIST).is_file():
        return [f"{LIST}: missing: list the case ids there"]
    lines, tested, timed, later, faults = read_list(root / LIST)
    found, more = cases_of_tests(root)
    faults += more
    benches = cases_of_benches(root)
    for case, number in lines.items():
        if case in tested and case not in found:
            faults.append(f'{LIST}:{number}: {case} has no test: write TEST_CASE("{case}: ..."), or name the step that brings it')
        if case in timed and case not in benches:
            faults.append(f'{LIST}:{number}: {case} has no row in bench: write "// case: {case}" beside it, or name the step that brings it')
        if case in benches and case not in timed:
            faults.append(f'{LIST}:{number}: {case} is timed in {benches[case]}: add "bench" to its line')
        if case in later and case not in tested and case in found:
            faults.append(f'{LIST}:{number}: {case} is tested in {found[case]}: add "test" to its line')
    for case, where in sorted({**benches, **found}.items()):
        if case not in lines:
            faults.append(f"{where}: {case} is no case of {LIST}: correct the id, or rename the test")
    requirements = root / REQUIREMENTS
    if requirements.is_file():
        required = set(re.findall(rf"^- \*\*({ID})\*\*", requirements.read_text(encoding="utf-8"), re.MULTILINE))
        faults += [f"{LIST}:1: {case} of {REQUIREMENTS} is missing: add a line" for case in sorted(required - lines.keys())]
        faults += [f"{LIST}:{lines[case]}: {case} is not in {REQUIREMENTS}: remove it, or add the requirement"
                   for case in sorted(lines.keys() - required)]
    return faults


def main():
    return checker.run(check)


if __name__ == "__main__":
    sys.exit(main())

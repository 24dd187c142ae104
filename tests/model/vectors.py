"""Writes and checks files of test vectors (format: tests/golden/README.md).

  vectors.py write [--rows N] [--seed S] [--committed] [--mutate=NAME] OUT
  vectors.py check [--mutate=NAME] FILE...

write: the directed cases, then random ones from seed S until the file holds at least N query rows. --committed writes what
tests/golden/vectors.txt holds: the directed cases and a few small random ones.
check: recomputes every expected word; at the first that differs prints case, field, index, both words, and exits with 1.
"""

import argparse
import sys
import time

import ops
import wrong
from caseformat import format_case, format_word, parse_cases
from cases import random_cases
from directed import directed_cases

COMMITTED_SEED = 1
COMMITTED_BYTES = 390000       # small enough to read in a review
COMMITTED_CASE_BYTES = 6000    # of one random case


def committed_cases():
    """All directed cases, then the small ones of a fixed random sequence while there is room."""
    size = 0
    for case in directed_cases():
        size += len(format_case(ops.fill(case)))
        yield case
    for case in random_cases(COMMITTED_SEED):
        length = len(format_case(case))
        if length > COMMITTED_CASE_BYTES:
            continue
        size += length
        if size > COMMITTED_BYTES:
            return
        yield ops.fill(case)


def many_cases(rows, seed):
    count = 0
    for case in directed_cases():
        count += ops.query_rows(case)
        yield ops.fill(case)
    for case in random_cases(seed):
        if count >= rows:
            return
        count += ops.query_rows(case)
        yield ops.fill(case)


def first_difference(case):
    """None, or (field, index, kind, got, want) of the first word that the model does not reproduce."""
    words = ops.compute(case)
    for name, tensor in case.expects.items():
        got = words.get(name)
        if got is None or len(got) != len(tensor.words):
            return name, 0, "i64", len(got or []), len(tensor.words)
        if got != tensor.words:
            at = next(i for i, (a, b) in enumerate(zip(got, tensor.words)) if a != b)
            return name, at, tensor.kind, got[at], tensor.words[at]
    return None


def describe(case, difference):
    field, at, kind, got, want = difference
    return "%s: %s[%d] got %s want %s" % (case.name, field, at, format_word(kind, got), format_word(kind, want))


def write(arguments):
    start = time.time()
    if arguments.committed:
        cases, how = committed_cases(), "--committed"
    else:
        cases, how = many_cases(arguments.rows, arguments.seed), "--rows %d --seed %d" % (arguments.rows, arguments.seed)
    count = rows = 0
    with open(arguments.files[0], "w", newline="\n") as out:
        out.write("# Written by tests/model/vectors.py write %s; the format is in tests/golden/README.md.\n" % how)
        for case in cases:
            out.write(format_case(case))
            count += 1
            rows += ops.query_rows(case)
    report("wrote", count, rows, start)
    return 0


def check(arguments):
    for path in arguments.files:
        start = time.time()
        count = rows = 0
        with open(path) as lines:
            for case in parse_cases(lines):
                difference = first_difference(case)
                if difference:
                    print("FAILED %s" % describe(case, difference))
                    return 1
                count += 1
                rows += ops.query_rows(case)
        report("checked " + path, count, rows, start)
    return 0


def report(what, count, rows, start):
    seconds = time.time() - start
    print("%s: %d cases, %d query rows, %.1f s, %.0f rows/s" % (what, count, rows, seconds, rows / max(seconds, 1e-9)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("write", "check"))
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--committed", action="store_true")
    parser.add_argument("--mutate", choices=sorted(wrong.VARIANTS), help="compute with a deliberate mistake")
    arguments = parser.parse_args()
    if arguments.command == "write" and len(arguments.files) != 1:
        parser.error("write takes one file")
    with wrong.variant(arguments.mutate):
        return (write if arguments.command == "write" else check)(arguments)


if __name__ == "__main__":
    sys.exit(main())

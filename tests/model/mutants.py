"""Shows that the committed vectors notice every variant of wrong.py: prints the first case that catches each, exits 1 if one is missed.

  mutants.py [FILE]      default: tests/golden/vectors.txt
"""

import os
import sys

import wrong
from caseformat import parse_cases
from vectors import describe, first_difference

DEFAULT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "vectors.txt")


def first_catch(cases, name):
    with wrong.variant(name):
        for case in cases:
            difference = first_difference(case)
            if difference:
                return describe(case, difference)
    return None


def main():
    with open(sys.argv[1] if len(sys.argv) > 1 else DEFAULT) as lines:
        cases = list(parse_cases(lines))
    problem = first_catch(cases, None)
    if problem:
        print("the unchanged model already differs: " + problem)
        return 1
    missed = 0
    for name in wrong.VARIANTS:
        caught = first_catch(cases, name)
        print("%-20s %s" % (name, caught or "NOT NOTICED"))
        missed += caught is None
    print("%d of %d variants noticed" % (len(wrong.VARIANTS) - missed, len(wrong.VARIANTS)))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

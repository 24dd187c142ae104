"""What the checkers of a source tree have in common: their command line."""

import pathlib
import sys


def run(check):
    """Prints the faults that check(root) returns, one a line; the exit code is 1 if there are any. The root is the first argument."""
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    faults = check(root)
    for fault in faults:
        print(fault)
    return 1 if faults else 0

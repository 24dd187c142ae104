#!/usr/bin/env python3
"""Checks in the object that the body of the FMA loop holds fused multiply-adds between registers, and what counts its steps.

    fma_loop_code_test.py OBJDUMP COUNT OBJECT

COUNT is how many there must be: Loops::fma_per_step.
"""

import re
import subprocess
import sys

FMA = re.compile(r"vfn?madd\d+ps|fmla")
COUNTING = re.compile(r"add|sub|subs|inc|dec|cmp|test|nop\w*|j\w+|b\.\w+|cbn?z")


def instructions(objdump, obj):
    """[(address, mnemonic, operands)] of the function FmaLoop."""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", obj], stdout=subprocess.PIPE, check=True, text=True).stdout
    body = re.search(r"^[0-9a-f]+ <\w*FmaLoop\w*>:\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    if body is None:
        sys.exit(f"{obj}: no function FmaLoop")
    found = []
    for line in body.group(1).splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+(?:data16\s+|cs\s+)*(\S+)\s*(.*)", line)
        if match:
            found.append((int(match.group(1), 16), match.group(2), match.group(3)))
    return found


def main():
    objdump, count, obj = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    code = instructions(objdump, obj)
    loops = []
    for address, mnemonic, operands in code:
        goal = re.search(r"\b([0-9a-f]+) <", operands)
        if re.match(r"j|b\.|cb", mnemonic) and goal and int(goal.group(1), 16) < address:
            body = [i for i in code if int(goal.group(1), 16) <= i[0] <= address]
            if any(FMA.fullmatch(i[1]) for i in body):
                loops.append(body)
    if len(loops) != 1:
        sys.exit(f"{obj}: {len(loops)} loops hold fused multiply-adds, one should")
    fused = [i for i in loops[0] if FMA.fullmatch(i[1])]
    others = [i for i in loops[0] if not FMA.fullmatch(i[1])]
    faults = [i for i in others if not COUNTING.fullmatch(i[1])] + [i for i in fused if "(" in i[2]]
    print(f"{len(fused)} fused multiply-adds and {' '.join(i[1] for i in others)}")
    if faults or len(fused) != count or len(others) > 4:
        sys.exit(f"{obj}: {count} and at most 4 others were expected; what does not belong there: {faults}")


if __name__ == "__main__":
    main()

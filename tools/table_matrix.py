#!/usr/bin/env python3
"""Prints what each kernel table of each build has shown: built, ran, its cases, its bits; fails where one that was expected to run did not.

    python3 tools/table_matrix.py LABEL=BUILD ...

A build has the digest (tests/etalon_digest), and for its cases the programs CASES, which must all end well and pass cases; for some processors
the digest alone is built. One for another processor runs under qemu. Which tables and programs a build for a processor must have is written here
once more, and whether a table may run here is asked of the system and not of the library: what drops out of a build, or what the library finds
reasons not to run, is noticed.
"""

import pathlib
import platform
import re
import shutil
import struct
import subprocess
import sys

DIGEST = "tests/etalon_digest"
CASES = ["tests/kernels/cases_test", "tests/api/api_cases_test", "tests/api/api_cases_options_test", "tests/api/api_cases_memory_test"]

# By ELF's number of a processor: its name, whether case programs are built for it, and each table with the flags of /proc/cpuinfo that it needs.
AVX512 = {"avx512f", "avx512cd", "avx512dq", "avx512bw", "avx512vl"}
PROCESSORS = {
    62: ("x86_64", True, {"scalar": set(), "xsimd-avx2": {"avx2", "fma"}, "xsimd-avx512": AVX512, "scalar-fma": {"fma"},
                          "highway-avx2": {"avx2", "fma"}, "highway-avx3": AVX512}),
    183: ("aarch64", True, {"scalar": set(), "xsimd-neon64": set(), "highway-neon": set()}),
    243: ("riscv64", False, {"scalar": set()}),
    40: ("arm", False, {"scalar": set()}),
}


class Build:
    def __init__(self, label, folder):
        self.label, self.folder = label, pathlib.Path(folder)
        digest = self.folder / DIGEST
        if not digest.is_file():
            raise SystemExit(f"{label}: {digest} is not there")
        head = digest.read_bytes()[:20]
        if len(head) < 20 or head[:4] != b"\x7fELF":
            raise SystemExit(f"{label}: {digest} is no ELF program")
        number = struct.unpack_from("<H", head, 18)[0]
        if number not in PROCESSORS:
            raise SystemExit(f"{label}: {DIGEST} is for ELF's machine {number}, which is not known to tools/table_matrix.py")
        self.processor, self.has_cases, self.tables = PROCESSORS[number]
        self.emulator = []
        self.flags = set()
        if self.processor == platform.machine():
            self.flags = set(re.findall(r"\S+", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")))
        else:
            found = next(filter(None, map(shutil.which, [f"qemu-{self.processor}", f"qemu-{self.processor}-static"])), None)
            if found is None:
                raise SystemExit(f"{label}: there is no qemu-{self.processor}")
            self.emulator = [found]

    def run(self, program, *arguments):
        """(exit code, output); 126 as in a shell where it cannot be started."""
        try:
            done = subprocess.run([*self.emulator, str(self.folder / program), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True, errors="replace")
        except OSError as problem:
            return 126, str(problem)
        return done.returncode, done.stdout


class Row:
    """Of one table in one build."""

    def __init__(self, needs):
        self.lacks = needs
        self.built, self.passed, self.failed, self.ran, self.equal = False, 0, 0, 0, None
        self.faults = []


def measure(build, digest_file):
    """({table: Row}, whether it has case programs, its faults)"""
    rows, faults = {name: Row(sorted(needs - build.flags)) for name, needs in build.tables.items()}, []

    def row(name):
        if name not in rows:
            rows[name] = Row([])
            rows[name].faults.append("is not known to tools/table_matrix.py")
        return rows[name]

    code, output = build.run(DIGEST, "--check", str(digest_file))
    for name, verdict in re.findall(r"^(\S+): (equal|got) ", output, re.MULTILINE):
        row(name).equal = verdict == "equal" and row(name).equal is not False
    if code != 0:
        faults.append(f"the digest ended with {code}: {output.strip().splitlines()[-1:]}")
    programs = [program for program in CASES if (build.folder / program).is_file()]
    if build.has_cases:
        faults += [f"{program} is not in this build" for program in CASES if program not in programs]
    for program in programs:
        code, output = build.run(program)
        count = re.search(r"test cases:\s*(\d+) \|\s*(\d+) passed \|\s*(\d+) failed", output)
        if count is None:
            faults.append(f"{program} ended with {code} and counts no cases")
            continue
        if code != 0:
            faults.append(f"{program} ended with {code}")
        if int(count[2]) == 0:
            faults.append(f"{program} passed no case")
        for name, state in re.findall(r"^table (\S+): (.*)$", output, re.MULTILINE):
            row(name).built = True
            if state == "ran":
                row(name).ran += 1
                row(name).passed += int(count[2])
                row(name).failed += int(count[3])
    for name, r in rows.items():
        r.built = r.built or r.equal is not None
        if programs and not r.built:
            r.faults.append("is not in this build")
        if r.lacks:
            continue
        if r.equal is None:
            r.faults.append("did not give a digest, though it could run here")
        elif not r.equal:
            r.faults.append("gave another digest")
        if r.ran < len(programs):
            r.faults.append(f"ran in {r.ran} of {len(programs)} programs")
        if r.failed:
            r.faults.append(f"was there when {r.failed} cases failed")
    return rows, bool(programs), faults + [f"{name} {fault}" for name, r in rows.items() for fault in r.faults]


def line(label, name, r, has_cases):
    ran = f"no: needs {r.lacks[0]}" if r.lacks else "yes" if r.equal is not None or r.ran else "NO"
    cases = "-" if not has_cases or r.lacks else f"{r.passed} of {r.passed + r.failed}"
    bits = "-" if r.equal is None else "equal" if r.equal else "DIFFER"
    built = "yes" if r.built else "?" if not has_cases and r.lacks else "NO"
    return [name, label, built, ran, cases, bits]


def main(arguments):
    if not arguments or not all("=" in word for word in arguments):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    digest_file = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/digest.txt"
    lines, all_faults = [["table", "build", "built", "ran", "cases", "bits"]], []
    for word in arguments:
        build = Build(*word.split("=", 1))
        rows, has_cases, faults = measure(build, digest_file)
        lines += [line(build.label, name, r, has_cases) for name, r in rows.items()]
        all_faults += [f"{build.label}: {fault}" for fault in faults]
    widths = [max(len(cells[i]) for cells in lines) for i in range(6)]
    for cells in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())
    for fault in all_faults:
        print(f"FAILED: {fault}")
    return 1 if all_faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

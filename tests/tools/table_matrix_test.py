"""tools/table_matrix.py notices what it is there to notice."""
import contextlib
import io
import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import table_matrix

TABLES = {"scalar": set(), "wide": {"wide_flag"}, "wider": {"wider_flag"}}
DIGEST = "scalar: equal (host state default)\nwide: equal (host state default)\n"
REPORT = "table scalar: ran\ntable wide: ran\ntable wider: skipped (missing wider_flag)\n"
COUNT = "[doctest] test cases:  7 |  7 passed | 0 failed | 0 skipped\n"


class FakeBuild:
    label, tables, flags = "fake", TABLES, {"wide_flag"}

    def __init__(self, folder, digest=(0, DIGEST), cases=(0, COUNT + REPORT), programs=table_matrix.CASES, has_cases=True):
        self.folder, self.digest, self.cases, self.has_cases = pathlib.Path(folder), digest, cases, has_cases
        for program in programs:
            (self.folder / program).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / program).touch()

    def run(self, program, *_):
        return self.digest if program == table_matrix.DIGEST else self.cases


class Matrix(unittest.TestCase):
    def faults(self, **answers):
        with tempfile.TemporaryDirectory() as folder:
            rows, has_cases, faults = table_matrix.measure(FakeBuild(folder, **answers), "digest.txt")
        self.lines = [" ".join(table_matrix.line("fake", name, r, has_cases)) for name, r in rows.items()]
        return faults

    def test_the_exit_code_says_whether_there_were_faults(self):
        for digest, code in ((0, DIGEST), 0), ((1, DIGEST), 1), ((0, ""), 1):
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
                real = table_matrix.Build
                table_matrix.Build = lambda label, _: FakeBuild(folder, digest=digest)
                try:
                    self.assertEqual(table_matrix.main(["fake=" + folder]), code)
                finally:
                    table_matrix.Build = real
            self.assertEqual("FAILED: fake: " in said.getvalue(), code == 1)

    def test_a_digest_that_ends_badly_though_it_says_nothing_bad(self):
        self.assertEqual(len(self.faults(digest=(7, DIGEST))), 1)
        self.assertIn("7", self.faults(digest=(7, DIGEST))[0])

    def test_one_digest_that_is_right_does_not_hide_one_that_is_wrong(self):
        for lines in (DIGEST + "wide: got 1\n", "wide: got 1\n" + DIGEST):
            self.assertIn("wide gave another digest", self.faults(digest=(0, lines)))

    def test_all_is_well(self):
        self.assertEqual(self.faults(), [])
        cases = 7 * len(table_matrix.CASES)
        self.assertEqual(self.lines, [f"scalar fake yes yes {cases} of {cases} equal", f"wide fake yes yes {cases} of {cases} equal",
                                      "wider fake yes no: needs wider_flag - -"])

    def test_a_table_that_dropped_out_of_the_build(self):
        report = REPORT.replace("table wide: ran\n", "")
        self.assertIn("wide is not in this build", self.faults(digest=(0, DIGEST.splitlines()[0] + "\n"), cases=(0, COUNT + report)))
        report = REPORT.replace("table wider: skipped (missing wider_flag)\n", "")
        self.assertEqual(self.faults(cases=(0, COUNT + report)), ["wider is not in this build"])

    def test_a_table_that_finds_a_reason_not_to_run(self):
        report = REPORT.replace("wide: ran", "wide: skipped (missing wide_flag)")
        faults = self.faults(digest=(0, DIGEST.splitlines()[0] + "\n"), cases=(0, COUNT + report))
        self.assertEqual(len(faults), 2)
        self.assertTrue(all(fault.startswith("wide ") for fault in faults), faults)
        self.assertEqual(self.lines[1], f"wide fake yes NO 0 of 0 -")

    def test_another_digest(self):
        got = 'wide: got "exp 1", want "exp 2"'
        faults = self.faults(digest=(1, f"{DIGEST.splitlines()[0]}\n{got}\n"))
        self.assertIn("wide gave another digest", faults)
        self.assertIn("DIFFER", self.lines[1])

    def test_cases_that_fail(self):
        failed = COUNT.replace("7 passed | 0 failed", "6 passed | 1 failed")
        count = len(table_matrix.CASES)
        self.assertEqual(self.faults(cases=(1, failed + REPORT)), [f"{program} ended with 1" for program in table_matrix.CASES] +
                         [f"{name} was there when {count} cases failed" for name in ["scalar", "wide"]])

    def test_a_program_that_ends_early(self):
        self.assertIn(f"{table_matrix.CASES[0]} ended with -4 and counts no cases", self.faults(cases=(-4, "")))

    def test_a_program_that_counts_well_and_ends_badly(self):
        self.assertEqual(self.faults(cases=(-11, COUNT + REPORT)), [f"{program} ended with -11" for program in table_matrix.CASES])

    def test_a_program_that_passes_no_case(self):
        none = "[doctest] test cases: 0 | 0 passed | 0 failed | 7 skipped\n"
        self.assertEqual(self.faults(cases=(0, none + REPORT)), [f"{program} passed no case" for program in table_matrix.CASES])

    def test_programs_that_dropped_out_of_the_build(self):
        self.assertEqual(self.faults(programs=table_matrix.CASES[1:]), [f"{table_matrix.CASES[0]} is not in this build"])
        self.assertEqual(self.faults(programs=[]), [f"{program} is not in this build" for program in table_matrix.CASES])

    def test_a_build_that_is_to_have_the_digest_alone(self):
        self.assertEqual(self.faults(programs=[], has_cases=False), [])
        self.assertEqual(self.lines[0], "scalar fake yes yes - equal")
        none = "[doctest] test cases: 0 | 0 passed | 0 failed | 7 skipped\n"  # what it has counts all the same
        self.assertEqual(self.faults(programs=table_matrix.CASES[:1], has_cases=False, cases=(0, none + REPORT)),
                         [f"{table_matrix.CASES[0]} passed no case"])

    def test_a_table_that_nobody_told_of(self):
        self.assertEqual(self.faults(cases=(0, COUNT + REPORT + "table new: ran\n")),
                         [f"new {fault}" for fault in ["is not known to tools/table_matrix.py", "did not give a digest, though it could run here"]])

    def test_a_build_that_is_not_there(self):
        with self.assertRaises(SystemExit):
            table_matrix.Build("none", "/nowhere")
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(table_matrix.main(["no label"]), 2)

    def digest_of(self, content):
        """Why a build with this digest program is none."""
        with tempfile.TemporaryDirectory() as folder:
            digest = pathlib.Path(folder, table_matrix.DIGEST)
            digest.parent.mkdir(parents=True)
            digest.write_bytes(content)
            with self.assertRaises(SystemExit) as end:
                table_matrix.main([f"odd={folder}"])
            self.assertNotIn("\n", str(end.exception))  # a text as exit code: to standard error, and 1
            return str(end.exception).replace(folder, "BUILD")

    def test_a_digest_that_is_no_program(self):
        for content in b"", b"\x7fELF", b"#!/bin/sh\necho scalar: equal\n":
            self.assertEqual(self.digest_of(content), f"odd: BUILD/{table_matrix.DIGEST} is no ELF program")

    def test_a_digest_for_a_processor_that_nobody_told_of(self):
        elf = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, 258)
        self.assertEqual(self.digest_of(elf),
                         f"odd: {table_matrix.DIGEST} is for ELF's machine 258, which is not known to tools/table_matrix.py")

    def test_who_has_case_programs(self):
        self.assertEqual({name: has_cases for name, has_cases, _ in table_matrix.PROCESSORS.values()},
                         {"x86_64": True, "aarch64": True, "riscv64": False, "arm": False})

    def test_a_program_that_cannot_be_started(self):
        with tempfile.TemporaryDirectory() as folder:
            build = table_matrix.Build.__new__(table_matrix.Build)
            build.folder, build.emulator = pathlib.Path(folder), []
            (build.folder / "program").write_bytes(b"\x7fELF")
            code, output = build.run("program")
        self.assertEqual(code, 126)
        self.assertIn("Permission denied", output)


if __name__ == "__main__":
    unittest.main()

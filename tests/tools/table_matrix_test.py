"""tools/table_matrix.py notices what it is there to notice."""
import contextlib
import io
import pathlib
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

    def __init__(self, folder, digest=(0, DIGEST), cases=(0, COUNT + REPORT)):
        self.folder, self.digest, self.cases = pathlib.Path(folder), digest, cases
        for program in table_matrix.CASES:
            (self.folder / program).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / program).touch()

    def run(self, program, *_):
        return self.digest if program == table_matrix.DIGEST else self.cases


class Matrix(unittest.TestCase):
    def faults(self, **answers):
        with tempfile.TemporaryDirectory() as folder:
            rows, has_cases = table_matrix.measure(FakeBuild(folder, **answers), "digest.txt")
        self.lines = [" ".join(table_matrix.line("fake", name, r, has_cases)) for name, r in rows.items()]
        return [f"{name} {fault}" for name, r in rows.items() for fault in r.faults]

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
        self.assertEqual(len(self.faults(cases=(1, failed + REPORT))), 2)

    def test_a_program_that_ends_early(self):
        self.assertIn(f"scalar {table_matrix.CASES[0]} ended with -4 and counts no cases", self.faults(cases=(-4, "")))

    def test_a_table_that_nobody_told_of(self):
        self.assertEqual(self.faults(cases=(0, COUNT + REPORT + "table new: ran\n")),
                         [f"new {fault}" for fault in ["is not known to tools/table_matrix.py", "did not give a digest, though it could run here"]])

    def test_a_build_that_is_not_there(self):
        with self.assertRaises(SystemExit):
            table_matrix.Build("none", "/nowhere")
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(table_matrix.main(["no label"]), 2)


if __name__ == "__main__":
    unittest.main()

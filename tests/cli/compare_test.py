"""`etalon check --compare`: two machines by their reports.  compare_test.py ETALON"""
import copy
import json
import os
import pathlib
import sys
import tempfile
import unittest

import tool

TOOL = None
GOLDEN = "0123456789ABCDEF"


def table(name, **changes):
    return {"name": name, "available": True, "bits_equal": True, "digest": GOLDEN, "max_abs": 1e-7, "rms_error": 4e-7, "max_ulp": 9.5,
            "hashes": {"digest/exp": "AAAA", "model/row": "BBBB", "full/attention/long": "CCCC"}, **changes}


def machine(cpu, *tables):
    return {"version": "0.1.0", "arithmetic": 1, "digest": GOLDEN, "ok": True, "cpu": {"name": cpu, "features": []}, "tables": list(tables)}


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        missing = {"name": "highway-avx3", "available": False, "reason": "lacks avx512f"}
        self.a = machine("Left CPU", table("scalar"), table("highway-avx2"), missing)
        self.b = machine("Right CPU", table("scalar"), table("highway-neon"))

    def compare(self, a, b, *options):
        paths = []
        for name, content in (("a.json", a), ("b.json", b)):
            path = self.folder / name
            path.write_text(content if isinstance(content, str) else json.dumps(content))
            paths.append(str(path))
        return tool.run(TOOL, "check", "--compare", *paths, *options)

    def expect(self, code, a, b, *texts):
        done = self.compare(a, b)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr if code == 3 else done.stdout)
        if code == 3:
            self.assertEqual(done.stdout, "")
        return done

    def test_equal_machines_with_other_tables(self):
        done = self.expect(0, self.a, self.b, "Left CPU", "Right CPU", "3 cases are in both", "ok: no case differs")
        rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
        self.assertRegex(rows["scalar"], r"^scalar +yes +%s" % GOLDEN)
        self.assertRegex(rows["highway-avx2"], r"^highway-avx2 +- .*not in it")
        self.assertRegex(rows["highway-neon"], r"^highway-neon +- +not in it .*%s" % GOLDEN)
        self.assertIn("did not run", rows["highway-avx3"])
        report = json.loads(self.compare(self.a, self.b, "--json").stdout)
        self.assertEqual(list(report)[:2], ["version", "arithmetic"])
        self.assertEqual((report["ok"], report["common_cases"], report["differences"], report["only_in_one"]), (True, 3, [], []))
        self.assertEqual([m["cpu"] for m in report["machines"]], ["Left CPU", "Right CPU"])
        self.assertEqual(report["machines"][0]["tables"][0]["max_ulp"], 9.5)

    def test_one_hash_that_differs_is_named_with_its_table(self):
        self.b["tables"][1]["hashes"]["model/row"] = "DDDD"  # of a table that the other machine does not have
        done = self.expect(1, self.a, self.b, "DIFFERENT: model/row: ", "DDDD by highway-neon of ", "FAILED")
        self.assertNotIn("digest/exp:", done.stdout)
        report = json.loads(self.compare(self.a, self.b, "--json").stdout)
        self.assertEqual(len(report["differences"]), 1)
        self.assertIs(report["ok"], False)
        both = copy.deepcopy(self.a)
        both["tables"][0]["hashes"]["digest/exp"] = "EEEE"
        self.assertRegex(self.expect(1, self.a, both).stdout, r"(?m)^scalar +NO ")

    def test_digests(self):
        self.b["tables"][0]["digest"] = "F" * 16
        self.expect(1, self.a, self.b, "scalar of ", "has the digest FFFFFFFFFFFFFFFF, not " + GOLDEN)
        self.b = machine("Right CPU", table("scalar"))
        self.b["digest"] = "E" * 16
        self.expect(1, self.a, self.b, "demand different digests: %s and EEEE" % GOLDEN)
        self.b = machine("Right CPU", table("scalar", bits_equal=False))
        self.expect(1, self.a, self.b, "does not give the bits that were demanded")

    def test_another_arithmetic(self):
        self.b["arithmetic"] = 2
        self.expect(1, self.a, self.b, "arithmetic 1 and 2: these versions promise different bits")
        self.b["arithmetic"] = 1
        self.b["version"] = "0.2.0"
        self.expect(0, self.a, self.b, "0.1.0", "0.2.0")  # other code, the same bits

    def test_what_only_one_has_is_said(self):
        del self.b["tables"][0]["hashes"]["full/attention/long"]
        del self.b["tables"][1]["hashes"]["full/attention/long"]
        self.b["tables"][0]["hashes"]["model/new"] = "1111"
        self.expect(0, self.a, self.b, "2 cases are in both", "scalar of ", "lacks 1 case: full/attention/long", "lacks 1 case: model/new",
                    "highway-neon of ", "lacks 2 cases: full/attention/long, model/new")
        both = copy.deepcopy(self.a)
        del both["tables"][0]["hashes"]["full/attention/long"]
        self.assertRegex(self.expect(0, self.a, both).stdout, r"(?m)^scalar +in part ")
        self.assertRegex(self.expect(0, both, self.a).stdout, r"(?m)^scalar +in part ")
        both["tables"][0]["hashes"] = {"other": "2222"}
        self.assertRegex(self.expect(0, self.a, both).stdout, r"(?m)^scalar +- ")
        for one in self.b["tables"]:
            one["hashes"] = {"other": "2222"}
        self.expect(3, self.a, self.b, "have no case in common")

    def test_files_that_are_no_reports(self):
        self.expect(3, self.a, "{", "b.json: not JSON")
        self.expect(3, "[]", self.b, "a.json: not a report of `etalon check --json`: the whole is no object")
        for path in (["version"], ["arithmetic"], ["digest"], ["cpu"], ["cpu", "name"], ["tables"], ["tables", 1, "name"],
                     ["tables", 1, "available"], ["tables", 1, "digest"], ["tables", 1, "bits_equal"], ["tables", 1, "max_ulp"],
                     ["tables", 1, "hashes"], ["tables", 2, "reason"]):
            broken = copy.deepcopy(self.a)
            inner = broken
            for step in path[:-1]:
                inner = inner[step]
            name = "".join("[%d]" % p if isinstance(p, int) else "." + p for p in path)[1:]
            inner[path[-1]] = [[]]
            self.expect(3, broken, self.b, "a.json: not a report", path[0])
            del inner[path[-1]]
            self.expect(3, broken, self.b, "a.json: not a report", name + " is missing")
        self.a["arithmetic"] = 2 ** 64 - 1
        self.expect(3, self.a, self.b, "arithmetic is no whole number")
        self.a["arithmetic"] = 1
        self.a["tables"][0]["hashes"]["digest/exp"] = 5
        self.expect(3, self.a, self.b, "tables[0].hashes: digest/exp is no text")

    def test_files_that_cannot_be_read(self):
        path = self.folder / "a.json"
        path.write_text(json.dumps(self.a))
        for other in (self.folder / "none.json", self.folder):
            done = tool.run(TOOL, "check", "--compare", str(path), str(other))
            self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
            self.assertIn(str(other)[-40:], done.stderr)

    def test_an_error_that_is_infinite_is_null(self):
        self.b["tables"][0]["max_ulp"] = None
        done = self.expect(0, self.a, self.b)
        self.assertRegex(done.stdout, r"(?m)^scalar .* inf *$")

    def test_usage(self):
        for args in (["--compare", "a.json"], ["--compare", "a", "b", "c"], ["--compare", "a", "b", "--full"],
                     ["--compare", "a", "b", "--target", "scalar"]):
            done = tool.run(TOOL, "check", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)

    def test_a_terminal_is_safe_from_what_files_say(self):
        self.b["cpu"]["name"] = "evil\x1b[2J"
        self.b["tables"][1]["hashes"]["model/\x1b[31m"] = "\x1b[0m"
        self.assertNotIn("\x1b", self.expect(0, self.a, self.b).stdout)

    def test_a_true_report_with_itself(self):
        report = tool.run(TOOL, "check", "--json", "--target", "scalar").stdout
        self.expect(0, report, report, "ok: no case differs")


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()

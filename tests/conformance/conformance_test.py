"""tools/conformance.py on the cases of this folder:  conformance_test.py ETALON"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.abspath(sys.argv.pop(1))
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path += [str(HERE), str(HERE / "adapters"), str(ROOT / "tools")]

import answers  # noqa: E402
import conformance  # noqa: E402
import conformance_ask  # noqa: E402
import make  # noqa: E402

CASES = {case.id: case for case in answers.load()}
PLAIN = HERE / "adapters" / "plain_python.py"


def run(*args, pose="right"):
    """(exit code, standard output)"""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("ETALON_")}
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "conformance.py"), "--tool", TOOL, *map(str, args)], timeout=55,
                          env={**variables, "POSE": pose}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise AssertionError("exit code %d: %s" % (done.returncode, done.stderr))
    return done.returncode, done.stdout


def report(*args, **settings):
    code, said = run(*args, "--json", **settings)
    return code, json.loads(said)


class Etalon(unittest.TestCase):
    def test_every_table_gives_the_bits(self):
        code, said = report("--every-table")
        info = json.loads(subprocess.run([TOOL, "info", "--json"], stdout=subprocess.PIPE, check=True).stdout)
        tables = ["Etalon " + table["name"] for table in info["tables"] if table["available"]]
        self.assertEqual([asked["name"] for asked in said["asked"]], tables)
        self.assertEqual([case["id"] for case in said["cases"]], list(CASES))
        for case in said["cases"]:
            for table in tables:
                with self.subTest(case=case["id"], table=table):
                    self.assertEqual(case["answers"][table]["fault"], "")
                    self.assertEqual(case["answers"][table]["answer"], case["expected"])
        self.assertEqual(code, 0)

    def pose(self, pose, *args):
        """The runner's exit code and {case: answer} where an adapter stands in Etalon's place that gives answers out of the files."""
        code, said = report("--etalon", HERE / "poser.py", "--alone", *args, pose=pose)
        return code, {case["id"]: case["answers"]["Etalon"] for case in said["cases"]}

    def test_the_right_answers_pass(self):
        code, given = self.pose("right")
        self.assertEqual({name for name, x in given.items() if x["fault"]}, set())
        self.assertEqual(code, 0)

    def test_each_other_answer_is_noticed_and_named(self):
        code, given = self.pose("other")
        self.assertEqual(code, 1)
        for name, x in given.items():
            others = [other for other, array in CASES[name].answers.items() if other != CASES[name].expected and array is not None]
            with self.subTest(case=name):
                self.assertEqual(x["answer"], others[0] if others else CASES[name].expected)
                self.assertEqual(bool(x["fault"]), bool(others))
        code, _ = self.pose("other", "--only", "softcap-bias")
        self.assertEqual(code, 1)

    def test_one_bit_is_noticed(self):
        code, given = self.pose("bit")
        self.assertEqual(code, 1)
        for name, x in given.items():
            if CASES[name].bits:
                self.assertRegex(x["fault"], r"^1 of \d+ elements of out have other bits$")

    def test_what_is_not_a_result_is_noticed(self):
        for pose, pattern in (("more", "^lse has another type or shape$"), ("shape", "^out has another type or shape$"), ("error", "^gives no result$")):
            code, given = self.pose(pose, "--only", "causal-decode")
            self.assertEqual(code, 1)
            self.assertRegex(given["causal-decode"]["fault"], pattern)

    def test_a_crash_of_the_tool_is_no_refusal(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder, "etalon")
            tool.write_text('#!/bin/sh\n[ "$1" = attend ] && kill -SEGV $$\necho etalon\n')
            tool.chmod(0o755)
            code, said = report("--tool", tool, "--alone", "--only", "scale-zero")
        self.assertEqual(code, 1)
        self.assertEqual(said["cases"][0]["answers"]["Etalon"]["answer"], "crashes")

    def test_etalon_may_not_be_missing(self):
        for pose in ("missing", "broken"):
            code, _ = report("--etalon", HERE / "poser.py", "--alone", "--only", "causal", pose=pose)
            self.assertEqual(code, 1)


class Others(unittest.TestCase):
    def other(self, *args, **settings):
        code, said = report("--alone", "--adapter", HERE / "poser.py", *args, **settings)
        self.assertEqual(code, 0)  # whatever others do
        return said

    def test_who_is_not_installed_says_so(self):
        said = self.other("--only", "causal-square", pose="missing")
        self.assertEqual(said["asked"][1], {"name": "Etalon, a poser", "function": "", "version": None, "absent": "not installed",
                                            "why": "no such thing"})
        self.assertIsNone(said["cases"][0]["answers"]["Etalon, a poser"])
        for form in ("--markdown", None):
            _, text = run("--alone", "--adapter", HERE / "poser.py", "--only", "causal-square", *([form] if form else []), pose="missing")
            self.assertEqual(text.count("not installed"), 2)

    def test_wrong_answers_of_others_are_only_named(self):
        said = self.other("--only", "causal-decode", pose="other")
        self.assertEqual(said["cases"][0]["answers"]["Etalon, a poser"], {"answer": "top-left", "more": "", "fault": ""})

    def test_who_crashes_or_hangs_is_asked_the_next_case(self):
        for pose, more, seconds in (("crash", "crashes with signal 11", 50), ("hang", "hangs", 2)):
            said = self.other("--only", "causal", "--seconds", seconds, pose=pose)
            given = {case["id"]: case["answers"]["Etalon, a poser"] for case in said["cases"]}
            self.assertEqual((given["causal-decode"]["answer"], given["causal-decode"]["more"]), ("crashes", more))
            self.assertEqual(given["causal-square"]["answer"], "causal")
            self.assertEqual(given["causal-top-left"]["answer"], "top-left")

    def test_who_does_not_start_says_so_and_the_others_go_on(self):
        for pose, more, seconds in (("slow", "no word in 2 s", 2), ("broken", "RuntimeError: no such processor", 50),
                                    ("away", "ends with exit code 0", 50)):
            code, said = report("--alone", "--adapter", HERE / "poser.py", "--adapter", PLAIN, "--only", "causal-square", "--only", "mask-polarity",
                                "--seconds", seconds, pose=pose)
            self.assertEqual(code, 0)
            self.assertEqual(said["asked"][1], {"name": "Etalon, a poser", "function": "", "version": None, "absent": "does not start", "why": more})
            self.assertEqual([case["answers"]["a book's formula"]["answer"] for case in said["cases"]], ["-", "true shows"])
        for form in ("--markdown", None):
            _, text = run("--alone", "--adapter", HERE / "poser.py", "--only", "causal-square", *([form] if form else []), pose="broken")
            self.assertEqual(text.count("does not start"), 2)
            self.assertIn("does not start (RuntimeError: no such processor)", text)

    def test_who_leaves_without_an_answer_is_asked_the_next_case(self):
        said = self.other("--only", "causal", pose="leave")
        given = {case["id"]: case["answers"]["Etalon, a poser"] for case in said["cases"]}
        self.assertEqual((given["causal-decode"]["answer"], given["causal-decode"]["more"]), ("crashes", "ends with exit code 0"))
        self.assertEqual(given["causal-square"]["answer"], "causal")

    def test_answers_that_are_none(self):
        """However strange, they are the adapter's, and the others are shown."""
        text = ("class Adapter:\n    name, version = 'strange\\nnews', 5\n    def __init__(self, settings): pass\n"
                "    def supports(self, case): return %s\n    def run(self, case):\n        %s\n")
        for supports, body, words, more in (("''", "return {}", "refuses", "gives no out"), ("''", "return None", "refuses", "gives no out"),
                                            ("5", "pass", "-", "5"), ("''", "raise RuntimeError('a \\udc80 b')", "refuses", "a \\udc80 b")):
            with self.subTest(body), tempfile.TemporaryDirectory() as folder:
                adapter = pathlib.Path(folder, "strange.py")
                adapter.write_text(text % (supports, body))
                words_of = ["--alone", "--only", "causal-square", "--adapter", adapter, "--adapter", PLAIN]
                code, said = report(*words_of)
                given = said["cases"][0]["answers"]
                self.assertEqual((code, given["strange news"]["answer"], given["strange news"]["more"]), (0, words, more))
                self.assertEqual(given["a book's formula"]["answer"], "-")
                self.assertIn(more, run(*words_of, "--markdown")[1])

    def test_who_starts_only_once(self):
        with tempfile.TemporaryDirectory() as folder:
            said = self.other("--only", "causal", pose="once:" + str(pathlib.Path(folder, "was here")))
        given = {case["id"]: case["answers"]["Etalon, a poser"] for case in said["cases"]}
        self.assertEqual(given["causal-top-left"]["answer"], "top-left")
        self.assertEqual(given["causal-decode"], {"answer": "crashes", "more": "crashes with signal 11", "fault": ""})
        self.assertEqual(given["causal-square"], {"answer": "crashes", "more": "does not start again (RuntimeError: was here before)", "fault": ""})

    def test_what_a_library_prints_need_not_be_text(self):
        said = self.other("--only", "causal-square", pose="noise")
        self.assertEqual(said["cases"][0]["answers"]["Etalon, a poser"]["answer"], "causal")

    def test_the_example(self):
        code, said = report("--alone", "--adapter", PLAIN)
        self.assertEqual(code, 0)
        given = {case["id"]: case["answers"]["a book's formula"] for case in said["cases"]}
        for name, answer in (("mask-polarity", "true shows"), ("hidden-value", "NaN"), ("heads-in-groups", "0, 0, 1, 1"), ("empty-by-mask", "refuses"),
                             ("scores-very-low", "refuses"), ("softcap-bias", "-"), ("nan-score", "NaN")):
            self.assertEqual(given[name]["answer"], answer, name)
        self.assertEqual(given["softcap-bias"]["more"], "has no softcap, bias")
        self.assertLessEqual(len(PLAIN.read_text().splitlines()), 30)


class Files(unittest.TestCase):
    def test_sources_of_the_cases(self):
        fields = set(re.findall(r"^([A-Z]{3}-\d+) ", (ROOT / "tests" / "cases.txt").read_text(), re.MULTILINE))
        headings = {line.strip("# ").lower().replace(" ", "-")
                    for line in (ROOT / "docs" / "semantics.md").read_text().splitlines() if line.startswith("## ")}
        for case in CASES.values():
            with self.subTest(case=case.id):
                self.assertTrue(case.about["field"])
                self.assertEqual(set(case.about["field"]) - fields, set())
                self.assertIn(case.about["semantics"], headings)

    def test_the_table_in_the_documents(self):
        rows = re.findall(r"^\| ([a-z0-9-]+) \| (.*?) \| (.*?) \|", (ROOT / "docs" / "conformance.md").read_text(), re.MULTILINE)
        rows = [row for row in rows if row[0] != "case"]
        self.assertEqual(rows, [(case.id, case.about["asks"], case.expected) for case in CASES.values()])

    def test_that_the_document_names_the_functions(self):
        text = (ROOT / "docs" / "conformance.md").read_text()
        looks = [conformance_ask.look(path, 50) for path in [conformance.ETALON, *conformance.OTHERS]]
        heads = re.findall(r"^\| case \| asks \| (.*) \|$", text, re.MULTILINE)
        self.assertEqual(set(heads), {" | ".join(about["name"] for about in looks)})
        for about in looks:
            self.assertRegex(text, r"(?m)^- %s \S.*: `%s`" % (re.escape(about["name"]), re.escape(about["function"])))
        self.assertEqual(len({about["function"] for about in looks}), len(looks))

    def test_that_the_check_of_the_files_sees_one_bit(self):
        entries, arrays = make.everything()
        self.assertEqual(list(make.check(entries, arrays)), [])
        data = bytearray(arrays["causal-decode"]["etalon_lse"].data())
        data[0] ^= 1
        arrays["causal-decode"]["etalon_lse"] = make.from_bytes("f32", (1, 1), bytes(data))
        self.assertEqual(list(make.check(entries, arrays)), ["cases/causal-decode.npz: etalon_lse"])
        del arrays["causal-decode"]["etalon_lse"], arrays["prefix"]
        entries[0]["asks"] += "?"
        self.assertEqual(list(make.check(entries, arrays)), ["cases.json", "cases/prefix.npz is left over",
                                                             "cases/causal-decode.npz: etalon_lse is in one only"])


if __name__ == "__main__":
    unittest.main()

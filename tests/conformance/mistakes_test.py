"""What tools/conformance.py says where it cannot ask what it is told to ask:  mistakes_test.py ETALON"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.abspath(sys.argv.pop(1))
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
POSING = ["--etalon", HERE / "poser.py", "--alone"]


class Mistakes(unittest.TestCase):
    """Each is one line on standard error and the exit code 2, before anybody was asked anything."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, text, mode=0o644):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def refused(self, pattern, *args, root=ROOT, tool=TOOL):
        asked = self.folder / "asked"
        variables = {name: value for name, value in os.environ.items() if not name.startswith("ETALON_")}
        variables["POSE"] = "note:" + str(asked)
        done = subprocess.run([sys.executable, str(root / "tools" / "conformance.py"), "--tool", str(tool), *map(str, args)], timeout=55,
                              env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Aconformance\.py: [^\n]*" + pattern + r"[^\n]*\n\Z")
        self.assertFalse(asked.exists())

    def test_adapters(self):
        for name, text, pattern in (("syntax.py", "class Adapter\n", "SyntaxError"), ("empty.py", "", "no attribute 'Adapter'"),
                                    ("lacking.py", "class Adapter:\n    name = 'x'\n", "Adapter has no supports, run"),
                                    ("import.py", "import no_such_module\n", "No module named 'no_such_module'"),
                                    ("leaves.py", "raise SystemExit\n", "ends with exit code 0"),
                                    ("name.py", "class Adapter:\n    name = 'a|b'\n    supports = run = None\n", "heads no column"), ("adapter.txt", "", "no file of Python")):
            with self.subTest(adapter=name):
                self.refused("--adapter: .*" + name + ": .*" + pattern, *POSING, "--adapter", self.file(name, text))
        for option in ("--adapter", "--etalon"):
            self.refused(option + ": .*nowhere.py: there is no such file", *POSING, option, self.folder / "nowhere.py")
        slow = self.file("slow.py", "import time\ntime.sleep(50)\n")
        self.refused("slow.py: no word in 2 s", *POSING, "--adapter", slow, "--seconds", 2)

    def test_two_of_one_name(self):
        self.refused('two are called "Etalon, a poser"', *POSING, *["--adapter", HERE / "poser.py"] * 2)

    def test_the_tool(self):
        self.refused("--tool: .*nowhere", *POSING, tool=self.folder / "nowhere")
        self.refused("--tool: .*Permission denied", *POSING, tool=self.folder)
        self.refused("--tool: .*Exec format error", *POSING, tool=self.file("text", "text", 0o755))
        other = self.file("other", "#!/bin/sh\necho other 1.0\n", 0o755)
        self.refused("--tool: .*other is not etalon", *POSING, tool=other)
        self.refused("--tool: .*timed out", *POSING, "--seconds", 1, tool=self.file("slow", "#!/bin/sh\nexec sleep 50\n", 0o755))
        for said in ("", "echo '{}'", "echo '[]'", "echo '{\"tables\": []}'", "exit 1"):
            other = self.file("bare", '#!/bin/sh\n[ "$1" = info ] || { echo etalon 1.0; exit; }\n' + said + "\n", 0o755)
            self.refused("--tool: .*bare info --json names no table", "--every-table", tool=other)

    def test_what_does_not_go_together(self):
        self.refused("not allowed with argument", "--json", "--markdown")
        self.refused("--every-table asks Etalon alone: leave out --adapter", "--every-table", "--adapter", "any.py")
        self.refused("--every-table asks Etalon alone: leave out --alone", "--every-table", "--alone")

    def test_names_of_cases(self):
        self.refused("--only: a name is empty", "--only", "")
        self.refused("--only: no case and no subject has 'soft cap' in its name", "--only", "soft cap", "--only", "causal")

    def test_seconds(self):
        for text in ("0", "-1", "nan", "inf", "1e300", "soon"):
            self.refused("--seconds: '%s' is no number of seconds" % re.escape(text), "--seconds=" + text)

    def test_files_of_the_cases(self):
        root = self.folder / "root"
        shutil.copytree(HERE, root / "tests" / "conformance")
        (root / "tools").mkdir()
        for path in (ROOT / "tools").glob("conformance*.py"):
            shutil.copy(path, root / "tools")
        folder = root / "tests" / "conformance"
        case = folder / "cases" / "prefix.npz"
        content = case.read_bytes()
        for spoilt in (b"", content[:len(content) // 2], content.replace(b"NUMPY", b"NUMPX")):
            case.write_bytes(spoilt)
            self.refused("prefix.npz: ", root=root)
        case.unlink()
        self.refused("prefix.npz: .*No such file", root=root)
        case.write_bytes(content)
        for spoilt in ("", "[]", '{"format": 2}', '{"format": 1}', '{"format": 1, "cases": [{}]}'):
            (folder / "cases.json").write_text(spoilt)
            self.refused("cases.json: ", root=root)
        (folder / "cases.json").unlink()
        self.refused("cases.json: .*No such file", root=root)


if __name__ == "__main__":
    unittest.main()

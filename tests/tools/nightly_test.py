"""tools/nightly.sh lets nothing pass that did not run: a copy of it, with commands in place of the real ones that write down how they were called."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ["cmake", "ctest", "python3", "g++"]
SCRIPTS = ["tools/digest_matrix.sh", "tools/build_matrix.sh", "tools/static_tool.sh", "tools/fuzz.sh"]
PROGRAMS = ["tests/kernels/differential_test", "tests/api/options_differential_test", "tests/golden/golden_test", "cli/etalon"]
NOTE = """#!/bin/sh
echo "NO_SKIPS=${ETALON_NO_SKIPS:-} NAME $*" >>"$NIGHTLY_TEST_LOG"
"""


class Nightly(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path in ["tools/nightly.sh", "cmake/common.sh"]:
            (self.root / path).parent.mkdir()
            shutil.copy(ROOT / path, self.root / path)
        for name in COMMANDS:
            self.program("bin/" + name, name)
        for path in SCRIPTS:
            self.program(path, path)
        for path in PROGRAMS:
            self.program("build/nightly/" + path, path)
        deps = self.root / "build/deps/deps.cmake"
        deps.parent.mkdir()
        deps.touch()
        (self.root / "build/nightly-aarch64").mkdir()  # which the real cmake makes

    def program(self, path, name, code=0):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(NOTE.replace("NAME", name) + f"exit {code}\n", encoding="ascii")
        file.chmod(0o755)

    def run_all(self):
        """The exit code, and the lines that all calls have left."""
        log = self.root / "log"
        variables = {key: value for key, value in os.environ.items() if not key.startswith("ETALON_") and key != "CXX"}
        variables.update(PATH=f"{self.root / 'bin'}{os.pathsep}{variables['PATH']}", NIGHTLY_TEST_LOG=str(log))
        done = subprocess.run(["bash", str(self.root / "tools/nightly.sh")], env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True)
        return done.returncode, log.read_text(encoding="utf-8").splitlines()

    def calls(self, name):
        """The lines that calls of it have left."""
        code, lines = self.run_all()
        self.assertEqual(code, 0)
        found = [line for line in lines if line.split()[1] == name]
        self.assertTrue(found, lines)
        return found

    def test_each_ctest_wants_tests_and_no_skips(self):
        for line in self.calls("ctest"):
            self.assertIn(" --no-tests=error", line)
            self.assertTrue(line.startswith("NO_SKIPS=1 "), line)

    def test_whatever_fails_ends_it(self):
        for path, name in [("bin/ctest", "ctest"), ("bin/cmake", "cmake")] + [(path, path) for path in SCRIPTS[:3]] + [
                ("build/nightly/" + path, path) for path in PROGRAMS]:
            with self.subTest(name):
                self.program(path, name, 1)
                self.assertNotEqual(self.run_all()[0], 0)
                self.program(path, name)

    def test_every_step_is_there(self):
        _, lines = self.run_all()
        called = {line.split()[1] for line in lines}
        self.assertEqual({name for name in COMMANDS[:3] + SCRIPTS[:3] + PROGRAMS} - called, set())
        self.assertEqual(sum(line.split()[1] == "ctest" for line in lines), 2)  # of this machine, and of aarch64
        self.assertTrue(any("cli/etalon check --full" in line for line in lines))

    def test_no_configuration_of_the_digest_matrix_is_skipped(self):
        self.assertEqual([line.split(maxsplit=1)[1] for line in self.calls("tools/digest_matrix.sh")], ["tools/digest_matrix.sh --no-skips"])


if __name__ == "__main__":
    unittest.main()

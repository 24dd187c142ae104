"""Exit codes and messages of the tool:  exit_codes_test.py ETALON"""
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest

import layers
import tool

TOOL = None


def run(*args, **variables):
    return tool.run(TOOL, *args, **variables)


class ExitCodes(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def layer(self, **changes):
        return layers.write(self.folder / "layer.npz", {**layers.small(), **changes})

    def expect(self, code, message, *args, **variables):
        done = run(*args, **variables)
        with self.subTest(args=args):
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(message, done.stdout if code == 0 else done.stderr)
            if code in (2, 3):
                self.assertEqual(done.stdout, "")
        return done

    def test_help_and_version(self):
        version = self.expect(0, "arithmetic ", "--version")
        self.assertRegex(version.stdout, r"^etalon \d+\.\d+\.\d+, arithmetic \d+\n$")
        self.expect(0, "Exit codes", "--help")
        self.expect(0, "Example:\n  etalon demo", "demo", "--help")
        self.expect(0, "Example:\n  etalon info", "info", "--help")
        self.expect(0, "Examples:\n  etalon check", "check", "--help")

    def test_usage(self):
        self.expect(2, "subcommand", )
        self.expect(2, "subcommand", "frobnicate")
        self.expect(2, "--frobnicate", "demo", "--frobnicate")
        for value in ("0", "-1", "x", "1025", "1.5"):
            self.expect(2, "--threads", "demo", "--threads", value)
        self.expect(2, "extra", "info", "extra")
        self.expect(2, "--alibi= has an empty value", "attend", self.layer(), "--alibi=", "--out", "never.npy")

    def test_good(self):
        self.expect(0, "Same bits:", "demo", self.layer())

    def test_a_failed_check(self):
        # The sum of two values exceeds f32 though their mean does not: a documented limit, so the exact value is missed.
        huge = {"q": layers.npy((1, 1, 1), [0], "f"), "k": layers.npy((1, 2, 1), [0, 0], "f"),
                "v": layers.npy((1, 2, 1), [3e38, 3e38], "f")}
        done = run("demo", layers.write(self.folder / "huge.npz", huge))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("FAILED", done.stdout)
        self.assertIn("finite here and not in f64", done.stdout)
        self.assertIn("NOT of the size that rounding", done.stdout)

    def test_tables(self):
        done = self.expect(3, "ETALON_TARGET=nope: no such kernel table", "demo", self.layer(), ETALON_TARGET="nope")
        self.assertIn("scalar", done.stderr)
        done = run("info", ETALON_TARGET="nope")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no such kernel table", done.stderr)
        self.assertIn("scalar", done.stdout)
        self.expect(0, "table scalar:", "demo", self.layer(), ETALON_TARGET="scalar")
        self.expect(0, "named by ETALON_TARGET", "info", ETALON_TARGET="scalar")

    def test_files(self):
        self.expect(3, "No such file", "demo", str(self.folder / "none.npz"))
        self.expect(3, "cannot be opened", "demo", str(self.folder))
        (self.folder / "text.npz").write_text("not an archive, however long this text goes on")
        self.expect(3, "Not a zip archive", "demo", str(self.folder / "text.npz"))
        # The good file comes first: nothing may be printed for it.
        self.expect(3, "none.npz", "demo", self.layer(), str(self.folder / "none.npz"))
        self.expect(3, "ETALON_DEMO_DATA", "demo", ETALON_DEMO_DATA=str(self.folder))

    def test_arrays(self):
        arrays = layers.small()
        del arrays["v"]
        self.expect(3, "no entry 'v.npy'; a layer has arrays q, k and v, this file has q.npy, k.npy", "demo", layers.write(self.folder / "a.npz", arrays))
        cases = {
            "array q: type '<i2' is not supported": {"q": layers.npy((1, 1, 1), [0], "e", "<i2")},
            "array q: type '|O' is not supported (Python objects": {"q": layers.npy((1, 1, 1), [0], "e", "|O")},
            "array k: the array is in Fortran order": {"k": layers.npy((1, 1, 1), [0], "e", None, "True")},
            "array v: not a .npy file": {"v": b"nothing"},
            "array v: truncated": {"v": layers.ramp((2, 20, 5), 1)[:-1]},
            "array q: element [3, 19, 7] is 1e+300, which is beyond": {"q": layers.npy((4, 20, 8), [0] * 639 + [1e300], "d")},
            "array q has shape [1, 4, 20, 8]; it must be": {"q": layers.ramp((1, 4, 20, 8), 1)},
            "array q has shape [20, 8]; it must be": {"q": layers.ramp((20, 8), 1)},
            "array q has shape [4, 0, 8], which is empty": {"q": layers.ramp((4, 0, 8), 1)},
            "q and k differ in channels: q [4, 20, 9], k [2, 20, 8]": {"q": layers.ramp((4, 20, 9), 1)},
            "k and v differ in heads": {"v": layers.ramp((1, 20, 5), 1)},
            "k and v differ in length": {"v": layers.ramp((2, 21, 5), 1)},
            "do not divide": {"q": layers.ramp((3, 20, 8), 1)},
        }
        for message, change in cases.items():
            self.expect(3, message, "demo", self.layer(**change))

    def test_index(self):
        path = self.layer()
        good = {"causal": False, "window": None, "scale": 0.5}
        cases = [
            ("not a JSON object", "{nothing"),
            ("is not a JSON object", "[1, 2]"),
            ("entry in index.json: not an object", {"layer": 3}),
            ("causal must be", {"layer": {"scale": 1}}),
            ("scale must be a number", {"layer": {**good, "scale": "1"}}),
            ("scale is not finite", {"layer": {**good, "scale": 1e39}}),
            ("window must be null or a whole number", {"layer": {**good, "window": 0}}),
            ("window must be null or a whole number", {"layer": {**good, "window": -4}}),
            ("window must be null or a whole number", {"layer": {**good, "window": 1.5}}),
            ("a window is causal, but causal is false", {"layer": {**good, "window": 3}}),
            ("scale is 0 in f32", {"layer": {**good, "scale": 0}}),
            ("scale is 0 in f32", {"layer": {**good, "scale": -1e-50}}),
            ("first_position is not 0", {"layer": {**good, "first_position": 7}}),
            ("the shape of k is [2, 20, 8] in the file and [2,21,8] there", {"layer": {**good, "k": [2, 21, 8]}}),
        ]
        for message, entries in cases:
            layers.index(self.folder, entries)
            self.expect(3, message, "demo", path)
        deep = "[" * 200000  # must not exhaust the stack
        layers.index(self.folder, deep)
        self.expect(3, "not a JSON object", "demo", path)

    def test_names_cannot_paint_the_terminal(self):
        path = layers.write(self.folder / "a\x1b[31mb.npz", layers.small())
        done = self.expect(0, "a\\x1b[31mb", "demo", path)
        self.assertNotIn("\x1b", done.stdout + done.stderr)

    def test_colour(self):
        def on_terminal(**variables):
            parent, child = pty.openpty()
            env = {name: value for name, value in os.environ.items() if name != "NO_COLOR" and not name.startswith("ETALON_")}
            with subprocess.Popen([TOOL, "info"], env={**env, **variables}, stdout=child) as process:
                os.close(child)
                text = b""
                try:
                    while piece := os.read(parent, 4096):
                        text += piece
                except OSError:  # how Linux says that the other end is closed
                    pass
            os.close(parent)
            self.assertEqual(process.returncode, 0)
            return text

        self.assertIn(b"\x1b[32m", on_terminal())
        self.assertNotIn(b"\x1b", on_terminal(NO_COLOR="1"))
        self.assertNotIn("\x1b", run("info").stdout)

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_report_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "info"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=50)
        self.assertEqual(done.returncode, 3)
        self.assertIn("could not be written", done.stderr)


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()

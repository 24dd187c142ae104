"""What `etalon check` says:  check_test.py ETALON DIGEST_FILE VECTOR_FILE"""
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import unittest

import tool

TOOL = DIGEST = VECTORS = None


def run(*args, **variables):
    return tool.run(TOOL, *args, **variables)


class Check(unittest.TestCase):
    def test_json(self):
        done = run("check", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(list(report), ["version", "arithmetic", "digest", "ok", "cpu", "tables"])
        with open(DIGEST) as file:
            golden = dict(line.split() for line in file)
        with open(VECTORS) as file:
            cases = [line.split()[1] for line in file if line.startswith("case ")]
        self.assertEqual(len(set(cases)), len(cases), "names of cases are keys")
        self.assertEqual(report["digest"], golden["digest"])
        self.assertTrue(report["ok"])
        tables = json.loads(run("info", "--json").stdout)["tables"]
        self.assertEqual([(t["name"], t["available"]) for t in report["tables"]], [(t["name"], t["available"]) for t in tables])
        ran = [table for table in report["tables"] if table["available"]]
        for table in ran:
            self.assertIs(table["bits_equal"], True)
            self.assertEqual(table["digest"], golden["digest"])
            self.assertEqual(table["cases"], {"passed": len(golden) + len(cases), "failed": 0, "skipped": 0})
            self.assertEqual(table["failures"], {})
            self.assertEqual(set(table["hashes"]), {"digest/" + name for name in golden} | {"model/" + name for name in cases})
            for name, value in golden.items():
                self.assertEqual(table["hashes"]["digest/" + name], value)
            kernels = {kernel["name"]: kernel for kernel in table["kernels"]}
            self.assertEqual(set(kernels), {"exp", "log", "tanh", "scores", "softmax", "weighted sum", "attention", "decode", "merge"})
            for kernel in kernels.values():
                self.assertIs(kernel["ok"], True)
                for number in ("max_abs", "rms_error", "max_ulp"):
                    self.assertGreater(kernel[number], 0, kernel)  # rounding leaves a trace, or nothing was measured
                    self.assertLessEqual(kernel[number], table[number])
            # Equal bits have equal errors, and every case has its own hash on every table.
            self.assertEqual(table["kernels"], ran[0]["kernels"])
            self.assertEqual(table["hashes"], ran[0]["hashes"])
        for table in report["tables"]:
            if not table["available"]:
                self.assertEqual(table["cases"], {"passed": 0, "failed": 0, "skipped": len(golden) + len(cases)})
                self.assertIsNone(table["bits_equal"])
                self.assertTrue(table["reason"])

    def test_text(self):
        done = run("check", "--target", "scalar")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ok: every table", done.stdout)
        self.assertNotIn("highway", done.stdout)
        self.assertNotIn("\x1b", done.stdout + done.stderr)

    def test_progress_on_a_terminal_is_one_line(self):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
        with subprocess.Popen([TOOL, "check", "--target", "scalar"], stdout=subprocess.DEVNULL, stderr=child) as process:
            os.close(child)
            text = b""
            try:
                while piece := os.read(parent, 4096):
                    text += piece
            except OSError:  # how Linux says that the other end is closed
                pass
        self.assertEqual(process.returncode, 0)
        os.close(parent)
        self.assertNotIn(b"\n", text)
        lines = text.split(b"\r\x1b[K")
        self.assertEqual(lines[1], b"[  0 %] scalar: dig")  # cut to what fits
        self.assertEqual(lines[-1], b"", "no half-written line is left behind")

    def test_exit_codes(self):
        for args, variables, code, message in [
                (("--target", "nope"), {}, 3, "--target=nope: no such kernel table; tables of this build: scalar"),
                ((), {"ETALON_TARGET": "nope"}, 3, "no such kernel table"),
                (("extra",), {}, 2, "extra")]:
            done = run("check", *args, **variables)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    TOOL, DIGEST, VECTORS = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
    unittest.main()

"""`etalon check --full`, on a part of its kernels and inputs.  check_full_test.py ETALON"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import layers
import tool

TOOL = None
KERNELS = ["attention", "attention f16", "attention bf16", "causal", "decode", "lse", "block states", "scores", "softmax",
           "weighted sum", "merge"]


def run(*args, **variables):
    return tool.run(TOOL, "check", *args, **variables)


def read_npz(path):
    """{name: (descr, shape, bytes)}"""
    with zipfile.ZipFile(path) as archive:
        parts = {name[:-4]: layers.split_npy(archive.read(name)) for name in archive.namelist()}
    return {name: (descr, list(shape), data) for name, (descr, shape, data) in parts.items()}


class Full(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_json_of_one_family(self):
        done = run("--full", "--json", "--family", "near-tie", "--target", "scalar")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        limits = report["histogram_limits"]
        self.assertEqual(limits[:6] + limits[-1:], [0, .125, .25, .5, 1, 2, None])
        table = report["tables"][0]
        self.assertEqual([(e["kernel"], e["family"]) for e in table["full"]], [(kernel, "near-tie") for kernel in KERNELS])
        for error in table["full"]:
            self.assertEqual(len(error["histogram"]), len(limits))
            self.assertEqual(sum(error["histogram"]), error["elements"])
            self.assertIs(error["ok"], True, error)
            self.assertGreater(error["of_bound"], 0, error)
            self.assertLessEqual(error["of_bound"], 1, error)
            # The largest error is in the last bucket that is not empty.
            last = max(i for i, count in enumerate(error["histogram"]) if count)
            self.assertGreater(error["max_ulp"], limits[last - 1])
            self.assertLessEqual(error["max_ulp"], limits[last] if limits[last] is not None else float("inf"))
            self.assertRegex(table["hashes"]["full/%s/near-tie" % error["kernel"]], "^[0-9A-F]{16}$")

    def test_markdown_and_worst_inputs(self):
        report = self.folder / "report.md"
        kernels = ["attention", "attention f16", "attention bf16", "causal", "block states", "scores", "merge", "exp"]
        done = run("--full", "--family", "near-tie,range", "--kernel", ",".join(kernels), "--target", "scalar", "--report", str(report),
                   "--worst", str(self.folder))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Error against double-double", done.stdout)
        self.check_markdown(report.read_text(encoding="utf-8"), kernels)
        self.assertEqual(sorted(p.name for p in self.folder.glob("*")), sorted([k.replace(" ", "_") + ".npz" for k in kernels] + ["report.md"]))
        for kernel in kernels:
            with self.subTest(kernel):
                arrays = read_npz(self.folder / (kernel.replace(" ", "_") + ".npz"))
                self.assertEqual(arrays["exact"][0], "<f8")
                self.assertEqual(arrays["out"][1], arrays["exact"][1])
                if kernel.startswith("attention") or kernel == "causal":
                    self.check_attend(kernel, arrays)
        self.assertEqual(set(read_npz(self.folder / "merge.npz")), {"out1", "lse1", "out2", "lse2", "out", "exact"})
        self.assertEqual(set(read_npz(self.folder / "exp.npz")), {"x", "out", "exact"})
        scores = read_npz(self.folder / "scores.npz")
        self.assertEqual((scores["q"][1], scores["k"][1], scores["out"][1]), ([1, 1, 64], [1, 1000, 64], [1, 1, 1000]))

    def check_attend(self, kernel, arrays):
        """`etalon attend` takes the file as it is and gives the bytes that it holds."""
        out = self.folder / "out.npy"
        done = tool.run(TOOL, "attend", str(self.folder / (kernel.replace(" ", "_") + ".npz")), "--target", "scalar", "--out", str(out))
        self.assertEqual(done.returncode, 0, done.stderr)
        got = out.read_bytes()
        self.assertEqual(got[-len(arrays["out"][2]):], arrays["out"][2])
        self.assertEqual(arrays["q"][0], "<f2" if kernel.endswith(" f16") else "<f4")
        errors = [abs(a - b) for (a,), (b,) in zip(struct.iter_unpack("<f", arrays["out"][2]), struct.iter_unpack("<d", arrays["exact"][2]))]
        self.assertGreater(max(errors), 0)
        self.assertLess(max(errors), 1e-5)
        out.unlink()

    def check_markdown(self, text, kernels):
        lines = text.split("\n")
        self.assertTrue(lines[0].startswith("# Accuracy of etalon "))
        self.assertEqual([line[4:] for line in lines if line.startswith("### ")], kernels)
        self.assertTrue(text.endswith("|\n") and not text.endswith("\n\n"))
        columns = None
        tables = 0
        for before, line, after in zip([""] + lines, lines, lines[1:] + [""]):
            if not line.startswith("|"):
                columns = None
                continue
            if columns is None:  # a table begins behind a blank line, and its second line is the rule
                self.assertEqual(before, "")
                columns = line.count("|")
                self.assertEqual(after, "|" + "---|" * (columns - 1))
                tables += 1
            self.assertEqual(line.count("|"), columns, line)
        self.assertEqual(tables, 2 + 2 * len(kernels))  # of tables and inputs, then errors and a histogram each
        shares = [float(s) for s in re.findall(r"[█▏▎▍▌▋▊▉] ([\d.e-]+) %", text)]
        self.assertAlmostEqual(sum(shares), 100 * len(kernels), delta=len(kernels))

    def test_all_tables_have_the_same_bits(self):
        done = run("--full", "--json", "--family", "subnormal", "--kernel", "softmax,merge")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        ran = [table for table in json.loads(done.stdout)["tables"] if table["available"]]
        for table in ran:
            self.assertEqual(table["full"], ran[0]["full"])
            self.assertEqual(table["hashes"], ran[0]["hashes"])

    def test_what_makes_no_sense(self):
        no_layers = self.folder / "layers"
        no_layers.mkdir()
        for code, message, args, variables in [
                (2, "--full", ["--report", "x.md"], {}),
                (2, "--full", ["--family", "long"], {}),
                (2, "nope", ["--full", "--family", "nope"], {}),
                (2, "nope", ["--full", "--kernel", "exp,nope"], {}),
                (2, "nothing is left", ["--full", "--kernel", "exp,log", "--family", "near-tie,long"], {}),
                (2, "nothing is left", ["--full", "--kernel", "merge", "--family", "range"], {}),
                (3, "no such folder", ["--full", "--worst", str(self.folder / "none")], {}),
                (3, "--report", ["--full", "--report", str(self.folder / "none" / "x.md")], {}),
                (2, "--report: must not be empty", ["--full", "--report", ""], {}),
                (2, "--worst: must not be empty", ["--full", "--worst", ""], {}),
                (3, "is missing; set ETALON_DEMO_DATA", ["--full", "--target", "scalar", "--family", "real", "--kernel", "merge"],
                 {"ETALON_DEMO_DATA": str(no_layers)})]:
            done = run(*args, **variables)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(message, done.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.glob("*")), ["layers"])

    def test_nothing_is_overwritten(self):
        """A file of --worst or the report that is a layer, or another of them, is refused before anything is measured."""
        data, worst = self.folder / "data", self.folder / "worst"
        worst.mkdir()
        self.write_layers(data)
        layer, index = data / "whisper_cross2.npz", data / "index.json"
        index.write_text("{}")
        before = layer.read_bytes()
        report = worst / "report.md"

        def expect(code, message, *args):
            done = run("--full", "--kernel", "softmax,merge", "--family", "near-tie", "--target", "scalar", *args, ETALON_DEMO_DATA=str(data))
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(message, done.stderr)
            self.assertEqual((layer.read_bytes(), index.read_text()), (before, "{}"))

        expect(2, "is the same file as the input", "--report", str(layer))
        expect(2, "is the same file as the input", "--report", str(index))
        expect(2, "is the same file as --worst", "--report", str(worst / "softmax.npz"), "--worst", str(worst))
        with open(worst / "said", "w", encoding="utf-8") as said:
            subprocess.run([TOOL, "check", "--full", "--report", "/dev/stderr"], stderr=said, stdout=subprocess.DEVNULL, check=False)
        self.assertIn("is the standard error", (worst / "said").read_text(encoding="utf-8"))
        with open(worst / "said", "w", encoding="utf-8") as said:
            done = subprocess.run([TOOL, "check", "--full", "--report", "/dev/stdout"], stdout=said, stderr=subprocess.PIPE, check=False)
        self.assertIn(b"is the standard output", done.stderr)
        (worst / "said").unlink()
        (worst / "softmax.npz").symlink_to(layer)
        expect(2, "is the same file as the input", "--worst", str(worst), "--report", str(report))
        (worst / "softmax.npz").unlink()
        (worst / "softmax.npz").symlink_to("merge.npz")
        expect(2, "is the same file as", "--worst", str(worst))
        (worst / "softmax.npz").unlink()
        (worst / "softmax.npz").mkdir()
        expect(3, "softmax.npz", "--worst", str(worst), "--report", str(report))
        self.assertEqual([p.name for p in worst.glob("*")], ["softmax.npz"])

    def write_layers(self, folder, **changed):
        """Three small layers in `folder`, the last of them with `changed` arrays."""
        folder.mkdir(exist_ok=True)
        for name in ("whisper_cross2", "whisper_enc1_n1500", "minilm_L0_n512"):
            layers.write(folder / (name + ".npz"), {**layers.small("f"), **(changed if name == "minilm_L0_n512" else {})})

    def real(self, *args, **changed):
        self.write_layers(self.folder / "data", **changed)
        return run("--full", "--json", "--family", "real", "--target", "scalar", *args, ETALON_DEMO_DATA=str(self.folder / "data"))

    def test_layers_with_fewer_keys_than_rows(self):
        for keys in (1, 2, 3):
            done = self.real(k=layers.ramp((2, keys, 8), 11, "f"), v=layers.ramp((2, keys, 5), 13, "f"))
            self.assertEqual(done.returncode, 0, done.stderr)
            for error in json.loads(done.stdout)["tables"][0]["full"]:
                self.assertIs(error["ok"], True, error)
                self.assertIsNotNone(error["rms_error"], error)

    def test_a_kernel_that_is_named_twice_is_measured_once(self):
        done = run("--full", "--json", "--family", "near-tie", "--kernel", "merge,merge", "--target", "scalar", "--worst", str(self.folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([e["kernel"] for e in json.loads(done.stdout)["tables"][0]["full"]], ["merge"])
        self.assertEqual([p.name for p in self.folder.glob("*")], ["merge.npz"])

    def test_a_layer_of_one_row(self):
        done = self.real(q=layers.ramp((2, 1, 8), 7, "f"), k=layers.ramp((2, 30, 8), 11, "f"), v=layers.ramp((2, 30, 5), 13, "f"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_layers_that_nothing_can_be_demanded_of(self):
        """Refused before anything is measured; with other kernels or families the check runs."""
        count = 2 * 20 * 8
        for message, value in (("k is not finite,", float("nan")), ("k is not finite,", float("-inf")), ("scores may overflow", 3e38)):
            with self.subTest(message):
                k = layers.npy((2, 20, 8), [value if i == 77 or value == 3e38 else 0.5 for i in range(count)], "f")
                done = self.real(*(["--kernel", "lse"] if "scores" in message else []), k=k)
                self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
                self.assertIn("minilm_L0_n512.npz: " + message, done.stderr)
                self.assertNotIn("digest", done.stderr)
        v = layers.npy((2, 20, 5), [3e38] * 200, "f")
        self.assertIn("may overflow", self.real("--kernel", "attention", v=v).stderr)
        v = layers.npy((2, 20, 5), [3.4028234e38 / 20] * 200, "f")  # the roundings of the sum do not fit
        self.assertIn("may overflow", self.real("--kernel", "attention", v=v).stderr)
        v = layers.npy((2, 20, 5), [1e5] * 200, "f")  # no f16 is as large
        self.assertIn("v is not finite as f16", self.real(v=v).stderr)
        self.assertEqual(self.real("--kernel", "attention,attention bf16,causal", v=v).returncode, 0)

    def test_logits_beyond_any_bound_that_counts_roundings(self):
        """What is left of the bound there is that a mean lies among its values."""
        done = self.real(q=layers.npy((4, 20, 8), [3e6 * ((7 * i) % 61 - 30) for i in range(4 * 20 * 8)], "f"), k=layers.ramp((2, 20, 8), 11, "f"))
        self.assertIn("as f16", done.stderr)
        done = self.real("--kernel", "attention,attention bf16,causal,decode,lse,block states,softmax,merge",
                         q=layers.npy((4, 20, 8), [3e6 * ((7 * i) % 61 - 30) for i in range(4 * 20 * 8)], "f"))
        self.assertEqual(done.returncode, 0, done.stderr)
        for error in json.loads(done.stdout)["tables"][0]["full"]:
            self.assertIs(error["ok"], True, error)


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()

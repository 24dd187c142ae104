"""What `etalon demo --json` and `etalon info --json` say:  demo_test.py ETALON"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import layers
import tool

TOOL = None
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


def report(*args, **variables):
    done = tool.run(TOOL, *args, "--json", **variables)
    if done.returncode != 0:
        raise AssertionError("exit code %d: %s" % (done.returncode, done.stderr))
    pairs = json.loads(done.stdout, object_pairs_hook=list)
    assert [name for name, _ in pairs[:2]] == ["version", "arithmetic"], "a report begins with version and arithmetic"
    return json.loads(done.stdout)


class Demo(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def one(self, path, *args, **variables):
        whole = report("demo", path, *args, **variables)
        self.assertTrue(whole["ok"])
        self.assertEqual(len(whole["layers"]), 1)
        return whole["layers"][0]

    def test_a_real_layer(self):
        whole = report("demo", str(DATA / "whisper_cross2.npz"))
        self.assertEqual(whole["arithmetic"], 1)
        layer = whole["layers"][0]
        self.assertEqual(layer["name"], "whisper_cross2")
        self.assertEqual(layer["model"], "whisper tiny.en, layer 2")
        self.assertEqual((layer["q"], layer["k"], layer["v"]), ([6, 103, 64], [6, 1500, 64], [6, 1500, 64]))
        self.assertEqual(layer["types"], ["f16", "f16", "f16"])
        self.assertEqual((layer["indexed"], layer["mask"], layer["window"], layer["scale"]), (True, "none", None, 0.125))
        self.assertEqual(layer["visible_pairs"], 6 * 103 * 1500)
        gflop = 4e-9 * 6 * 103 * 1500 * 64
        self.assertAlmostEqual(layer["gflops"] * layer["seconds"], gflop, places=6)
        one = layer["one_thread"]
        self.assertAlmostEqual(one["gflops"] * one["seconds"], gflop, places=6)
        self.assertGreaterEqual(one["rounds"], 1)
        self.assertGreater(one["times_plain_loop"], 0)
        if one["limit"] is not None:
            self.assertTrue(0 < one["percent_min"] <= one["percent_of_limit"] <= one["percent_max"], one)
        first, last = layer["plain_loop"]["rows"]
        self.assertTrue(0 <= first < last <= 103)
        # The plain loop computes the same thing, and rounds more than it must.
        self.assertLess(layer["plain_loop"]["error"]["relative_rms"], 1e-5)
        self.assertEqual(layer["error"]["rows_of_each_head"], 32)
        self.assertLess(layer["error"]["max_abs"], 1e-5)
        # The model of the rounding errors is close on real data, not only within what is allowed.
        ratio = layer["error"]["relative_rms"] / layer["error"]["predicted_relative_rms"]
        self.assertTrue(0.5 < ratio < 2, ratio)
        # Arithmetic version 1 gives these bytes on every machine. A change here is a new version.
        self.assertEqual(layer["hash"], "fnv1a64:5668519cff401636")
        usable = [table["name"] for table in report("info")["tables"] if table["available"]]
        self.assertEqual(sorted(table["name"] for table in layer["tables"]), sorted(usable))
        for table in layer["tables"]:
            self.assertTrue(table["same_bits"], table)
            self.assertEqual(table.get("hash_of_chosen", table["hash"]), table["hash"])
            if table["rows"] == [[0, 103]]:
                self.assertEqual(table["hash"], layer["hash"])

    def test_masks_and_scale_come_from_the_index(self):
        path = layers.write(self.folder / "layer.npz", layers.small())
        bare = self.one(path)
        self.assertEqual((bare["indexed"], bare["mask"], bare["visible_pairs"]), (False, "none", 4 * 20 * 20))
        self.assertAlmostEqual(bare["scale"], 8 ** -0.5, places=7)
        seen = {bare["hash"]}
        entries = [({"causal": True, "window": None, "scale": 0.5}, "causal", 4 * 210),
                   ({"causal": True, "window": 6, "scale": 0.5}, "window", 4 * (15 + 15 * 6)),
                   ({"causal": False, "scale": 0.5}, "none", 4 * 400)]
        for entry, mask, pairs in entries:
            layers.index(self.folder, {"layer": entry})
            layer = self.one(path)
            self.assertEqual((layer["indexed"], layer["mask"], layer["visible_pairs"]), (True, mask, pairs))
            self.assertEqual(layer["scale"], 0.5)
            self.assertNotIn(layer["hash"], seen)
            seen.add(layer["hash"])
        layers.index(self.folder, {"another": entries[0][0]})
        self.assertEqual(self.one(path)["hash"], bare["hash"])

    def test_the_bits_depend_on_the_values_alone(self):
        expected = self.one(layers.write(self.folder / "a.npz", layers.small()))["hash"]
        packed = layers.write(self.folder / "b.npz", layers.small(), zipfile.ZIP_DEFLATED)
        self.assertEqual(self.one(packed)["hash"], expected)
        # f16 widens exactly, so the same numbers stored as f32 are the same problem.
        wide = layers.write(self.folder / "c.npz", layers.small("f"))
        self.assertEqual(self.one(wide)["types"], ["f32", "f32", "f32"])
        self.assertEqual(self.one(wide)["hash"], expected)
        self.assertEqual(self.one(wide)["narrowed"], [])
        wider = layers.write(self.folder / "d.npz", {**layers.small(), "v": layers.small("d")["v"]})
        self.assertEqual(self.one(wider)["types"], ["f16", "f16", "f32"])
        self.assertEqual(self.one(wider)["narrowed"], ["v"])
        self.assertEqual(self.one(wider)["hash"], expected)
        for threads in ("1", "3"):
            self.assertEqual(self.one(packed, "--threads", threads)["hash"], expected)
        for table in report("info")["tables"]:
            if table["available"]:
                self.assertEqual(self.one(packed, ETALON_TARGET=table["name"])["hash"], expected)

    def test_the_default_is_the_shipped_layers(self):
        # Small stand-ins under the shipped names: the real ones take too long for a test.
        names = ["whisper_cross2", "whisper_enc1_n1500", "minilm_L0_n512"]
        self.assertEqual(sorted(json.loads((DATA / "index.json").read_text())), sorted(names))
        for name in names:
            self.assertTrue((DATA / (name + ".npz")).is_file())
            layers.write(self.folder / (name + ".npz"), layers.small())
        whole = report("demo", ETALON_DEMO_DATA=str(self.folder))
        self.assertEqual([layer["name"] for layer in whole["layers"]], names)

    def test_progress_is_plain_lines_on_stderr(self):
        path = layers.write(self.folder / "layer.npz", layers.small())
        done = subprocess.run([TOOL, "demo", path], capture_output=True, timeout=50)  # bytes: text would turn \r into \n
        self.assertRegex(done.stderr, rb"(?m)^\[ *\d+ %[^]]*\] layer: exact values in f64$")
        self.assertNotIn(b"\r", done.stderr)
        self.assertNotIn(b"exact values in f64\n", done.stdout)
        self.assertIn(b"no mask, scale 1/sqrt(8)", done.stdout)

    def test_it_ends_with_three_lines(self):
        path = layers.write(self.folder / "layer.npz", layers.small())
        done = subprocess.run([TOOL, "demo", path], capture_output=True, text=True, timeout=50)
        usable = sum(table["available"] for table in report("info")["tables"])
        lines = done.stdout.splitlines()[-3:]
        self.assertIn("Same bits:  %d of %d outputs" % (usable - 1, usable - 1), lines[0])
        self.assertRegex(lines[1], r"^Speed: .*times a plain loop at -O3\.$")
        self.assertRegex(lines[2], r"^Error: .*e-\d\d relative RMS against f64")


class Info(unittest.TestCase):
    def test_tables(self):
        info = report("info")
        self.assertEqual(list(info), ["version", "arithmetic", "cpu", "tables", "build"])
        self.assertEqual(list(info["build"]), ["compiler", "type", "flags", "system"])
        self.assertRegex(info["build"]["compiler"], r"^\w+ \d+")
        self.assertEqual(list(info["cpu"]), ["name", "features"])
        names = [table["name"] for table in info["tables"]]
        self.assertEqual(names[0], "scalar")
        self.assertEqual(sum(table["chosen"] for table in info["tables"]), 1)
        for table in info["tables"]:
            self.assertEqual(list(table), ["name", "backend", "available", "chosen", "reason"])
            self.assertEqual(table["backend"], table["name"].split("-")[0])
            self.assertTrue(table["reason"])
            self.assertTrue(table["available"] or not table["chosen"])
        forced = report("info", ETALON_TARGET="scalar")
        self.assertEqual([table["name"] for table in forced["tables"] if table["chosen"]], ["scalar"])


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()

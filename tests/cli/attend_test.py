"""`etalon attend` against a small attention in Python, its files, and everything it refuses:  attend_test.py ETALON"""
import json
import math
import os
import pathlib
import resource
import signal
import stat
import subprocess
import threading
import time
import unittest
import zipfile

import attending
import layers
import tool
from attending import TOOL, Folder, parse, report, run, trio

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


class Values(Folder):
    def compare(self, arrays, options, **meaning):
        path = layers.write(self.folder / "layer.npz", {name: layers.npy(*a, "f") for name, a in arrays.items()})
        return self.check(path, arrays, options, **meaning)

    def test_masks(self):
        arrays = trio((4, 7, 8), (2, 11, 8), (2, 11, 5))
        cases = [
            ([], {}),
            (["--causal=none"], {}),
            (["--causal=top-left"], {"right": 0}),
            (["--causal=bottom-right"], {"right": 0, "offset": 4}),
            (["--window=-1,-1"], {}),
            (["--window", "-1,0"], {"right": 0}),
            (["--window=2,1"], {"left": 2, "right": 1}),
            (["--window=0,-1"], {"left": 0}),
            (["--window=2,1", "--q-offset=3"], {"left": 2, "right": 1, "offset": 3}),
            (["--window=2,1", "--q-offset", "-4"], {"left": 2, "right": 1, "offset": -4}),
            (["--window=1,0", "--q-offset=9"], {"left": 1, "right": 0, "offset": 9}),
            (["--window=2,5", "--causal=top-left"], {"left": 2, "right": 0}),
            (["--window=2,5", "--causal=bottom-right"], {"left": 2, "right": 0, "offset": 4}),
            (["--window=3,-1", "--causal=bottom-right"], {"left": 3, "right": 0, "offset": 4}),
            (["--window=9223372036854775807,9223372036854775807"], {}),
            (["--window=0,0", "--q-offset=4611686018427387904"], {"left": 0, "right": 0, "offset": 2**62}),
        ]
        for options, geometry in cases:
            with self.subTest(options=options):
                self.compare(arrays, options, **geometry)
                said = report(self.folder / "layer.npz", *options)
                full = {"left": -1, "right": -1, "q_offset": geometry.get("offset", 0), "prefix": 0}
                full.update({side: geometry[side] for side in ("left", "right") if side in geometry})
                if "9223" not in "".join(options):
                    self.assertEqual(said["mask"], full)
                sees = sum((full["left"] < 0 or t - i - full["q_offset"] >= -full["left"]) and
                           (full["right"] < 0 or t - i - full["q_offset"] <= full["right"]) for i in range(7) for t in range(11))
                self.assertEqual(said["visible_pairs"], 4 * sees)

    def test_more_queries_than_keys(self):
        # Bottom-right then gives rows that see nothing: 0 and -inf.
        self.compare(trio((1, 6, 4), (1, 4, 4), (1, 4, 4)), ["--causal=bottom-right"], right=0, offset=-2)
        said = report(self.folder / "layer.npz", "--causal=bottom-right")
        self.assertEqual((said["mask"]["q_offset"], said["visible_pairs"], said["error"]["ok"]), (-2, 10, True))

    def test_scale(self):
        arrays = trio((2, 3, 4), (1, 6, 4), (1, 6, 4))
        for scale in ("0.25", "-1.5", "0x1p-3", "1e-30"):
            with self.subTest(scale=scale):
                self.compare(arrays, ["--scale=" + scale], scale=float.fromhex(scale) if "x" in scale else float(scale))
        self.assertEqual(report(self.folder / "layer.npz", "--scale", "-1.5")["scale"], -1.5)
        self.assertEqual(report(self.folder / "layer.npz")["scale"], 0.5)

    def test_batch(self):
        self.compare(trio((3, 4, 5, 8), (3, 2, 6, 8), (3, 2, 6, 3)), ["--causal=bottom-right"], right=0, offset=1)
        self.compare(trio((2, 1, 1, 1), (2, 1, 1, 1), (2, 1, 1, 1)), [])

    def test_a_batch_of_one_has_the_bytes_of_none(self):
        three = self.both(self.npz(), "--causal=top-left")
        one = self.npz("one.npz", **layers.small(q=(1, 4, 20, 8), k=(1, 2, 20, 8), v=(1, 2, 20, 5)))
        four = self.both(one, "--causal=top-left")
        for a, b in zip(three, four):
            self.assertEqual(parse(b)[1], (1,) + parse(a)[1])
            self.assertEqual(a[128:], b[128:])

    def test_types(self):
        expected = self.both(self.npz())
        for code in "fd":
            self.assertEqual(self.both(self.npz(**layers.small(code))), expected)
        # Each array has a type of its own.
        mixed = self.npz(k=layers.small("d")["k"], v=layers.small("f")["v"])
        self.assertEqual(self.both(mixed), expected)
        said = report(mixed)
        self.assertEqual([said[name]["type"] for name in "qkv"], ["f16", "f64", "f32"])
        self.assertEqual(said["narrowed"], ["k"])
        self.assertIn("[2, 20, 8] f64, narrowed to f32\n", run(mixed).stdout)
        self.assertNotIn("narrowed", run(self.npz()).stdout)

    def test_f64_is_rounded_to_the_nearest_f32(self):
        # Half way goes to even; just above half way goes up; the last is what rounds to the largest f32 and no further.
        largest = float.fromhex("0x1.fffffep127")
        values = [1 + 2.0**-24, 1 + 3 * 2.0**-24, 1 + 2.0**-24 + 2.0**-52, -1 - 2.0**-24, 2.0**-150, 1.5 * 2.0**-149,
                  float.fromhex("0x1.fffffefffffffp127")]
        rounded = [1, 1 + 2 * 2.0**-23, 1 + 2.0**-23, -1, 0, 2 * 2.0**-149, largest]
        one = layers.npy((1, 1, 1), [1], "f")
        for code, v in (("d", values), ("f", rounded)):
            self.both(self.npz(q=one, k=one, v=layers.npy((1, 1, 7), v, code)))
            self.assertEqual(parse(self.out.read_bytes())[2], rounded)
        # What is not finite stays that.
        self.both(self.npz(q=one, k=one, v=layers.npy((1, 1, 2), [math.inf, math.nan], "d")))
        infinite, no_number = parse(self.out.read_bytes())[2]
        self.assertEqual(infinite, math.inf)
        self.assertTrue(math.isnan(no_number))

    def test_three_files(self):
        expected = self.both(self.npz(), "--window=3,2")
        for name, content in layers.small().items():
            (self.folder / (name + ".npy")).write_bytes(content)
        paths = [self.folder / name for name in ("q.npy", "k.npy", "v.npy")]
        self.assertEqual(self.both(*paths, "--window=3,2"), expected)
        # From a pipe, too.
        os.mkfifo(self.folder / "pipe")
        writer = threading.Thread(target=lambda: (self.folder / "pipe").write_bytes(layers.small()["k"]))
        writer.start()
        self.assertEqual(self.both(paths[0], self.folder / "pipe", paths[2], "--window=3,2"), expected)
        writer.join()

    def test_the_bits_depend_on_the_values_alone(self):
        path = self.npz()
        for kind in ("f32", "f16"):
            args = (path, "--causal=top-left", "--out-type", kind)
            expected = self.both(*args)
            for threads in ("1", "3"):
                self.assertEqual(self.both(*args, "--threads", threads), expected)
            self.assertIn("scalar", attending.tables())
            for table in attending.tables():
                self.assertEqual(self.both(*args, "--target", table), expected)
                self.assertEqual(report(*args, "--target", table, ETALON_TARGET="nope")["table"], table)
                self.assertEqual(self.both(*args, ETALON_TARGET=table), expected)
                self.assertEqual(report(*args, ETALON_TARGET=table)["table"], table)
        packed = layers.write(self.folder / "packed.npz", layers.small(), zipfile.ZIP_DEFLATED)
        self.assertEqual(self.both(packed, "--causal=top-left", "--out-type=f16"), expected)

    def test_the_index_is_not_looked_at(self):
        path = self.npz()
        expected = self.both(path)
        layers.index(self.folder, {"layer": {"causal": True, "scale": 3}})
        self.assertEqual(self.both(path), expected)
        layers.index(self.folder, "{nothing")
        self.assertEqual(self.both(path), expected)

    def test_a_real_layer(self):
        said = report(DATA / "whisper_cross2.npz")
        self.assertEqual(said["out"]["hash"], "fnv1a64:5668519cff401636")  # the one of arithmetic version 1, see demo_test.py
        self.assertTrue(said["error"]["ok"])
        self.assertEqual(said["error"]["heads"], 6)
        self.assertTrue(0.5 < said["error"]["relative_rms"] / said["error"]["predicted_relative_rms"] < 2, said["error"])
        half = report(DATA / "whisper_cross2.npz", "--out-type=f16")["error"]
        self.assertTrue(0.5 < half["relative_rms"] / half["predicted_relative_rms"] < 2, half)
        self.assertGreater(half["relative_rms"], 1e-5)

    def test_an_output_beyond_f16_is_told(self):
        one = layers.npy((1, 1, 1), [1], "f")
        path = self.npz(q=one, k=one, v=layers.npy((1, 1, 2), [1e5, 1], "f"))
        said = report(path, "--out-type=f16", "--out", self.out)
        self.assertEqual(parse(self.out.read_bytes())[2], [math.inf, 1])
        self.assertEqual([said["error"][name] for name in ("ok", "not_finite", "beyond_f16")], [True, 0, 1])
        self.assertIn("1 elements are beyond f16", run(path, "--out-type=f16").stdout)

    def test_subnormal_values_have_a_subnormal_error(self):
        tiny = self.npz(v=layers.npy((2, 20, 5), [(i % 7 - 3) * 1e-42 for i in range(200)], "f"))
        error = report(tiny)["error"]
        self.assertTrue(error["ok"], error)
        self.assertLess(error["max_abs"], 1e-44)

    def test_a_wrong_result_is_exit_code_1_and_written(self):
        # The sum of two values exceeds f32 though their mean does not: a documented limit.
        path = self.npz(q=layers.npy((1, 1, 1), [0], "f"), k=layers.npy((1, 2, 1), [0, 0], "f"), v=layers.npy((1, 2, 1), [3e38, 3e38], "f"))
        done = run(path, "--out", self.out)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("1 elements are finite here and not in f64, or the reverse", done.stdout)
        self.assertEqual(parse(self.out.read_bytes())[2], [math.inf])


class Reports(Folder):
    def test_json(self):
        path = self.npz(q=layers.small("d")["q"])
        done = run(path, "--json", "--threads=2", "--target=scalar")
        said = json.loads(done.stdout)
        self.assertEqual(list(said), ["version", "arithmetic", "table", "threads", "q", "k", "v", "narrowed", "mask", "scale",
                                      "options", "visible_pairs", "seconds", "gflops", "error", "out", "lse"])
        self.assertEqual((said["arithmetic"], said["table"], said["threads"]), (1, "scalar", 2))
        self.assertEqual(said["q"], {"shape": [4, 20, 8], "type": "f64"})
        self.assertEqual(said["v"], {"shape": [2, 20, 5], "type": "f16"})
        self.assertEqual(said["mask"], {"left": -1, "right": -1, "q_offset": 0, "prefix": 0})
        self.assertEqual(said["options"], dict.fromkeys(["softcap", "alibi", "bias", "mask", "sinks", "segments", "kv_segments"]))
        self.assertEqual(list(said["error"]), ["heads", "rows_of_each_head", "max_abs", "relative_rms", "predicted_relative_rms",
                                               "not_finite", "beyond_f16", "ok"])
        self.assertEqual((said["error"]["ok"], said["error"]["not_finite"]), (True, 0))
        self.assertLess(said["error"]["max_abs"], 1e-5)
        self.assertAlmostEqual(said["gflops"] * said["seconds"], 2e-9 * 4 * 20 * 20 * (8 + 5), places=9)
        for name, shape in (("out", [4, 20, 5]), ("lse", [4, 20])):
            self.assertEqual(list(said[name]), ["shape", "type", "hash", "file"])
            self.assertEqual((said[name]["shape"], said[name]["type"], said[name]["file"]), (shape, "f32", None))
            self.assertRegex(said[name]["hash"], "^fnv1a64:[0-9a-f]{16}$")
        self.assertEqual(self.names(), ["layer.npz"])
        self.assertEqual(report(path, "--lse", self.lse)["lse"]["file"], str(self.lse))
        self.assertEqual(self.names(), ["layer.npz", "lse.npy"])

    def test_text(self):
        done = run(self.npz(), "--window=5,0", "--q-offset=2", "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        for pattern in (r"^etalon \S+, arithmetic 1, table \S+, \d+ threads?\n", r"\nq +\[4, 20, 8\] f16\n",
                        r"\ngeometry +window 6, rows from 2; 444 visible pairs", r"\nscale +0\.353553385, 1/sqrt\(head_dim\)\n",
                        r"\ntime +[0-9.]+ ms, [0-9.]+ GFLOP/s", r"\nerror +max abs \S+, rel. RMS \S+ \(expected \S+\) against f64, 20 rows of 4 heads\n",
                        r"\nout +\[4, 20, 5\] f32, fnv1a64:[0-9a-f]{16}, written to .*out.npy\n",
                        r"\nlse +\[4, 20\] f32, fnv1a64:[0-9a-f]{16}, not written\n$"):
            self.assertRegex(done.stdout, pattern)
        self.assertEqual(done.stderr, "", "what is over at once needs no progress")
        done = run(DATA / "whisper_cross2.npz", "--target=scalar")  # a second or so
        self.assertRegex(done.stderr, r"^\[  0 %\] attention: scalar\n")
        self.assertRegex(done.stderr, r"\n\[100 %[^]]*\] exact values in f64\n$")
        self.assertEqual(done.stderr.count("\r"), 0)
        self.assertIn("fnv1a64:5668519cff401636", done.stdout)

    def test_names_cannot_paint_the_terminal_or_break_json(self):
        bad = os.fsencode(self.folder) + b"/a\x1b[31m\xffb.npy"
        path = self.npz()
        done = subprocess.run([TOOL, "attend", path, "--out", bad, "--json"], capture_output=True, timeout=50)
        self.assertEqual(done.returncode, 0, done.stderr)
        json.loads(done.stdout.decode())
        done = subprocess.run([TOOL, "attend", path, "--out", bad], capture_output=True, timeout=50)
        self.assertIn(b"a\\x1b[31m\\xffb.npy", done.stdout)
        self.assertNotIn(b"\x1b", done.stdout + done.stderr)

    def test_help(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for text in ("Examples:\n  etalon attend layer.npz", "--q-offset", "index.json", "LEFT,RIGHT"):
            self.assertIn(text, done.stdout)


class Refusals(Folder):
    def test_usage(self):
        path = self.npz()
        for message, args in [
            ("FILE", []),
            ("not 2 files", [path, path]),
            ("not 4 files", [path] * 4),
            ("--frobnicate", [path, "--frobnicate"]),
            ("--scale: 'x' is not a number", [path, "--scale=x"]),
            ("--scale: '1x' is not a number", [path, "--scale=1x"]),
            ("--scale: ' 1' is not a number", [path, "--scale", " 1"]),
            ("--scale: 'nan' is not a finite", [path, "--scale=nan"]),
            ("--scale: '-inf' is not a finite", [path, "--scale", "-inf"]),
            ("--scale: '1e39' is not a finite number in f32", [path, "--scale=1e39"]),
            ("--scale: '0' is 0 in f32, by which the library means the default", [path, "--scale=0"]),
            ("--scale: '-0.0' is 0 in f32", [path, "--scale=-0.0"]),
            ("--scale: '1e-60' is 0 in f32", [path, "--scale=1e-60"]),
            ("--causal", [path, "--causal=yes"]),
            ("--causal", [path, "--causal"]),
            ("--window: '3' is not LEFT,RIGHT", [path, "--window=3"]),
            ("--window: '3,' is not", [path, "--window=3,"]),
            ("--window: ',3' is not", [path, "--window=,3"]),
            ("--window: '1,2,3' is not", [path, "--window=1,2,3"]),
            ("--window: '1, 2' is not", [path, "--window=1, 2"]),
            ("--window: '-2,0' is not", [path, "--window=-2,0"]),
            ("--window: '0,-2' is not", [path, "--window=0,-2"]),
            ("--window: '9223372036854775808,0' is not", [path, "--window=9223372036854775808,0"]),
            ("--q-offset: --causal=top-left says where row 0 stands", [path, "--causal=top-left", "--q-offset=0"]),
            ("--q-offset: --causal=bottom-right says", [path, "--causal=bottom-right", "--window=3,0", "--q-offset=0"]),
            ("--q-offset: without --window", [path, "--q-offset=3"]),
            ("--q-offset", [path, "--window=1,1", "--q-offset=x"]),
            ("--q-offset", [path, "--window=1,1", "--q-offset=1.5"]),
            ("--q-offset", [path, "--window=1,1", "--q-offset=4611686018427387905"]),
            ("--out-type", [path, "--out-type=f64"]),
            ("--target", [path, "--target", ""]),
            ("--out", [path, "--out", ""]),
            ("--lse", [path, "--lse", ""]),
            *[("--threads", [path, "--threads", n]) for n in ("0", "-1", "x", "1025", "1.5")],
        ]:
            self.refuse(2, message, *args)

    def test_tables(self):
        path = self.npz()
        done = self.refuse(3, "--target=nope: no such kernel table; tables of this build: scalar", path, "--target=nope")
        self.assertNotIn("ETALON_TARGET", done.stderr)
        self.refuse(3, "ETALON_TARGET=nope: no such kernel table", path, ETALON_TARGET="nope")
        info = json.loads(subprocess.run([TOOL, "info", "--json"], env=tool.environment({}), stdout=subprocess.PIPE).stdout)
        for table in info["tables"]:
            if not table["available"]:
                self.refuse(3, "--target=%s: this table cannot run here" % table["name"], path, "--target", table["name"])

    def test_archives(self):
        self.refuse(3, "none.npz: cannot be opened as a .npz file: No such file", self.folder / "none.npz")
        self.refuse(3, "cannot be opened as a .npz file", self.folder)
        (self.folder / "text.npz").write_text("not an archive, however long this text goes on")
        self.refuse(3, "text.npz: cannot be opened as a .npz file: Not a zip archive", self.folder / "text.npz")
        arrays = layers.small()
        del arrays["v"]
        self.refuse(3, "a.npz: the archive has no entry 'v.npy'", layers.write(self.folder / "a.npz", arrays))
        content = pathlib.Path(self.npz("cut.npz")).read_bytes()
        (self.folder / "cut.npz").write_bytes(content[:len(content) // 2])
        self.refuse(3, "cut.npz: ", self.folder / "cut.npz")
        damaged = bytearray(content)
        damaged[400] ^= 1
        (self.folder / "cut.npz").write_bytes(damaged)
        self.refuse(3, "entry 'q.npy' is damaged", self.folder / "cut.npz")

    def test_arrays(self):
        big = [0.0] * 160
        big[77] = -1e39
        big[90] = 1e300
        edge = [float.fromhex("0x1.ffffffp127")] + [0.0] * 159  # half way to 2^128: the least that rounds to infinity
        cases = {
            "array q: type '<i2' is not supported": {"q": layers.npy((1, 1, 1), [0], "e", "<i2")},
            "array q: type '|O' is not supported (Python objects": {"q": layers.npy((1, 1, 1), [0], "e", "|O")},
            "array k: type '>f4' is not supported (big-endian": {"k": layers.npy((1, 1, 1), [0], "f", ">f4")},
            "array k: the array is in Fortran order": {"k": layers.npy((1, 1, 1), [0], "e", None, "True")},
            "array v: not a .npy file": {"v": b"nothing"},
            "array v: truncated": {"v": layers.ramp((2, 20, 5), 1)[:-1]},
            "array v: 1 bytes are left over": {"v": layers.ramp((2, 20, 5), 1) + b"x"},
            "array q has shape [20, 8]; it must be [heads, length, channels] or [batch, heads,": {"q": layers.ramp((20, 8), 1)},
            "array q has shape [1, 1, 4, 20, 8]; it": {"q": layers.ramp((1, 1, 4, 20, 8), 1)},
            "array q has shape []; it": {"q": layers.ramp((), 1)},
            "array q has shape [4, 0, 8], which is empty": {"q": layers.ramp((4, 0, 8), 1)},
            "array k has shape [0, 2, 20, 8], which is empty": {"k": layers.ramp((0, 2, 20, 8), 1)},
            "q and k differ in channels: q [4, 20, 9], k [2, 20, 8]": {"q": layers.ramp((4, 20, 9), 1)},
            "k and v differ in heads": {"v": layers.ramp((1, 20, 5), 1)},
            "k and v differ in length": {"v": layers.ramp((2, 21, 5), 1)},
            "do not divide": {"q": layers.ramp((3, 20, 8), 1)},
            "differ in the number of dimensions: q [1, 4, 20, 8], k [2, 20, 8]": {"q": layers.ramp((1, 4, 20, 8), 1)},
            "q, k and v differ in batch: q [2, 4, 20, 8], k [1, 2,": layers.small(q=(2, 4, 20, 8), k=(1, 2, 20, 8), v=(1, 2, 20, 5)),
            "q, k and v differ in batch: q [1, 4, 20, 8]": layers.small(q=(1, 4, 20, 8), k=(1, 2, 20, 8), v=(2, 2, 20, 5)),
            "array k: element [0, 9, 5] is -1e+39, which is beyond": {"k": layers.npy((1, 20, 8), big, "d")},
            "array k: element [0, 1, 4, 5] is -1e+39": {"k": layers.npy((1, 4, 5, 8), big, "d")},
            "array k: element [0, 0, 0] is 3.402823568e+38": {"k": layers.npy((1, 20, 8), edge, "d")},
        }
        for message, change in cases.items():
            done = self.refuse(3, message, self.npz(**change))
            self.assertIn("layer.npz: ", done.stderr)

    def test_three_files(self):
        paths = {}
        for name, content in layers.small().items():
            paths[name] = self.folder / (name + ".npy")
            paths[name].write_bytes(content)
        (self.folder / "bad.npy").write_bytes(b"nothing")
        (self.folder / "long.npy").write_bytes(layers.ramp((2, 21, 5), 1))
        q, k, v = paths.values()
        self.refuse(3, "none.npy: cannot be opened: No such file or directory", q, self.folder / "none.npy", v)
        self.refuse(3, ": cannot be read: Is a directory", q, self.folder, v)
        self.refuse(3, "bad.npy: array v: not a .npy file", q, k, self.folder / "bad.npy")
        self.refuse(3, "q.npy: is one .npy file; give one .npz, or three .npy files for q, k and v", q)
        done = self.refuse(3, "k and v differ in length", q, k, self.folder / "long.npy")
        self.assertIn("q.npy, ", done.stderr)
        self.assertIn("k.npy, ", done.stderr)
        self.assertIn("long.npy: ", done.stderr)

    def test_places(self):
        path = self.npz()
        (self.folder / "folder").mkdir()
        (self.folder / "loop").symlink_to("loop")
        for option in ("--out", "--lse"):
            self.refuse(3, option + " " + str(self.folder) + ": cannot be written: Is a directory", path, option, self.folder)
            for message, place in [("no file can be made in its folder", "/proc/o.npy"),
                                   ("its folder: No such file or directory", self.folder / "none" / "o.npy"),
                                   ("cannot be written: Not a directory", path + "/o.npy"),
                                   ("cannot be written: Too many levels", self.folder / "loop"),
                                   ("cannot be written: File name too long", self.folder / ("n" * 256)),
                                   ("Is a directory", str(self.folder) + "/folder/"),
                                   ("names a folder", str(self.folder) + "/none/")]:
                if str(place).startswith("/proc") and not os.path.isdir("/proc/self"):
                    continue
                self.refuse(3, message, path, option, place)

    def test_permissions(self):
        path = self.npz()
        os.chmod(self.folder, 0o777)  # a rename could replace any file in it
        os.chmod(path, 0o644)
        closed = self.folder / "closed"
        closed.mkdir()
        kept = self.folder / "kept.npy"
        kept.write_text("kept")
        os.chmod(closed, 0o555)
        os.chmod(kept, 0o444)
        # Root may write everywhere.
        user = 65534 if os.geteuid() == 0 else None
        try:
            run("--help", user=user)
        except PermissionError:
            self.skipTest("the tool cannot be started by another user")
        self.refuse(3, "Permission denied", path, "--out", closed / "o.npy", "--lse", "/dev/null", user=user)
        self.assertEqual(list(closed.iterdir()), [])
        self.refuse(3, "Permission denied", path, "--out", kept, "--lse", "/dev/null", user=user)
        self.assertEqual(kept.read_text(), "kept")

    def test_same_files(self):
        path = self.npz()
        content = pathlib.Path(path).read_bytes()
        (self.folder / "link").symlink_to("layer.npz")
        os.link(path, self.folder / "hard")
        for place in ("layer.npz", "link", "hard", "../%s/layer.npz" % self.folder.name):
            for option in ("--out", "--lse"):
                self.refuse(2, "is the same file as the input", path, option, self.folder / place)
        for name, array in layers.small().items():
            (self.folder / (name + ".npy")).write_bytes(array)
        three = [self.folder / (name + ".npy") for name in "qkv"]
        for place in three:
            self.refuse(2, "is the same file as the input", *three, "--out", place)
        self.assertEqual(pathlib.Path(path).read_bytes(), content)
        self.refuse(2, "is the same file as --out", path, "--lse", self.out)
        self.refuse(2, "is the same file as --out", path, "--lse", "%s/../%s/out.npy" % (self.folder, self.folder.name))
        (self.folder / "dangling").symlink_to("out.npy")
        self.refuse(2, "is the same file as --out", path, "--lse", self.folder / "dangling")
        self.out.write_text("old")
        self.refuse(2, "is the same file as --out", path, "--lse", self.folder / "dangling")
        os.link(self.out, self.folder / "twin")
        self.refuse(2, "is the same file as --out", path, "--lse", self.folder / "twin")
        self.assertEqual(self.out.read_text(), "old")

    def test_standard_output(self):
        path = self.npz()
        self.refuse(2, "is the standard output", path, "--out", "/dev/stdout")
        with open(self.folder / "report", "w") as stream:
            done = subprocess.run([TOOL, "attend", path, "--lse", self.folder / "report"], stdout=stream, stderr=subprocess.PIPE, timeout=50)
        self.assertEqual(done.returncode, 2)
        self.assertEqual((self.folder / "report").read_text(), "")

    def test_no_room(self):
        path = self.npz()

        def limit(size):
            return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        # out has 1728 bytes and lse 448: with 1000 the second is complete and must not appear either.
        for size in (0, 1, 128, 300, 1000):
            self.refuse(3, "could not be written: File too large", path, preexec_fn=limit(size))
        # What was written into a pipe cannot be taken back, so it comes last; here that would wait for a reader.
        os.mkfifo(self.folder / "pipe")
        for place in ("/dev/null", self.folder / "pipe"):
            self.refuse(3, "lse.npy: could not be written: File too large", path, "--out", place, preexec_fn=limit(300))
        self.out.write_text("old")
        self.refuse(3, "out.npy: could not be written: File too large", path, preexec_fn=limit(1000))
        self.assertEqual(self.out.read_text(), "old")

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_full_devices(self):
        path = self.npz()
        for option in ("--out", "--lse"):
            self.refuse(3, "/dev/full: could not be written: No space left on device", path, option, "/dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "attend", path, "--out", self.out], stdout=full, stderr=subprocess.PIPE, text=True, timeout=50)
        self.assertEqual(done.returncode, 3)
        self.assertIn("the report could not be written", done.stderr)
        self.assertEqual(self.names(), ["layer.npz"])

    def test_nobody_reads_the_report(self):
        path = self.npz()
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([TOOL, "attend", path, "--out", self.out, "--lse", self.lse], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=50)
        os.close(writer)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(self.names(), ["layer.npz"])


class Files(Folder):
    def test_devices_stay_devices(self):
        path = self.npz()
        before = os.stat("/dev/null")
        done = run(path, "--out", "/dev/null", "--lse", self.lse)
        self.assertEqual(done.returncode, 0, done.stderr)
        after = os.stat("/dev/null")
        self.assertTrue(stat.S_ISCHR(after.st_mode))
        self.assertEqual((after.st_ino, after.st_rdev, after.st_mode), (before.st_ino, before.st_rdev, before.st_mode))
        (self.folder / "link").symlink_to("/dev/null")
        self.assertEqual(run(path, "--out", self.folder / "link").returncode, 0)
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.assertEqual(run(path, "--out", "/dev/null", "--lse", "/dev/null").returncode, 0)
        with open("/dev/null", "w") as null:  # as the report's place and the output's at once
            self.assertEqual(subprocess.run([TOOL, "attend", path, "--out", "/dev/null"], stdout=null, stderr=null, timeout=50).returncode, 0)

    def test_pipes(self):
        path = self.npz()
        expected = self.both(path)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen([TOOL, "attend", path, "--out", pipe, "--lse", self.lse], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            self.assertEqual(pipe.read_bytes(), expected[0])
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.lse.read_bytes(), expected[1])
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))

    def test_a_pipe_that_breaks(self):
        wide = layers.small(v=(2, 20, 4000))  # more than a pipe holds
        path = self.npz(**wide)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen([TOOL, "attend", path, "--out", pipe, "--lse", self.lse], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            with open(pipe, "rb") as reader:
                reader.read(1)
            out, err = process.communicate(timeout=50)
        self.assertEqual((process.returncode, out), (3, ""))
        self.assertIn("pipe: could not be written: Broken pipe", err)
        self.assertEqual(self.names(), ["layer.npz", "pipe"])

    def test_links_are_followed(self):
        path = self.npz()
        expected = self.both(path)
        (self.folder / "deep").mkdir()
        (self.folder / "link").symlink_to("deep/hop")
        (self.folder / "deep" / "hop").symlink_to("real.npy")
        for _ in range(2):  # first it leads nowhere, then to a file
            report(path, "--out", self.folder / "link")
            self.assertTrue((self.folder / "link").is_symlink())
            self.assertTrue((self.folder / "deep" / "hop").is_symlink())
            self.assertEqual((self.folder / "deep" / "real.npy").read_bytes(), expected[0])
            self.assertEqual(len(list((self.folder / "deep").iterdir())), 2)

    def test_names_and_modes(self):
        path = self.npz()
        expected = self.both(path)
        self.assertEqual(self.names(), ["layer.npz", "lse.npy", "out.npy"])
        mask = os.umask(0o027)
        try:
            fresh = self.folder / ("n" * 255)
            report(path, "--out", fresh)
        finally:
            os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(fresh).st_mode), 0o640)
        self.assertEqual(fresh.read_bytes(), expected[0])
        self.out.write_text("longer than what follows " * 1000)
        os.chmod(self.out, 0o604)
        report(path, "--out", self.out)
        self.assertEqual(stat.S_IMODE(os.stat(self.out).st_mode), 0o604)
        self.assertEqual(self.out.read_bytes(), expected[0])
        done = subprocess.run([TOOL, "attend", "layer.npz", "--out", "here.npy"], cwd=self.folder, capture_output=True, timeout=50)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "here.npy").read_bytes(), expected[0])

    def waiting(self, path):
        """The tool when both files are complete and not yet in place, because nobody reads its report; and the reader's end."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, bytes(4096))
        except BlockingIOError:
            os.set_blocking(writer, True)
        process = subprocess.Popen([TOOL, "attend", path, "--out", self.out, "--lse", self.lse], stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        end = time.monotonic() + 20
        while not self.complete() and time.monotonic() < end:
            time.sleep(0.01)
        self.assertTrue(self.complete())
        self.assertFalse(self.out.exists() or self.lse.exists())
        return process, reader

    def test_a_signal(self):
        path = self.npz()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process, reader = self.waiting(path)
            process.send_signal(number)
            process.communicate(timeout=50)
            os.close(reader)
            self.assertEqual(process.returncode, -number)
            self.assertEqual(self.names(), ["layer.npz"])

    def test_a_place_that_is_taken_at_the_last_moment(self):
        # The report waits for its reader when the files are complete and not yet in place. Then a folder takes a place.
        path = self.npz()
        for taken, gone in ((self.out, self.lse), (self.lse, self.out)):
            process, reader = self.waiting(path)
            taken.mkdir()
            while os.read(reader, 65536):
                pass
            _, err = process.communicate(timeout=50)
            os.close(reader)
            self.assertEqual(process.returncode, 3)
            self.assertIn(taken.name + ": could not be put in its place: Is a directory", err)
            self.assertEqual(self.names(), sorted(["layer.npz", taken.name]))
            taken.rmdir()

    def complete(self):
        waiting = [path.stat().st_size for path in self.folder.iterdir() if path.name.startswith(".etalon-")]
        return sorted(waiting) == [128 + 4 * 20 * 4, 128 + 4 * 20 * 5 * 4]


if __name__ == "__main__":
    unittest.main()

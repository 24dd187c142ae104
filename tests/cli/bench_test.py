"""What `etalon bench` says, on sizes too small to mean anything:  bench_test.py ETALON

Nothing is asserted about a time or a speed.
"""
import json
import os
import pty
import re
import subprocess
import sys
import unittest

import tool

TOOL = None
SMALL = ("--shrink=64", "--sample=0")   # hidden options
SIZE = {"f32": 4, "f16": 2, "bf16": 2}
NAME = re.compile(
    r"prefill (f32|f16|bf16) (full|causal)( g\d+)? h\d+ n\d+ d\d+( 2threads)?"
    r"|decode (f32|f16|bf16) g\d+ h\d+ kv\d+ d\d+ (L2|DRAM)"
    r"|(scores|weighted_sum) f32 full h1 n\d+ d\d+"
    r"|softmax f32 (full|causal) rows\d+ n\d+ (L2|L3|DRAM)"
    r"|merge f32 rows\d+ d\d+ (L2|DRAM)")


def run(*args, **variables):
    return tool.run(TOOL, "bench", *args, **variables)


def work(name):
    """(flop or None, bytes or None) of one run, from the name alone."""
    kernel = name.split()[0]
    n = {match[1]: int(match[2]) for match in re.finditer(r" (g|h|n|kv|d|rows)(\d+)\b", name)}
    if kernel == "prefill":
        pairs = n["n"] * (n["n"] + 1) // 2 if " causal" in name else n["n"] ** 2
        return 4 * n["d"] * n["h"] * pairs, None
    if kernel == "decode":
        return 4 * n["d"] * n["h"] * n["kv"], 2 * n["h"] // n["g"] * n["kv"] * n["d"] * SIZE[name.split()[1]]
    if kernel in ("scores", "weighted_sum"):
        return 2 * n["n"] ** 2 * n["d"], None
    if kernel == "softmax":
        return None, 2 * 4 * n["rows"] * n["n"]
    return None, 3 * 4 * n["rows"] * n["d"]


class Bench(unittest.TestCase):
    def report(self, *args, code=0, **variables):
        done = run("--json", *args, **variables)
        self.assertEqual(done.returncode, code, done.stderr)
        keys = [name for name, _ in json.loads(done.stdout, object_pairs_hook=list)]
        self.assertEqual(keys, ["version", "arithmetic", "machine", "quick", "limits", "rows", "ok"])
        return json.loads(done.stdout)

    def check_row(self, row):
        self.assertEqual(list(row), ["name", "table", "seconds", "gflops", "gbps", "limit", "percent_of_limit", "percent_min",
                                     "percent_max", "rms_error", "rounds", "failure", "skipped"])
        self.assertTrue(NAME.fullmatch(row["name"]), row["name"])
        self.assertIsNone(row["failure"])
        if row["skipped"] is not None:
            self.assertTrue(all(row[name] is None for name in ("seconds", "gflops", "gbps", "rms_error", "rounds")), row)
            return
        flop, size = work(row["name"])
        for rate, amount in (("gflops", flop), ("gbps", size)):
            if amount is None:
                self.assertIsNone(row[rate])
            else:
                self.assertAlmostEqual(row[rate] * 1e9 * row["seconds"] / amount, 1, places=9)
        self.assertGreater(row["seconds"], 0)
        self.assertTrue(0 <= row["rms_error"] < 1e-5)
        self.assertIs(type(row["rounds"]), int)
        if row["limit"] is None:  # a CPU that there are no loops for
            self.assertIsNone(row["percent_of_limit"])
            return
        self.assertRegex(row["limit"], r"^(fma|read|store|memcpy) \w+$|^exp$|^2 x one thread$")
        self.assertTrue(0 < row["percent_min"] <= row["percent_of_limit"] <= row["percent_max"], row)

    def test_every_row(self):
        report = self.report("--quick", *SMALL)
        self.assertEqual((report["arithmetic"], report["quick"], report["ok"]), (1, True, True))
        names = [row["name"] for row in report["rows"]]
        self.assertEqual("\n".join(names) + "\n", run("--list", *SMALL).stdout)
        for row in report["rows"]:
            self.check_row(row)
        for part in ("prefill f32 full h1 ", "prefill f16 full", "prefill bf16 causal", " d64", " d128", "prefill f32 causal g4 h8 ",
                     "prefill f32 full h8 ", "2threads", "decode f32 g1 ", "decode f16 g4 ", " L2", " DRAM", "softmax f32 causal",
                     "scores", "weighted_sum", "merge"):
            self.assertTrue(any(part in name for name in names), part)

        machine = report["machine"]
        self.assertEqual(list(machine), ["cpu", "features", "usable_cpus", "compiler"])
        self.assertGreaterEqual(machine["usable_cpus"], 1)
        self.assertRegex(machine["compiler"], r"\d")

    def test_limits(self):
        limits = self.report("merge", "--quick", *SMALL)["limits"]
        self.assertEqual(list(limits), ["fma_gflops", "fma_gflops_by_width", "read_gbps", "store_gbps", "memcpy_gbps",
                                        "exp_gelements_by_table"])
        widths = limits["fma_gflops_by_width"]
        self.assertTrue(set(widths) <= {"avx2", "avx512", "neon"})
        self.assertIn(limits["fma_gflops"], list(widths.values()) if widths else [None])
        for name in ("read_gbps", "store_gbps", "memcpy_gbps"):
            self.assertEqual(list(limits[name]), ["l1", "l2", "l3", "dram"])
            for level, rate in limits[name].items():
                # Some machines have no third level, and some CPUs no vectors that there are loops for.
                if level != "l3" and (widths or name == "memcpy_gbps") or rate is not None:
                    self.assertGreater(rate, 0)
        for rate in [*widths.values(), *limits["exp_gelements_by_table"].values()]:
            self.assertGreater(rate, 0)

    def test_the_full_sizes_have_the_names_that_people_quote(self):
        names = run("--list").stdout.splitlines()
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertTrue(NAME.fullmatch(name), name)
        for name in ("prefill f32 full h1 n2048 d128", "prefill f32 causal g4 h8 n1024 d128", "scores f32 full h1 n2048 d128",
                     "prefill bf16 causal h1 n2048 d64", "prefill f32 full h8 n1024 d128 2threads"):
            self.assertIn(name, names)
        for name in names:   # what is made to lie in DRAM does not fit in a cache of 64 MiB; that of one row is what it is
            if name.endswith("DRAM") and not name.startswith("softmax f32 causal"):
                self.assertGreater(work(name)[1], 64 << 20)

    def test_filter(self):
        all_names = run("--list").stdout.splitlines()
        for part in ("decode", "DeCoDe F16", "n1024 D128", "2t"):
            names = run("--list", part).stdout.splitlines()
            self.assertEqual(names, [name for name in all_names if part.lower() in name.lower()])
            self.assertTrue(0 < len(names) < len(all_names))
        rows = self.report("MERGE", "--quick", *SMALL)["rows"]
        self.assertEqual([row["name"].split()[0] for row in rows], ["merge", "merge"])
        done = run("nothing is\x1b called so", *SMALL)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("no row's name contains 'nothing is\\x1b called so'", done.stderr)
        self.assertNotIn("\x1b", done.stderr)
        for name in run("--list", *SMALL).stdout.splitlines():
            self.assertIn("\n  %s\n" % name, done.stderr)

    def test_quick_has_fewer_rounds(self):
        quick = self.report("prefill f32 full h1 n4 ", "--quick", *SMALL)
        usual = self.report("prefill f32 full h1 n4 ", *SMALL)
        self.assertEqual((len(quick["rows"]), len(usual["rows"]), usual["quick"]), (1, 1, False))
        self.assertLess(quick["rows"][0]["rounds"], usual["rows"][0]["rounds"])

    def test_tables(self):
        one = ("merge", "--quick", *SMALL)
        info = subprocess.run([TOOL, "info", "--json"], capture_output=True, text=True, timeout=50)
        tables = json.loads(info.stdout)["tables"]
        usable = [table["name"] for table in tables if table["available"]]

        def measured(*args, **variables):
            report = self.report(*one, *args, **variables)
            names = [row["table"] for row in report["rows"]]
            self.assertEqual(list(report["limits"]["exp_gelements_by_table"]), list(dict.fromkeys(names)))
            return list(dict.fromkeys(names))

        self.assertEqual(measured(ETALON_TARGET="scalar"), ["scalar"])
        self.assertEqual(measured("--target=scalar", ETALON_TARGET=usable[-1]), ["scalar"])
        self.assertEqual(measured("--target=scalar", ETALON_TARGET="nope"), ["scalar"])
        self.assertEqual(measured("--target", ",".join(reversed(usable)) + ",scalar"), list(reversed(usable)))
        self.assertEqual(measured("--target=all"), usable)
        for args, variables, message in ((["--target=nope"], {}, "--target=nope: no such kernel table; tables of this build: scalar"),
                                         (["--target=scalar,"], {}, "--target=: no such kernel table"),
                                         (["--target=a\x1b"], {}, "--target=a\\x1b: no such"),
                                         ([], {"ETALON_TARGET": "nope"}, "ETALON_TARGET=nope: no such kernel table")):
            done = run(*one, *args, **variables)
            self.assertEqual((done.returncode, done.stdout), (3, ""))
            self.assertIn(message, done.stderr)
        for table in tables:
            if not table["available"]:
                done = run(*one, "--target=" + table["name"])
                self.assertEqual(done.returncode, 3)
                self.assertIn("this table cannot run here", done.stderr)

    def test_scalar(self):
        for row in self.report("--quick", "--target=scalar", "--shrink=64", "--sample=0")["rows"]:
            self.check_row(row)

    def test_too_slow_is_skipped(self):
        report = self.report("prefill", "--slowest=0", *SMALL)
        self.assertTrue(report["ok"])
        for row in report["rows"]:
            self.assertRegex(row["skipped"], r"^one run takes [\d.e-]+ s$|^this process may use one CPU$")
            self.check_row(row)
        text = run("prefill f32 full h1 n4 ", "--slowest=0", *SMALL)
        self.assertEqual(text.returncode, 0)
        self.assertRegex(text.stdout, r"(?m)^prefill f32 full h1 n4 d64 .* skipped: one run takes [\d.e-]+ s$")

    def test_a_failed_check(self):
        name = "scores f32 full h1 n32 d64"
        report = self.report("scores", "--quick", "--break", name.upper(), *SMALL, code=1)
        self.assertFalse(report["ok"])
        failed, good = report["rows"]
        self.assertEqual(failed["name"], name)
        self.assertIn("--break", failed["failure"])
        self.assertTrue(all(failed[key] is None for key in ("seconds", "gflops", "limit", "percent_of_limit", "rounds")))
        self.check_row(good)
        text = run("scores", "--quick", "--break", name, *SMALL)
        self.assertEqual(text.returncode, 1)
        self.assertNotIn("\x1b", text.stdout)
        self.assertRegex(text.stdout, r"(?m)^%s .* FAILED .*check FAILED, not timed" % name)

    def test_text(self):
        done = subprocess.run([TOOL, "bench", "merge", "--quick", *SMALL], capture_output=True, timeout=50)  # bytes
        self.assertEqual(done.returncode, 0)
        for stream in (done.stdout, done.stderr):
            self.assertNotIn(b"\x1b", stream)
            self.assertNotIn(b"\r", stream)
        self.assertRegex(done.stderr, rb"(?m)^\[ *\d+ %.*\] merge f32 rows2 d128 L2$")
        self.assertNotIn(b" %]", done.stdout)
        text = done.stdout.decode()
        for part in ("GFLOP/s", "GB/s", "rel. RMS", "read", "memcpy", "DRAM", "compiler"):
            self.assertIn(part, text)
        self.assertRegex(text, r"(?m)^merge f32 rows2 d128 L2 +\S+ +[\d.]+ +- +[\d.]+ +[\d.]+ +\[[\d.]+ \.\. [\d.]+\] +memcpy L\d")

    def test_progress_on_a_terminal_is_one_line(self):
        parent, child = pty.openpty()
        with subprocess.Popen([TOOL, "bench", "merge", "--quick", *SMALL], stdout=subprocess.PIPE, stderr=child) as process:
            os.close(child)
            painted = b""
            try:
                while piece := os.read(parent, 4096):
                    painted += piece
            except OSError:  # how Linux says that the other end is closed
                pass
            out = process.stdout.read()
        os.close(parent)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"\r\x1b[K", painted)
        self.assertNotIn(b"\n", painted)
        self.assertTrue(painted.endswith(b"\r\x1b[K"))
        self.assertNotIn(b"\x1b", out)

    def test_usage(self):
        for args in (["--frobnicate"], ["a", "b"], ["--target"], ["--shrink=0"], ["--sample=x"]):
            done = run(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
        text = run("--help").stdout
        self.assertIn("Example:\n  etalon bench", text)
        for hidden in ("--shrink", "--sample", "--slowest", "--break"):
            self.assertNotIn(hidden, text)


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()

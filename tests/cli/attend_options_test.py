"""`etalon attend` with softcap, ALiBi, bias, mask, sinks, prefix and segments:  attend_options_test.py ETALON"""
import itertools
import math
import os
import pathlib
import unittest

import attending
import layers
from attending import Folder, numbers, parse, report, run, trio

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
BATCH, HEADS, Q_LEN, KV_LEN = 2, 4, 5, 7
CALL = (BATCH, HEADS, Q_LEN, KV_LEN)


def at(array):
    """The element of an array (shape, values) whose last indices are these; sizes of 1 count for all."""
    shape, values = array

    def element(*index):
        flat = 0
        for size, i in zip(shape, index[len(index) - len(shape):]):
            flat = flat * size + (i if size > 1 else 0)
        return values[flat]
    return element


def standard_slope(heads):
    """Of a head among so many, from the definition."""
    n = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8 * h / n) for h in range(1, n + 1)] + [2.0 ** (-8 * h / (2 * n)) for h in range(1, 2 * n + 1, 2)]
    return lambda b, h: slopes[h]


def flags(shape, a):
    return tuple(shape), [(a * i) % 11 % 3 for i in range(math.prod(shape))]  # 0, 1, 2


def holes(shape, a):
    """Numbers and -inf."""
    return tuple(shape), [-math.inf if (a * i) % 5 == 0 else x * 4 for i, x in enumerate(numbers(shape, a)[1])]


def shapes(full, least_rank):
    """All that broadcast to `full`."""
    for rank in range(least_rank, len(full) + 1):
        yield from itertools.product(*({1, size} for size in full[len(full) - rank:]))


class Options(Folder):
    def setUp(self):
        super().setUp()
        self.arrays = trio((BATCH, HEADS, Q_LEN, 8), (BATCH, 2, KV_LEN, 8), (BATCH, 2, KV_LEN, 3))

    def layer(self, **members):
        """A .npz of q, k, v and these members."""
        return layers.write(self.folder / "layer.npz", {**{name: layers.npy(*a, "f") for name, a in self.arrays.items()}, **members})

    def file(self, name, content):
        (self.folder / name).write_bytes(content)
        return self.folder / name

    def compare(self, path, options, **meaning):
        """The result, and what is counted, against Python."""
        pairs = self.check(path, self.arrays, options, **meaning)
        said = report(path, *options)
        self.assertEqual(said["visible_pairs"], pairs, options)
        self.assertAlmostEqual(said["gflops"] * said["seconds"], 2e-9 * pairs * (8 + 3), places=9)
        self.assertTrue(said["error"]["ok"], said["error"])
        return said


class Alone(Options):
    def test_softcap(self):
        for cap in (0.5, 2, 1e-3, 1e6):
            with self.subTest(cap=cap):
                said = self.compare(self.layer(), ["--softcap=%r" % cap], cap=cap)
                self.assertAlmostEqual(said["options"]["softcap"], cap, places=7)

    def test_alibi(self):
        path = self.layer(s=layers.npy((HEADS,), [0.5, -0.25, 0, 3], "f"))
        for options in (["--alibi"], ["--alibi=standard"], ["--alibi", "standard"]):
            said = self.compare(path, options, slope=standard_slope(HEADS))
            self.assertEqual(said["options"]["alibi"], {"from": "standard", "shape": [HEADS], "type": "f32"})
        said = self.compare(path, ["--alibi=s"], slope=lambda b, h: [0.5, -0.25, 0, 3][h])
        self.assertEqual(said["options"]["alibi"], {"from": "s", "shape": [HEADS], "type": "f32"})
        # Distances are of positions.
        for offset in (-3, 4):
            self.compare(path, ["--alibi", "--q-offset=%d" % offset], slope=standard_slope(HEADS), offset=offset)
        self.compare(path, ["--alibi", "--causal=bottom-right"], slope=standard_slope(HEADS), offset=2, right=0)

    def test_standard_slopes_of_other_numbers_of_heads(self):
        for heads in (1, 2, 3, 6, 12):
            with self.subTest(heads=heads):
                self.arrays = trio((heads, Q_LEN, 8), (1, KV_LEN, 8), (1, KV_LEN, 3))
                self.compare(self.layer(), ["--alibi"], slope=standard_slope(heads))

    def test_arrays_of_heads(self):
        for shape in shapes((BATCH, HEADS), 1):
            array = numbers(shape, 5)
            path = self.layer(x=layers.npy(*array, "f"))
            with self.subTest(shape=shape):
                self.compare(path, ["--sinks=x"], sink=at(array))
                self.compare(path, ["--alibi=x"], slope=at(array))

    def test_bias_and_mask_of_every_shape(self):
        for shape in shapes(CALL, 2):
            bias, mask = holes(shape, 3), flags(shape, 5)
            path = self.layer(b=layers.npy(*bias, "f"), m=layers.npy(*mask, "B"))
            with self.subTest(shape=shape):
                said = self.compare(path, ["--bias=b"], bias=at(bias))
                self.assertEqual(said["options"]["bias"], {"from": "b", "shape": list(shape), "type": "f32"})
                said = self.compare(path, ["--mask=m"], shows=at(mask))
                self.assertEqual(said["options"]["mask"], {"from": "m", "shape": list(shape), "type": "u8"})

    def test_prefix(self):
        for prefix in (0, 1, 3, KV_LEN, 100):
            for options, meaning in ((["--causal=top-left"], {"right": 0}),
                                     (["--window=2,1"], {"left": 2, "right": 1}),
                                     (["--causal=bottom-right", "--window=1,-1"], {"left": 1, "right": 0, "offset": 2}),
                                     (["--window=-1,0", "--q-offset=-20"], {"right": 0, "offset": -20})):
                with self.subTest(prefix=prefix, options=options):
                    said = self.compare(self.layer(), [*options, "--prefix=%d" % prefix], prefix=prefix, **meaning)
                    self.assertEqual(said["mask"]["prefix"], prefix)

    def test_segments(self):
        q, kv = [7, -1, 7, 3, 2**40], [3, 7, 7, -1, 0, 7, 3]
        q2, kv2 = [1, 1, 1, 0, 2], [0, 0, 1, 1, 1, 0, 1]
        for a, b in (((Q_LEN,), (KV_LEN,)), ((BATCH, Q_LEN), (KV_LEN,)), ((1, Q_LEN), (BATCH, KV_LEN)),
                     ((BATCH, Q_LEN), (BATCH, KV_LEN)), ((Q_LEN,), (1, KV_LEN))):
            rows = a, (q + q2)[:math.prod(a)]
            keys = b, (kv + kv2)[:math.prod(b)]
            path = self.layer(s=layers.npy(*rows, "q"), t=layers.npy(*keys, "q"))
            with self.subTest(rows=a, keys=b):
                row, key = at(rows), at(keys)
                said = self.compare(path, ["--segments=s", "--kv-segments=t"], shows=lambda b, h, i, t: row(b, i) == key(b, t))
                self.assertEqual(said["options"]["segments"], {"from": "s", "shape": list(a), "type": "i64"})
                self.assertEqual(said["options"]["kv_segments"], {"from": "t", "shape": list(b), "type": "i64"})

    def test_segments_of_self_attention(self):
        self.arrays = trio((BATCH, HEADS, 6, 8), (BATCH, 2, 6, 8), (BATCH, 2, 6, 3))
        for shape in ((6,), (BATCH, 6)):
            ids = shape, ([0, 0, 1, 1, 1, 2] + [5, 5, 5, 5, 9, 9])[:math.prod(shape)]
            same = at(ids)
            path = self.layer(ids=layers.npy(*ids, "i"))
            with self.subTest(shape=shape):
                said = self.compare(path, ["--segments=ids", "--causal=top-left"], right=0, shows=lambda b, h, i, t: same(b, i) == same(b, t))
                self.assertEqual(said["options"]["segments"], {"from": "ids", "shape": list(shape), "type": "i32"})
                self.assertIsNone(said["options"]["kv_segments"])

    def test_types(self):
        expected = {}
        for code in "efd":
            path = self.layer(b=layers.npy(*holes((Q_LEN, KV_LEN), 3), code), s=layers.npy(*numbers((HEADS,), 9), code))
            said = report(path, "--bias=b", "--sinks=s", "--alibi=s")
            kind = {"e": "f16", "f": "f32", "d": "f64"}[code]
            self.assertEqual([said["options"][name]["type"] for name in ("alibi", "bias", "sinks")], [kind] * 3)
            self.assertEqual(said["narrowed"], ["alibi", "bias", "sinks"] if code == "d" else [])
            expected.setdefault("numbers", said["out"]["hash"])
            self.assertEqual(said["out"]["hash"], expected["numbers"])
        mask = (Q_LEN, KV_LEN), [255 * (i % 3 > 0) for i in range(Q_LEN * KV_LEN)]
        for code in "?B":
            said = report(self.layer(m=layers.npy(*mask, code)), "--mask=m")
            self.assertEqual(said["options"]["mask"]["type"], {"?": "bool", "B": "u8"}[code])
            expected.setdefault("flags", said["out"]["hash"])
            self.assertEqual(said["out"]["hash"], expected["flags"])
        ids = [[0, 1, 200, 1, 0], [1, 200, 0, 0, 1, 1, 200]]
        for code in "Biq":
            said = report(self.layer(s=layers.npy((Q_LEN,), ids[0], code), t=layers.npy((KV_LEN,), ids[1], code)),
                          "--segments=s", "--kv-segments=t")
            expected.setdefault("ids", said["out"]["hash"])
            self.assertEqual(said["out"]["hash"], expected["ids"])
        self.assertEqual(len(set(expected.values())), 3)

    def test_a_narrowed_bias_is_rounded_to_the_nearest(self):
        one = layers.npy((1, 1, 1), [0], "f")
        path = layers.write(self.folder / "one.npz", {"q": one, "k": one, "v": one, "b": layers.npy((1, 1), [1 + 3 * 2.0**-24], "d")})
        report(path, "--bias=b", "--lse", self.lse)
        self.assertEqual(parse(self.lse.read_bytes())[2], [1 + 2 * 2.0**-23])


class Visibility(Options):
    def test_a_row_that_sees_nothing(self):
        mask = (Q_LEN, 1), [1, 0, 1, 1, 0]
        bias = (Q_LEN, 1), [0, 1, -math.inf, 0, -math.inf]
        sinks = numbers((BATCH, HEADS), 5)
        path = self.layer(m=layers.npy(*mask, "?"), b=layers.npy(*bias, "f"), s=layers.npy(*sinks, "f"))
        said = self.compare(path, ["--mask=m", "--bias=b"], shows=at(mask), bias=at(bias))
        self.assertEqual(said["visible_pairs"], BATCH * HEADS * 2 * KV_LEN)
        self.compare(path, ["--mask=m", "--bias=b", "--sinks=s"], shows=at(mask), bias=at(bias), sink=at(sinks))
        nothing = self.layer(m=layers.npy((1, 1), [0], "?"))
        self.assertEqual(self.compare(nothing, ["--mask=m"], shows=lambda *_: False)["visible_pairs"], 0)

    def test_what_is_hidden_has_no_influence(self):
        hidden = 4
        mask = (1, KV_LEN), [int(t != hidden) for t in range(KV_LEN)]
        bias = (1, KV_LEN), [-math.inf if t == hidden else 0.5 for t in range(KV_LEN)]
        members = {"m": layers.npy(*mask, "?"), "b": layers.npy(*bias, "e")}
        for options in (["--mask=m"], ["--bias=b"]):
            clean = self.both(self.layer(**members), *options)
            poisoned = {}
            for name in "kv":
                shape, values = self.arrays[name]
                dim = shape[-1]
                poisoned[name] = layers.npy(shape, [math.nan if i // dim % KV_LEN == hidden else x for i, x in enumerate(values)], "f")
            self.assertEqual(self.both(self.layer(**members, **poisoned), *options), clean)
            self.assertTrue(report(self.folder / "layer.npz", *options)["error"]["ok"])

    def test_the_lowest_finite_bias_hides_nothing(self):
        lowest = -float.fromhex("0x1.fffffep127")
        said = report(self.layer(b=layers.npy((1, 1), [lowest], "f")), "--bias=b", "--out", self.out)
        self.assertEqual(said["visible_pairs"], math.prod(CALL))
        shape, values = self.arrays["v"]
        out = parse(self.out.read_bytes())[2]
        for h in range(HEADS):
            head = values[h // 2 * KV_LEN * 3:][:KV_LEN * 3]
            for c in range(3):
                self.assertAlmostEqual(out[h * Q_LEN * 3 + c], sum(head[c::3]) / KV_LEN, places=6)

    def test_a_sink_of_minus_infinity_is_none(self):
        path = self.layer(s=layers.npy((1,), [-math.inf], "f"))
        self.assertEqual(self.both(path, "--sinks=s"), self.both(path))

    def test_published_numbers(self):
        def row(q, k, v, *options, **members):
            content = {"q": layers.npy(*q, "f"), "k": layers.npy(*k, "f"), "v": layers.npy(*v, "f"),
                       **{name: layers.npy(*array, "f") for name, array in members.items()}}
            report(layers.write(self.folder / "case.npz", content), "--out", self.out, "--lse", self.lse, *options)
            return parse(self.out.read_bytes())[2], parse(self.lse.read_bytes())[2]

        def near(got, wanted, places):
            self.assertEqual(len(got), len(wanted))
            for mine, truth in zip(got, wanted):
                self.assertAlmostEqual(mine, truth, places=places)

        # The cap comes before the bias: the weight of key 0 is .528, not .355.
        out, lse = row(((1, 1, 1), [1]), ((1, 2, 1), [1, 3]), ((1, 2, 2), [1, 0, 0, 1]), "--scale=1", "--softcap=2", "--bias=b",
                       b=((1, 2), [0, -1]))
        near(out + lse, [0.5284537, 0.4715463, 1.5620344], 6)
        # Sinks of 0 and ln 4 beside four equal keys.
        out, lse = row(((2, 3, 1), [0] * 6), ((1, 4, 1), [0] * 4), ((1, 4, 1), [1] * 4), "--sinks=s", s=((2,), [0, math.log(4)]))
        near(out + lse, [0.8] * 3 + [0.5] * 3 + [math.log(5)] * 3 + [math.log(8)] * 3, 6)
        # ALiBi with the slopes of 8 heads: position 3 and four equal keys.
        out, _ = row(((8, 1, 1), [0] * 8), ((1, 4, 1), [0] * 4), ((1, 4, 1), [0, 1, 2, 3]), "--alibi", "--q-offset=3")
        near(out, [2.0845765, 1.8070952, 1.6555624, 1.5780387, 1.5390517, 1.5195299, 1.5097655, 1.5048828], 6)


class Together(Options):
    def meaning(self, members=True):
        """Options of all kinds, whose arrays are members or files, the content of these, and what `attention` calls them."""
        slopes, sinks = numbers((HEADS,), 4), numbers((BATCH, HEADS), 5)
        bias, mask = holes((HEADS, 1, KV_LEN), 3), flags((BATCH, 1, Q_LEN, KV_LEN), 5)
        rows, keys = ((Q_LEN,), [0, 1, 1, 0, 1]), ((BATCH, KV_LEN), [0, 1] * 7)
        arrays = {"alibi": layers.npy(*slopes, "f"), "bias": layers.npy(*bias, "e"), "mask": layers.npy(*mask, "B"),
                  "sinks": layers.npy(*sinks, "d"), "segments": layers.npy(*rows, "i"), "kv-segments": layers.npy(*keys, "q")}
        options = ["--causal=bottom-right", "--window=5,-1", "--prefix=2", "--softcap=1.5"]
        options += ["--%s=%s" % (name, name if members else self.folder / (name + ".npy")) for name in arrays]
        show, row, key = at(mask), at(rows), at(keys)
        return options, arrays, dict(left=5, right=0, offset=2, prefix=2, cap=1.5, slope=at(slopes), bias=at(bias), sink=at(sinks),
                                     shows=lambda b, h, i, t: show(b, h, i, t) and row(b, i) == key(b, t))

    def test_all(self):
        options, arrays, meaning = self.meaning()
        said = self.compare(self.layer(**arrays), options, **meaning)
        self.assertTrue(0 < said["visible_pairs"] < math.prod(CALL) / 2)
        self.assertEqual([name for name in said["options"] if said["options"][name] is None], [])

    def test_members_and_files(self):
        options, arrays, _ = self.meaning()
        expected = self.both(self.layer(**arrays), *options)
        options, arrays, _ = self.meaning(members=False)
        for name, content in arrays.items():
            self.file(name + ".npy", content)
        self.assertEqual(self.both(self.layer(), *options), expected)
        three = [self.file(name + ".npy", layers.npy(*array, "f")) for name, array in self.arrays.items()]
        self.assertEqual(self.both(*three, *options), expected)
        # Beside three files nothing can be a member, whatever its name.
        (self.folder / "bias").write_bytes(arrays["bias"])
        self.assertEqual(report(*three, "--bias", os.path.relpath(self.folder / "bias"))["options"]["bias"]["type"], "f16")

    def test_mask_beside_segments(self):
        for mask_shape, ids_batch in itertools.product(((1, 1), (Q_LEN, KV_LEN), (HEADS, 1, KV_LEN), (BATCH, 1, Q_LEN, 1)), (1, BATCH)):
            mask = flags(mask_shape, 5) if math.prod(mask_shape) > 1 else (mask_shape, [1])
            rows, keys = ((Q_LEN,), [0, 1, 1, 0, 2]), ((ids_batch, KV_LEN), [0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 2, 2, 1, 1][:ids_batch * KV_LEN])
            path = self.layer(m=layers.npy(*mask, "B"), s=layers.npy(*rows, "i"), t=layers.npy(*keys, "i"))
            show, row, key = at(mask), at(rows), at(keys)
            with self.subTest(mask=mask_shape, ids_batch=ids_batch):
                self.compare(path, ["--mask=m", "--segments=s", "--kv-segments=t"],
                             shows=lambda b, h, i, t: show(b, h, i, t) and row(b, i) == key(b, t))

    def test_pairs(self):
        options, arrays, meaning = self.meaning()
        path = self.layer(**arrays)
        for a, b in itertools.combinations(range(3, 8), 2):  # softcap, alibi, bias, mask, sinks
            names = [options[i].partition("=")[0][2:] for i in (a, b)]
            words = {"softcap": "cap", "alibi": "slope", "bias": "bias", "mask": "shows", "sinks": "sink"}
            meant = {words[name]: meaning[words[name]] for name in names}
            if "shows" in meant:
                meant["shows"] = at(flags((BATCH, 1, Q_LEN, KV_LEN), 5))
            with self.subTest(names=names):
                self.compare(path, [options[a], options[b]], **meant)

    def test_the_bits_depend_on_the_values_alone(self):
        options, arrays, _ = self.meaning()
        # More keys than a chunk has, and rows of several tiles.
        self.arrays = trio((BATCH, HEADS, 70, 8), (BATCH, 2, 300, 8), (BATCH, 2, 300, 3))
        arrays["bias"] = layers.npy(*holes((HEADS, 1, 300), 3), "e")
        arrays["mask"] = layers.npy(*flags((BATCH, 1, 70, 300), 5), "B")
        arrays["segments"] = layers.npy((70,), [i // 20 for i in range(70)], "i")
        arrays["kv-segments"] = layers.npy((BATCH, 300), [i // 90 for i in range(600)], "q")
        path = self.layer(**arrays)
        for chosen in ([], options, *[[option] for option in options if option.startswith(("--softcap", "--alibi", "--bias", "--mask", "--sinks"))],
                       ["--causal=top-left", "--prefix=100"], ["--segments=segments", "--kv-segments=kv-segments"]):
            with self.subTest(options=chosen):
                expected = self.both(path, *chosen, "--target=scalar")
                for table in attending.tables():
                    for threads in (1, 3):
                        self.assertEqual(self.both(path, *chosen, "--target", table, "--threads", threads), expected)

    def test_the_error_is_of_the_size_that_rounding_explains(self):
        layer = DATA / "whisper_cross2.npz"
        bias = self.file("bias.npy", layers.npy((103, 1500), [x * 8 for x in numbers((103, 1500), 17)[1]], "f"))
        mask = self.file("mask.npy", layers.npy((103, 1500), [i % 3 for i in range(103 * 1500)], "B"))
        sinks = self.file("sinks.npy", layers.npy((6,), [float(i) for i in range(6)], "f"))
        for options, most in ((["--softcap=3"], 2), (["--softcap=30"], 2), (["--alibi", "--causal=bottom-right"], 2), (["--bias", bias], 2), (["--mask", mask], 2),
                              (["--sinks", sinks], 2), (["--softcap=20", "--alibi", "--bias", bias, "--mask", mask, "--sinks", sinks], 2),
                              (["--softcap=0.01"], 5)):  # the same weights again and again, so that roundings are not independent
            with self.subTest(options=options):
                error = report(layer, *options)["error"]
                self.assertTrue(error["ok"])
                self.assertTrue(0.5 < error["relative_rms"] / error["predicted_relative_rms"] < most, error)


class Reports(Options):
    def test_text(self):
        path = self.layer(bias=layers.npy(*numbers((HEADS, 1, 1), 3), "d"))
        mask = self.file("m.npy", layers.npy((1, KV_LEN), [1] * 6 + [0], "?"))
        done = run(path, "--causal=top-left", "--prefix=3", "--softcap=30", "--alibi", "--bias=bias", "--mask", mask)
        self.assertEqual(done.returncode, 0, done.stderr)
        for pattern in (r"\nq +\[2, 4, 5, 8\] f32\n", r"\ngeometry +causal, prefix of 3; 144 visible pairs", r"\n--softcap +30\n",
                        r"\n--alibi +the standard slopes of 4 heads\n", r"\n--bias +\[4, 1, 1\] f64, narrowed to f32 of bias\n",
                        r"\n--mask +\[1, 7\] bool of .*m\.npy\n"):
            self.assertRegex(done.stdout, pattern)
        plain = run(path).stdout
        self.assertNotIn("--", plain)
        self.assertIn("\nq         [2, 4, 5, 8] f32\n", plain)

    def test_json_names(self):
        said = report(self.layer())
        self.assertEqual(list(said["options"]), ["softcap", "alibi", "bias", "mask", "sinks", "segments", "kv_segments"])
        self.assertEqual(set(said["options"].values()), {None})

    def test_help(self):
        text = run("--help").stdout
        for option in ("--softcap CAP", "--alibi [SLOPES]", "--bias ARRAY", "--mask ARRAY", "--sinks ARRAY", "--prefix N",
                       "--segments ARRAY", "--kv-segments ARRAY"):
            self.assertIn(option, text)


class Refusals(Options):
    def test_usage(self):
        path = self.layer()
        for message, args in [
            ("--softcap: 'x' is not a number", [path, "--softcap=x"]),
            ("--softcap: 'inf' is not a finite number", [path, "--softcap=inf"]),
            ("--softcap: '0' is not above 0", [path, "--softcap=0"]),
            ("--softcap: '-3' is not above 0", [path, "--softcap=-3"]),
            ("--softcap: '1e-60' is not above 0 in f32", [path, "--softcap=1e-60"]),
            ("--prefix: without --causal, or --window with a RIGHT", [path, "--prefix=3"]),
            ("--prefix: without --causal", [path, "--prefix=3", "--window=3,-1"]),
            ("--prefix", [path, "--prefix=-1", "--causal=top-left"]),
            ("--prefix", [path, "--prefix=x", "--causal=top-left"]),
            ("--kv-segments: without --segments", [path, "--kv-segments=s"]),
            ("--q-offset: without --window or --alibi", [path, "--q-offset=3", "--softcap=2"]),
            ("not 2 files; 'q.npy' was taken for the slopes of --alibi", ["--alibi", "q.npy", "k.npy", "v.npy"]),
            *[(option, [path, option, ""]) for option in ("--bias", "--mask", "--sinks", "--segments", "--kv-segments")],
        ]:
            self.refuse(2, message, *args)

    def test_where_arrays_are(self):
        path = self.layer(m=layers.npy(*flags((Q_LEN, KV_LEN), 3), "B"))
        for option in ("--bias", "--mask", "--sinks", "--segments", "--alibi"):
            self.refuse(3, option + " %s, array none: the archive has no entry 'none.npy'; this file has q.npy, k.npy, v.npy, m.npy"
                        % path, path, option, "none")
            self.refuse(3, option + " %s/none.npy: cannot be opened: No such file" % self.folder, path, option, self.folder / "none.npy")
            self.refuse(3, option + " none.npy: cannot be opened: No such file", path, option, "none.npy")
            self.refuse(3, option + " ./none: cannot be opened: No such file", path, option, "./none")
        bad = self.file("bad.npy", b"nothing")
        self.refuse(3, "--bias %s: not a .npy file" % bad, path, "--bias", bad)
        cut = self.file("cut.npy", layers.npy(*numbers((Q_LEN, KV_LEN), 3), "f")[:-1])
        self.refuse(3, "--bias %s: truncated" % cut, path, "--bias", cut)
        self.refuse(3, "--mask %s: not a .npy file" % path, path, "--mask", path)
        three = [self.file(name + ".npy", layers.npy(*array, "f")) for name, array in self.arrays.items()]
        self.refuse(3, "--mask m: cannot be opened", *three, "--mask", "m")

    def test_types(self):
        wrong = {"--bias": "?Biq", "--mask": "efdiq", "--sinks": "?Biq", "--alibi": "?Biq", "--segments": "?efd", "--kv-segments": "?efd"}
        offered = {"--mask": "'|b1' and '|u1' are", "--segments": "'|u1', '<i4' and '<i8' are", "--kv-segments": "'|u1', '<i4' and '<i8' are"}
        for option, codes in wrong.items():
            for code in codes:
                path = self.layer(x=layers.npy((1,), [0], code), ok=layers.npy((Q_LEN,), [0] * Q_LEN, "q"))
                before = ["--segments=ok"] if option == "--kv-segments" else []
                done = self.refuse(3, "%s %s, array x: type '" % (option, path), path, option, "x", *before)
                self.assertIn("' is not supported; " + offered.get(option, "'<f2', '<f4' and '<f8' are"), done.stderr)
        path = self.layer(x=layers.npy((1, 3), [0, 1e300, 0], "d"))
        for option in ("--bias", "--sinks"):
            self.arrays = trio((1, 3, 1, 8), (1, 1, 3, 8), (1, 1, 3, 3))
            path = self.layer(x=layers.npy((1, 3), [0, 1e300, 0], "d"))
            self.refuse(3, option + " %s, array x: element [0, 1] is 1e+300, which is beyond the range of f32" % path, path, option, "x")

    def test_shapes(self):
        for option, code, shape, wanted in [
            *[(option, code, shape, "it must be [q_len, kv_len], [heads, q_len, kv_len] or [batch, heads, q_len, kv_len], here [2, 4, 5, 7]")
              for option, code in (("--bias", "f"), ("--mask", "?"))
              for shape in ((), (7,), (1,), (5, 6), (4, 7), (2, 5, 7), (4, 1, 5), (2, 2, 5, 7), (3, 4, 5, 7), (1, 2, 4, 5, 7), (0, 7), (7, 5))],
            *[(option, "f", shape, "it must be [heads] or [batch, heads], here [2, 4]")
              for option in ("--sinks", "--alibi") for shape in ((), (2,), (5,), (4, 2), (3, 4), (1, 2, 4), (0,))],
            *[("--segments", "q", shape, "it must be [q_len] or [batch, q_len], here [2, 5], a batch of 1")
              for shape in ((), (1,), (7,), (2, 1), (3, 5), (1, 1, 5))],
        ]:
            path = self.layer(x=layers.npy(shape, [0] * math.prod(shape), code))
            self.refuse(3, "%s %s, array x: has shape [%s]; %s" % (option, path, ", ".join(map(str, shape)), wanted), path, option, "x")
        path = self.layer(x=layers.npy((Q_LEN,), [0] * Q_LEN, "q"))
        self.refuse(3, "--kv-segments %s, array x: has shape [5]; it must be [kv_len] or" % path, path, "--segments=x", "--kv-segments=x")
        self.refuse(3, "--segments: q and k differ in length (5 and 7), so the keys need --kv-segments", path, "--segments=x")

    def test_same_files(self):
        path = self.layer()
        bias = self.file("bias.npy", layers.npy((1, 1), [0], "f"))
        (self.folder / "link").symlink_to("bias.npy")
        for option in ("--out", "--lse"):
            for place in (bias, self.folder / "link"):
                self.refuse(2, "is the same file as the input --bias ", path, "--bias", bias, option, place)
        self.assertEqual(len(bias.read_bytes()), 128 + 4)


if __name__ == "__main__":
    unittest.main()

"""What the tests of `etalon attend` share: the tool (their first argument), its reports and files, attention in Python."""
import itertools
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import layers
import tool

TOOL = os.path.abspath(sys.argv.pop(1))
CODES = {"<f2": "e", "<f4": "f", "<f8": "d"}


def run(*args, preexec_fn=None, user=None, **variables):
    return subprocess.run([TOOL, "attend", *map(str, args)], env=tool.environment(variables), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=50, preexec_fn=preexec_fn, user=user)


def report(*args, **variables):
    done = run(*args, "--json", **variables)
    if done.returncode != 0:
        raise AssertionError("exit code %d: %s" % (done.returncode, done.stderr))
    return json.loads(done.stdout)


def tables():
    """Names of the kernel tables that can run here."""
    info = subprocess.run([TOOL, "info", "--json"], env=tool.environment({}), stdout=subprocess.PIPE, check=True)
    return [table["name"] for table in json.loads(info.stdout)["tables"] if table["available"]]


def parse(content):
    """(type, shape, values) of .npy bytes, which must be as numpy writes them."""
    descr, shape, data = layers.split_npy(content)
    count = math.prod(shape)
    code = CODES[descr]
    assert len(data) == count * struct.calcsize(code)
    return descr, shape, list(struct.unpack("<%d%s" % (count, code), data))


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return "fnv1a64:%016x" % value


def attention(q, k, v, left=-1, right=-1, offset=0, scale=None, prefix=0, cap=None, slope=None, bias=None, shows=None, sink=None):
    """(out, lse, visible pairs) of arrays (shape, values) with four dimensions, as flat lists. slope and sink are functions of
    batch and head, bias and shows of batch, head, row and key."""
    (batch, heads, q_len, head_dim), (_, kv_heads, kv_len, _), value_dim = q[0], k[0], v[0][3]
    scale = head_dim ** -0.5 if scale is None else scale
    out, lse, pairs = [], [], 0
    for b, h, i in itertools.product(range(batch), range(heads), range(q_len)):
        row = ((b * heads + h) * q_len + i) * head_dim
        kv_head = b * kv_heads + h // (heads // kv_heads)
        seen, scores = [], []
        for t in range(kv_len):
            distance = t - (i + offset)
            if (left >= 0 and distance < -left) or (right >= 0 and distance > right and t >= prefix):
                continue
            if (shows and not shows(b, h, i, t)) or (bias and bias(b, h, i, t) == -math.inf):
                continue
            key = (kv_head * kv_len + t) * head_dim
            s = scale * sum(q[1][row + c] * k[1][key + c] for c in range(head_dim))
            s = cap * math.tanh(s / cap) if cap else s
            s -= slope(b, h) * abs(distance) if slope else 0
            s += bias(b, h, i, t) if bias else 0
            seen.append(t)
            scores.append(s)
        pairs += len(seen)
        logits = scores + ([sink(b, h)] if sink else [])
        top = max(logits, default=-math.inf)
        total = sum(math.exp(s - top) for s in logits) if top > -math.inf else 0
        lse.append(top + math.log(total) if total else -math.inf)
        for c in range(value_dim):
            values = [v[1][(kv_head * kv_len + t) * value_dim + c] for t in seen]
            out.append(sum(math.exp(s - top) * x for s, x in zip(scores, values)) / total if seen else 0.0)
    return out, lse, pairs


def numbers(shape, a):
    """(shape, values) that are exact in f16 and below 1."""
    return tuple(shape), [((a * i) % 61 - 30) / 32 for i in range(math.prod(shape))]


def trio(q, k, v):
    return {"q": numbers(q, 7), "k": numbers(k, 11), "v": numbers(v, 13)}


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.out = self.folder / "out.npy"
        self.lse = self.folder / "lse.npy"

    def npz(self, name="layer.npz", **changes):
        return layers.write(self.folder / name, {**layers.small(), **changes})

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def both(self, *args, **variables):
        """The bytes of out and lse; the report's hashes must be theirs."""
        said = report(*args, "--out", self.out, "--lse", self.lse, **variables)
        files = self.out.read_bytes(), self.lse.read_bytes()
        for name, content in zip(("out", "lse"), files):
            kind, shape, values = parse(content)
            self.assertEqual(said[name]["shape"], list(shape))
            self.assertEqual(said[name]["type"], {"<f2": "f16", "<f4": "f32"}[kind])
            size = len(values) * struct.calcsize(CODES[kind])
            self.assertEqual(said[name]["hash"], fnv(content[-size:]))
        return files

    def check(self, path, arrays, options, **meaning):
        """The tool's result for the file with these arrays, {"q": (shape, values), ...}, against `attention`. Returns its pairs."""
        full = {name: ((1,) * (4 - len(shape)) + tuple(shape), values) for name, (shape, values) in arrays.items()}
        out, lse, pairs = attention(full["q"], full["k"], full["v"], **meaning)
        shape = arrays["q"][0]
        for kind, step in (("f32", 2.0**-24), ("f16", 2.0**-11)):
            files = self.both(path, "--out-type", kind, *options)
            for content, exact, dims, one in ((files[0], out, shape[:-1] + (arrays["v"][0][-1],), step),
                                              (files[1], lse, shape[:-1], 2.0**-24)):
                _, got_shape, got = parse(content)
                self.assertEqual(got_shape, dims)
                self.assertEqual(len(got), len(exact))
                for mine, truth in zip(got, exact):
                    if math.isinf(truth):
                        self.assertEqual(mine, truth)
                    else:
                        # Scores and values are below 16 here, and sums have at most 20 terms: 64 roundings of each.
                        self.assertLessEqual(abs(mine - truth), one * abs(truth) + 64 * 2.0**-24 * (1 + abs(truth)), options)
        return pairs

    def refuse(self, code, message, *args, **settings):
        """Both outputs are asked for, and neither may exist afterwards, nor anything else that was not there."""
        before = self.names()
        if "--out" not in args:
            args += ("--out", self.out)
        if "--lse" not in args:
            args += ("--lse", self.lse)
        with self.subTest(args=args):
            done = run(*args, **settings)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual(self.names(), before)
        return done

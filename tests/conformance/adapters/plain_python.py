"""The formula as it stands in a book, as an example of an adapter."""
import math

from arrays import indices, stored


class Adapter:
    name = "a book's formula"

    def __init__(self, settings):  # raise ImportError here if what you call is not installed
        self.version = "1"

    def supports(self, case):  # "" or why not
        return case.lacks({"scale", "mask"})

    def run(self, case):  # an exception is an answer too: it counts as a refusal
        q, k, v = (case.arrays[name] for name in "qkv")
        (heads, q_len, dim), (kv_heads, kv_len, value_dim) = q.shape, v.shape
        scale = case.options.get("scale", dim**-0.5)
        out = []
        for head, row in indices((heads, q_len)):
            of = head * kv_heads // heads
            scores = [scale * sum(q.at(head, row, c) * k.at(of, t, c) for c in range(dim)) for t in range(kv_len)]
            weights = [math.exp(s) for s in scores]
            if "mask" in case.options:
                weights = [w * case.arrays["mask"].at(head, row, t) for t, w in enumerate(weights)]
            out += [sum(w * v.at(of, t, c) for t, w in enumerate(weights)) / sum(weights) for c in range(value_dim)]
        return {"out": stored("f32", (heads, q_len, value_dim), out)}

"""PyTorch's flex_attention on a CPU, not compiled. What changes a score or hides a key is code of its caller, here in Etalon's order and alignment:
the cases show what can be said to it, and what becomes of rows without keys and of hidden NaN."""
import importlib
import warnings

import definition
from arrays import from_numpy, indices


class Adapter:
    name = "PyTorch flex_attention"
    function = "torch.nn.attention.flex_attention.flex_attention"

    def __init__(self, settings):
        self.torch, self.flex = importlib.import_module("torch"), importlib.import_module("torch.nn.attention.flex_attention")
        self.version = self.torch.__version__
        warnings.simplefilter("ignore")  # that it is slow

    def supports(self, case):
        return case.lacks({"scale", "softcap", "causal", "window", "prefix", "mask", "bias", "alibi", "segments"})

    def run(self, case):
        given, torch = case.options, self.torch
        t = {name: torch.from_numpy(array.numpy()) for name, array in case.arrays.items()}
        q, k, v = (t[name][None] for name in "qkv")
        heads, q_len, kv_len = q.shape[1], q.shape[2], k.shape[2]
        first, cap = definition.q_offset(given, q_len, kv_len), given.get("softcap")
        slopes = torch.tensor([definition.standard_slope(h, heads) for h in range(heads)]) if given.get("alibi") == "standard" else t.get("alibi")
        bias = t["bias"].expand(heads, q_len, kv_len) if "bias" in t else None
        more = {}

        def score_mod(s, b, h, i, j):
            s = s if cap is None else cap * torch.tanh(s / cap)
            s = s if slopes is None else s - slopes[h] * (j - (i + first)).abs()
            return s if bias is None else s + bias[h, i, j]

        if {"softcap", "alibi", "bias"} & given.keys():
            more["score_mod"] = score_mod
        if {"causal", "window", "mask", "segments"} & given.keys():
            shown = torch.tensor([definition.shown(case.arrays, given, h, i, j) for h, i, j in indices((heads, q_len, kv_len))])
            shown = shown.reshape(heads, q_len, kv_len)
            more["block_mask"] = self.flex.create_block_mask(lambda b, h, i, j: shown[h, i, j], None, heads, q_len, kv_len, device="cpu")
        with torch.inference_mode():
            out = self.flex.flex_attention(q, k, v, scale=given.get("scale"), enable_gqa=heads != k.shape[1], **more)
        return {"out": from_numpy(out[0].numpy())}

"""ONNX Runtime's own GroupQueryAttention, the operator of its language models. It is causal, and its rows are the last tokens of a cache."""
import importlib

from arrays import from_numpy
from onnx_session import Session


class Adapter:
    name = "ONNX Runtime GroupQueryAttention"
    function = "com.microsoft GroupQueryAttention, version 1"

    def __init__(self, settings):
        self.session = Session()
        self.version = self.session.version

    def supports(self, case):
        q_len, kv_len = case.arrays["q"].shape[1], case.arrays["k"].shape[1]
        # A last token sees all keys, whether causal or not.
        if q_len > kv_len or q_len > 1 and ("causal" not in case.options or q_len < kv_len and case.options["causal"] != "bottom-right"):
            return "is causal, bottom-right"
        return case.lacks({"scale", "softcap", "causal", "window", "bias", "sinks"})

    def run(self, case):
        numpy = importlib.import_module("numpy")
        arrays = {name: array.numpy() for name, array in case.arrays.items()}
        (heads, q_len, _), (kv_heads, kv_len, _) = case.arrays["q"].shape, case.arrays["k"].shape
        past, bias = kv_len - q_len, arrays.get("bias")
        rows = [x.transpose(1, 0, 2).reshape(1, q_len, -1) for x in (arrays["q"], arrays["k"][:, past:], arrays["v"][:, past:])]
        cache = [arrays[name][None, :, :past] for name in "kv"]
        attributes = {name: case.options[name] for name in ("scale", "softcap") if name in case.options}
        if "window" in case.options:
            attributes["local_window_size"] = case.options["window"][0] + 1  # it counts the row's own token
        inputs = [*rows, *cache, numpy.array([kv_len - 1], numpy.int32), numpy.array(kv_len, numpy.int32), None, None, None,
                  None if bias is None else bias.reshape((1,) * (4 - bias.ndim) + bias.shape), arrays.get("sinks")]
        out = self.session.run("GroupQueryAttention", "com.microsoft", 25, {"num_heads": heads, "kv_num_heads": kv_heads, **attributes}, inputs, 3)
        return {"out": from_numpy(out.reshape(q_len, heads, -1).transpose(1, 0, 2).copy())}

"""PyTorch's scaled_dot_product_attention with an object for a mask: causal_lower_right or causal_upper_left, as the case asks."""
import importlib

from arrays import from_numpy


class Adapter:
    name = "PyTorch SDPA, causal bias"
    function = "torch.nn.functional.scaled_dot_product_attention(attn_mask=torch.nn.attention.bias.causal_lower_right(...))"

    def __init__(self, settings):
        self.torch, self.bias = importlib.import_module("torch"), importlib.import_module("torch.nn.attention.bias")
        self.version = self.torch.__version__

    def supports(self, case):
        return case.lacks({"scale", "causal"}) if "causal" in case.options else "is causal, and elsewhere as without"

    def run(self, case):
        q, k, v = (self.torch.from_numpy(case.arrays[name].numpy())[None] for name in "qkv")
        mask = {"bottom-right": self.bias.causal_lower_right, "top-left": self.bias.causal_upper_left}[case.options["causal"]]
        with self.torch.inference_mode():
            out = self.torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask(q.shape[2], k.shape[2]), scale=case.options.get("scale"), enable_gqa=q.shape[1] != k.shape[1])
        return {"out": from_numpy(out[0].numpy())}

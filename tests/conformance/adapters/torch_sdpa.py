"""PyTorch's scaled_dot_product_attention on a CPU. What it hides it takes from one mask, of bool or of numbers."""
import importlib

from arrays import from_numpy


class Adapter:
    name = "PyTorch SDPA"
    function = "torch.nn.functional.scaled_dot_product_attention"

    def __init__(self, settings):
        self.torch = importlib.import_module("torch")
        self.version = self.torch.__version__

    def supports(self, case):
        if "mask" in case.options and "bias" in case.options:
            return "has one mask"
        return case.lacks({"scale", "causal", "mask", "bias"})

    def run(self, case):
        tensors = {name: self.torch.from_numpy(array.numpy()) for name, array in case.arrays.items()}
        q, k, v = (tensors[name][None] for name in "qkv")
        with self.torch.inference_mode():
            out = self.torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=tensors.get("mask", tensors.get("bias")), is_causal="causal" in case.options,
                scale=case.options.get("scale"), enable_gqa=q.shape[1] != k.shape[1])
        return {"out": from_numpy(out[0].numpy())}

"""The operator Attention of ONNX (opset 25, which has windows) in ONNX Runtime."""
from arrays import from_numpy
from onnx_session import Session

OPSET = 25


class Adapter:
    name = "ONNX Runtime Attention-%d" % OPSET
    function = "ai.onnx Attention, opset %d" % OPSET

    def __init__(self, settings):
        self.session = Session()
        self.version = self.session.version

    def supports(self, case):
        if "mask" in case.options and "bias" in case.options:
            return "has one mask"
        return case.lacks({"scale", "softcap", "causal", "window", "mask", "bias"})

    def run(self, case):
        arrays = {name: array.numpy() for name, array in case.arrays.items()}
        attributes = {name: case.options[name] for name in ("scale", "softcap") if name in case.options}
        if "causal" in case.options:
            attributes["is_causal"] = 1
        for name, size in zip(("left_window_size", "right_window_size"), case.options.get("window", ())):
            if size >= 0:
                attributes[name] = size
        mask = arrays.get("mask", arrays.get("bias"))
        if mask is not None and mask.ndim == 3:
            mask = mask[None]
        inputs = [*(arrays[name][None] for name in "qkv"), *([] if mask is None else [mask])]
        return {"out": from_numpy(self.session.run("Attention", "", OPSET, attributes, inputs, 1)[0])}

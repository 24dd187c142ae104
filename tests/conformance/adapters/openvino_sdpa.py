"""OpenVINO's ScaledDotProductAttention (opset 13) on its CPU plugin, with the sixth input, sinks, that its Python function leaves out."""
import importlib

from arrays import from_numpy


class Adapter:
    name = "OpenVINO SDPA-13"
    function = "ScaledDotProductAttention of opset13"

    def __init__(self, settings):
        self.ov, self.op = importlib.import_module("openvino"), importlib.import_module("openvino.opset13")
        self.factory = importlib.import_module("openvino.utils.node_factory").NodeFactory("opset13")
        self.version = self.ov.__version__.split("-")[0]

    def supports(self, case):
        if "mask" in case.options and "bias" in case.options:
            return "has one mask"
        return case.lacks({"scale", "causal", "mask", "bias", "sinks"})

    def run(self, case):
        numpy = importlib.import_module("numpy")
        arrays = {name: array.numpy() for name, array in case.arrays.items()}
        qkv = [arrays[name][None] for name in "qkv"]
        kind = qkv[0].dtype.type
        parameters = [self.op.parameter(x.shape, self.ov.Type(x.dtype)) for x in qkv]
        mask = arrays.get("mask", arrays.get("bias"))
        more = [mask, kind(case.options["scale"]) if "scale" in case.options else None,
                arrays["sinks"].reshape(1, -1, 1, 1) if "sinks" in arrays else None]
        instead = [numpy.zeros((), kind), kind(qkv[0].shape[3]**-0.5)]  # an input before one that is given cannot be left out
        last = max((i for i, x in enumerate(more) if x is not None), default=-1)
        constants = [self.op.constant(instead[i] if x is None else x) for i, x in enumerate(more[:last + 1])]
        node = self.factory.create("ScaledDotProductAttention", [x.output(0) for x in parameters + constants],
                                   {"causal": "causal" in case.options})
        model = self.ov.Model([node], parameters, "attention")
        out = self.ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(qkv)[0]
        return {"out": from_numpy(numpy.array(out[0]))}

"""One operator of ONNX in a session of ONNX Runtime, for the adapters that have one."""
import importlib


class Session:
    def __init__(self):
        self.runtime, self.onnx = importlib.import_module("onnxruntime"), importlib.import_module("onnx")
        self.version = self.runtime.__version__

    def run(self, op, domain, opset, attributes, inputs, outputs):
        """The first output. inputs are numpy's arrays, None where one is left out."""
        helper = self.onnx.helper
        names = ["" if x is None else "in%d" % i for i, x in enumerate(inputs)]
        given = {name: x for name, x in zip(names, inputs) if x is not None}
        results = ["out%d" % i for i in range(outputs)]
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in given.items()]
        kind = helper.np_dtype_to_tensor_dtype(inputs[0].dtype)
        graph = helper.make_graph([helper.make_node(op, names, results, domain=domain, **attributes)], "attention", infos,
                                  [helper.make_tensor_value_info(name, kind, None) for name in results])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)], ir_version=11)
        options = self.runtime.SessionOptions()
        options.log_severity_level = 4
        try:
            return self.runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(results[:1], given)[0]
        except Exception as problem:
            raise RuntimeError(str(problem).split("Status Message: ")[-1]) from problem

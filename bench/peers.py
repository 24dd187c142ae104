#!/usr/bin/env python3
"""Times Etalon beside other attention implementations, in turn, on one thread of one CPU.

    python3 bench/peers.py [--lib LIBETALON.so] [--cases REGEX] [--rounds N] [--json FILE]
    python3 bench/peers.py --self-check LIB     Etalon through ctypes against plain Python; needs the standard library alone

Needs numpy; each of the others that cannot be imported is printed as "?". bench/README.md#beside-others has how to install and read it.

What is done so that a comparison says something:
- One CPU, chosen before anything is imported, so that no thread pool has a second thread; one thread is asked for as well.
- Each implementation may offer several ways to the same result ("ways"). All are warmed up, checked against f64 on sampled rows and tried
  out (best of three calls); a wrong one is thrown out and named. Those within 1.4 times the fastest are timed, and the one with the smallest
  median stands for the implementation.
- Inputs and outputs are allocated before, laid out as the way likes best, and handed over without a copy. What a way does inside its call
  (transposing, copying into a cache of its own) is its time.
- A round times all of them one after the other; each gives a ratio to Etalon's time of the same round.
- Time is CPU time of the process: with one thread on one CPU it is wall time less what other programs took. --json has both.
"""

import argparse
import ctypes
import dataclasses
import functools
import gc
import importlib
import json
import math
import os
import pathlib
import platform
import re
import statistics
import struct
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLOSE = 1.4  # a way that took longer than this times the fastest one when tried out is not timed any more
MAX_ERROR = {"f32": 1e-4, "f16": 1e-2}  # relative RMS; beyond it a way is wrong, not inaccurate

# ------------------------------------------------------------------------------------------------- etalon.h in ctypes

OK, F32, F16 = 0, 1, 2


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("field", ctypes.c_char * 60), ("text", ctypes.c_char * 192)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * 5),
                ("stride_bytes", ctypes.c_int64 * 5), ("reserved", ctypes.c_ubyte * 32)]


class Workspace(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Plan(ctypes.Structure):
    _fields_ = [("opaque", ctypes.c_uint64 * 128)]


class AttentionDesc(ctypes.Structure):
    _fields_ = ([("struct_size", ctypes.c_size_t)]
                + [(name, ctypes.c_int64) for name in ("num_q_heads", "num_kv_heads", "head_dim", "value_dim", "max_batch", "max_q_len",
                                                       "max_kv_len")]
                + [(name, ctypes.c_int32) for name in ("q_dtype", "k_dtype", "v_dtype", "out_dtype")]
                + [("left", ctypes.c_int64), ("right", ctypes.c_int64), ("scale", ctypes.c_float), ("softcap", ctypes.c_float),
                   ("math", ctypes.c_int32), ("max_workers", ctypes.c_int32), ("options", ctypes.c_uint32),
                   ("num_sources", ctypes.c_int32), ("target", ctypes.c_char_p)])


class AttentionArgs(ctypes.Structure):
    _fields_ = ([("struct_size", ctypes.c_size_t)]
                + [(name, ctypes.POINTER(Tensor)) for name in ("q", "k", "v", "out", "lse")]
                + [("q_offset", ctypes.c_int64)]
                + [(name, ctypes.POINTER(ctypes.c_int64)) for name in ("q_offsets", "q_lens", "kv_lens")]
                + [(name, ctypes.POINTER(Tensor)) for name in ("slopes", "bias", "mask", "sinks")]
                + [(name, ctypes.c_void_p) for name in ("kv_firsts", "prefix_lens")]
                + [("num_sequences", ctypes.c_int64)]
                + [(name, ctypes.c_void_p) for name in ("q_starts", "kv_starts", "prepared_mask", "more_sources", "places")])


class PlanInfo(ctypes.Structure):
    _fields_ = ([("struct_size", ctypes.c_size_t), ("target", ctypes.c_char_p), ("math", ctypes.c_int32), ("max_workers", ctypes.c_int32),
                 ("workspace_bytes", ctypes.c_size_t)]
                + [(name, ctypes.c_int64) for name in ("tile_rows", "num_tasks", "key_splits", "key_tiles", "bytes_read")])


STRUCTS = {"etalon_error": Error, "etalon_tensor": Tensor, "etalon_workspace": Workspace, "etalon_plan": Plan,
           "etalon_attention_desc": AttentionDesc, "etalon_attention_args": AttentionArgs, "etalon_plan_info": PlanInfo}


class Etalon:
    """The library, as much of it as is needed here."""

    def __init__(self, path, target=None):
        self.lib = ctypes.CDLL(str(path))
        self.target = target.encode() if target else None
        p = ctypes.POINTER
        for name, result, arguments in [
                ("etalon_version", ctypes.c_char_p, []),
                ("etalon_arithmetic_version", ctypes.c_int32, []),
                ("etalon_tensor_init", ctypes.c_int32, [p(Tensor), ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, p(ctypes.c_int64), p(Error)]),
                ("etalon_attention_desc_init", ctypes.c_int32, [p(AttentionDesc), ctypes.c_size_t]),
                ("etalon_attention_args_init", ctypes.c_int32, [p(AttentionArgs), ctypes.c_size_t]),
                ("etalon_plan_info_init", ctypes.c_int32, [p(PlanInfo), ctypes.c_size_t]),
                ("etalon_plan_init", ctypes.c_int32, [p(Plan), p(AttentionDesc), p(Error)]),
                ("etalon_plan_workspace_bytes", ctypes.c_size_t, [p(Plan)]),
                ("etalon_plan_get_info", ctypes.c_int32, [p(Plan), p(AttentionArgs), p(PlanInfo), p(Error)]),
                ("etalon_execute", ctypes.c_int32, [p(Plan), p(AttentionArgs), p(Workspace), ctypes.c_void_p, p(Error)])]:
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments

    def version(self):
        return self.lib.etalon_version().decode()

    def arithmetic_version(self):
        return self.lib.etalon_arithmetic_version()

    def attention(self, q, k, v, out, causal=False, q_offset=0):
        """A call without arguments that computes, and the name of its kernel table. q ... are (address, dtype, [batch, heads, len, dim])
        of packed arrays, which the caller keeps alive."""
        error = Error()

        def require(status):
            if status != OK:
                raise RuntimeError(error.text.decode() or f"status {status}")

        tensors = [Tensor() for _ in range(4)]
        for tensor, (address, dtype, shape) in zip(tensors, (q, k, v, out)):
            require(self.lib.etalon_tensor_init(tensor, address, dtype, 4, (ctypes.c_int64 * 4)(*shape), error))
        desc, args, plan, info = AttentionDesc(), AttentionArgs(), Plan(), PlanInfo()
        require(self.lib.etalon_attention_desc_init(desc, ctypes.sizeof(desc)))
        require(self.lib.etalon_attention_args_init(args, ctypes.sizeof(args)))
        require(self.lib.etalon_plan_info_init(info, ctypes.sizeof(info)))
        desc.max_batch, desc.num_q_heads, desc.max_q_len, desc.head_dim = q[2]
        desc.num_kv_heads, desc.max_kv_len, desc.value_dim = v[2][1:]
        desc.q_dtype, desc.k_dtype, desc.v_dtype, desc.out_dtype = q[1], k[1], v[1], out[1]
        desc.max_workers = 1
        desc.target = self.target
        if causal:
            desc.right = 0
        args.q, args.k, args.v, args.out = (ctypes.pointer(t) for t in tensors)
        args.q_offset = q_offset
        require(self.lib.etalon_plan_init(plan, desc, error))
        require(self.lib.etalon_plan_get_info(plan, args, info, error))
        size = self.lib.etalon_plan_workspace_bytes(plan)
        memory = ctypes.create_string_buffer(size + 63)
        workspace = Workspace((ctypes.addressof(memory) + 63) // 64 * 64, size)
        execute = self.lib.etalon_execute
        pointers = [ctypes.byref(x) for x in (plan, args, workspace)] + [None, ctypes.byref(error)]

        def call(_keep=(tensors, memory)):  # alive as long as the call is
            if execute(*pointers) != OK:
                raise RuntimeError(error.text.decode())

        return call, info.target.decode()


def layout_faults():
    """Fields of STRUCTS that are not where tests/api/abi_test.c, which the compiler checks against etalon.h, has them."""
    text = (ROOT / "tests/api/abi_test.c").read_text(encoding="utf-8")
    faults = []
    for name, cls in STRUCTS.items():
        want = {(field, int(offset), int(size)) for field, offset, size in re.findall(rf"\bFIELD\({name}, (\w+), (\d+), (\d+)\)", text)}
        want.add(("sizeof", 0, int(re.search(rf"\bSIZE\({name}, (\d+)\)", text).group(1))))
        got = {(field, getattr(cls, field).offset, getattr(cls, field).size) for field, _ in cls._fields_}
        got.add(("sizeof", 0, ctypes.sizeof(cls)))
        faults += [f"{name}: (field, offset, size) {at} is in one of bench/peers.py and tests/api/abi_test.c only" for at in sorted(want ^ got)]
    return faults


def self_check(path):
    faults = layout_faults()
    if faults:
        print("\n".join(faults))
        return 1
    etalon = Etalon(path)
    for heads, kv_heads, q_len, kv_len, dim, causal, kv_type in [(2, 2, 3, 3, 8, False, "f"), (4, 2, 5, 7, 8, True, "f"),
                                                                 (6, 2, 1, 130, 16, False, "e")]:
        state = 1

        def numbers(count):
            nonlocal state
            for _ in range(count):
                state = state * 1103515245 + 12345 & 0x7FFFFFFF
                yield (state >> 16) % 4096 / 1024 - 2  # exact in f16

        q, k, v = (list(numbers(n)) for n in (heads * q_len * dim, kv_heads * kv_len * dim, kv_heads * kv_len * dim))
        buffers = [ctypes.create_string_buffer(struct.pack(f"{len(x)}{t}", *x)) for x, t in ((q, "f"), (k, kv_type), (v, kv_type))]
        out = (ctypes.c_float * len(q))()
        kv_dtype, kv_shape = {"f": F32, "e": F16}[kv_type], [1, kv_heads, kv_len, dim]
        addresses = [ctypes.addressof(b) for b in buffers]
        q_shape = [1, heads, q_len, dim]
        call, target = etalon.attention((addresses[0], F32, q_shape), (addresses[1], kv_dtype, kv_shape), (addresses[2], kv_dtype, kv_shape),
                                        (ctypes.addressof(out), F32, q_shape), causal, kv_len - q_len)
        call()
        worst = 0
        for head in range(heads):
            first = head // (heads // kv_heads) * kv_len
            for row in range(q_len):
                at = (head * q_len + row) * dim
                seen = range(kv_len - q_len + row + 1 if causal else kv_len)
                scores = [sum(q[at + c] * k[(first + t) * dim + c] for c in range(dim)) / math.sqrt(dim) for t in seen]
                weights = [math.exp(s - max(scores)) for s in scores]
                for c in range(dim):
                    exact = sum(w * v[(first + t) * dim + c] for t, w in zip(seen, weights)) / sum(weights)
                    worst = max(worst, abs(out[at + c] - exact))
        print(f"{target}: {heads}/{kv_heads} heads, {q_len} queries, {kv_len} keys, {dim} channels: off by {worst:.1e} at most")
        if not worst < 1e-5:
            print("that is too much: etalon computes something else than bench/peers.py asks for")
            return 1
    return 0


# --------------------------------------------------------------------------------------------------------------- cases


@dataclasses.dataclass
class Case:
    name: str
    q_heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    dim: int
    causal: bool = False
    kv: str = "f32"

    @property
    def group(self):
        return self.q_heads // self.kv_heads

    def rate(self, seconds):
        if self.q_len == 1:
            return f"{2 * self.kv_heads * self.kv_len * self.dim * (4 if self.kv == 'f32' else 2) / seconds / 1e9:.1f} GB/s"
        pairs = self.q_len * (self.q_len + 1) / 2 if self.causal else self.q_len * self.kv_len
        return f"{4 * self.dim * pairs * self.q_heads / seconds / 1e9:.1f} GFLOP/s"


CASES = [
    Case("prefill/full/h8_n2048_d128", 8, 8, 2048, 2048, 128),
    Case("prefill/full/h8_n2048_d64", 8, 8, 2048, 2048, 64),
    Case("prefill/causal/h8_n2048_d128", 8, 8, 2048, 2048, 128, causal=True),
    Case("prefill/full/h8_n512_d64", 8, 8, 512, 512, 64),
    # From DRAM: keys and values are 128 MiB, then 64 MiB. A core that has as much L3 to itself needs longer ones.
    Case("decode/f32/h8_kv16384_d128", 8, 8, 1, 16384, 128),
    Case("decode/f32/h32_8_kv8192_d128", 32, 8, 1, 8192, 128),
    Case("decode/f16/h8_kv16384_d128", 8, 8, 1, 16384, 128, kv="f16"),
    Case("decode/f16/h32_8_kv16384_d128", 32, 8, 1, 16384, 128, kv="f16"),
]


class Data:
    """Standard-normal inputs of a case, [1, heads, len, dim]; with f16 keys all of them are exact in f16, so every way gets equal numbers."""

    def __init__(self, case):
        np = importlib.import_module("numpy")
        rng = np.random.default_rng(1)
        stored = np.float16 if case.kv == "f16" else np.float32

        def normal(heads, length):
            return rng.standard_normal((1, heads, length, case.dim), dtype=np.float32).astype(stored)

        self.q = normal(case.q_heads, case.q_len).astype(np.float32)
        self.k, self.v = normal(case.kv_heads, case.kv_len), normal(case.kv_heads, case.kv_len)
        count = min(64, case.q_heads * case.q_len)
        self.rows = [divmod(int(i), case.q_len) for i in rng.choice(case.q_heads * case.q_len, count, replace=False)]
        self.exact = []
        for head, row in self.rows:
            keys = slice(0, row + 1 if case.causal else case.kv_len)
            k, v = (x[0, head // case.group, keys].astype(np.float64) for x in (self.k, self.v))
            scores = k @ self.q[0, head, row].astype(np.float64) / math.sqrt(case.dim)
            weights = np.exp(scores - scores.max())
            self.exact.append(weights @ v / weights.sum())

    def error(self, out):
        """Relative RMS error of the sampled rows of out [heads, len, dim]."""
        np = importlib.import_module("numpy")
        got = np.array([out[head, row] for head, row in self.rows], np.float64)
        return float(np.sqrt(((got - self.exact) ** 2).sum() / np.square(self.exact).sum()))


def folded(q, case):
    """Queries of one token with the group as rows, [1, kv_heads, group, dim]: the same attention without GQA. A view."""
    return q.reshape(1, case.kv_heads, case.group, case.dim)


# ------------------------------------------------------------------------------------------------------ implementations
# Each class has a name, a version(), and ways(case, data), which yields (name, make) with make() -> Way.


@dataclasses.dataclass
class Way:
    call: object  # what is timed
    output: object  # () -> the result of the last call, [heads, len, dim]
    keep: object = None  # memory that call uses by address: alive as long as this
    restore: object = None  # done before a sample, not timed


class EtalonWay:
    """The C interface: a plan made once, etalon_execute with the plan's workspace. ctypes takes a few microseconds of each call."""

    name = "etalon"

    def __init__(self, path, target):
        self.etalon = Etalon(path, target)
        self.table = "?"

    def version(self):
        return f"{self.etalon.version()}, arithmetic {self.etalon.arithmetic_version()}"

    def ways(self, case, data):
        np = importlib.import_module("numpy")

        def make():
            out = np.zeros(data.q.shape, np.float32)
            dtypes = {np.dtype(np.float32): F32, np.dtype(np.float16): F16}
            call, self.table = self.etalon.attention(*((x.ctypes.data, dtypes[x.dtype], x.shape) for x in (data.q, data.k, data.v, out)), case.causal)
            return Way(call, lambda: out[0], (data, out))

        yield "plan", make


class TorchWay:
    """scaled_dot_product_attention under inference_mode; on a CPU it takes its flash kernel. Tensors share numpy's memory. It has no out=,
    so it allocates its result each time. It wants one type for all: with f16 keys its queries and result are f16 as well."""

    name = "torch"

    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.torch.set_num_threads(1)
        self.torch.set_grad_enabled(False)

    def version(self):
        return f"{self.torch.__version__}, {self.torch.backends.cpu.get_cpu_capability()}"

    def ways(self, case, data):
        def make(q, **options):
            tensors = [self.torch.from_numpy(x) for x in (q.astype(data.k.dtype), data.k, data.v)]
            sdpa = self.torch.nn.functional.scaled_dot_product_attention
            last = [None]

            def call():
                with self.torch.inference_mode():
                    last[0] = sdpa(*tensors, is_causal=case.causal, **options)

            return Way(call, lambda: last[0].numpy().reshape(data.q.shape[1:]), data)

        if case.group == 1:
            yield "sdpa", functools.partial(make, data.q)
        else:
            yield "sdpa enable_gqa", functools.partial(make, data.q, enable_gqa=True)
            yield "sdpa, group as rows", functools.partial(make, folded(data.q, case))


class OpenVinoWay:
    """opset13 scaled_dot_product_attention, one infer request with input and output tensors on numpy's memory, latency hint, one thread.
    Without a state the CPU plugin takes the operation apart; with a KV cache as state it runs its attention node, as in its language models.
    So both are tried, and a plain matmul, softmax, matmul too. With a state, a prompt resets it in the timed part and its keys are copied
    into the cache. Decode begins with all keys but one in the state and appends one each call; before keys are 1 % more than the case
    says, the state is set anew, not timed."""

    name = "openvino"

    def __init__(self):
        self.np = importlib.import_module("numpy")
        self.ov = importlib.import_module("openvino")
        self.op = importlib.import_module("openvino.opset13")
        self.core = self.ov.Core()

    def version(self):
        return self.ov.__version__

    def compiled(self, model, arrays, out, **options):
        settings = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32",
                    "ENABLE_CPU_PINNING": False}  # pinned already
        request = self.core.compile_model(model, "CPU", {**settings, **options}).create_infer_request()
        for i, array in enumerate(arrays):
            request.set_input_tensor(i, self.ov.Tensor(array, shared_memory=True))
        request.set_output_tensor(0, self.ov.Tensor(out, shared_memory=True))
        return request

    def stateless(self, case, data, q, fused):
        op, f32 = self.op, self.ov.Type.f32
        out = self.np.zeros(q.shape, self.np.float32)
        inputs = [op.parameter(x.shape, f32) for x in (q, data.k, data.v)]
        if fused:
            result = op.scaled_dot_product_attention(*inputs, causal=case.causal)
        else:
            scaled = op.multiply(inputs[0], op.constant(self.np.float32(1 / math.sqrt(case.dim))))
            result = op.matmul(op.softmax(op.matmul(scaled, inputs[1], False, True), -1), inputs[2], False, False)
        request = self.compiled(self.ov.Model([result], inputs, "attention"), (q, data.k, data.v), out)
        return Way(request.infer, lambda: out.reshape(data.q.shape[1:]), (q, data, out))

    def stateful(self, case, data):
        np, op, f32 = self.np, self.op, self.ov.Type.f32
        opset6 = importlib.import_module("openvino.opset6")
        util = importlib.import_module("openvino.op.util")
        shape = self.ov.PartialShape([-1, case.kv_heads, -1, case.dim])
        query = op.parameter(self.ov.PartialShape([-1, case.q_heads, -1, case.dim]), f32)
        new = [op.parameter(shape, f32) for _ in "kv"]
        beams = op.parameter(self.ov.PartialShape([-1]), self.ov.Type.i32)
        assigned, seen = [], []
        for name, tokens in zip("kv", new):
            info = util.VariableInfo()
            info.data_shape, info.data_type, info.variable_id = shape, f32, name
            variable = util.Variable(info)
            batch = op.gather(op.shape_of(tokens), op.constant(np.array([0])), op.constant(0))
            nothing = op.broadcast(op.constant(np.float32(0)), op.concat([batch, op.constant(np.array([case.kv_heads, 0, case.dim]))], 0))
            past = op.gather(opset6.read_value(nothing, variable), beams, op.constant(np.int64(0)))
            present = op.concat([past, tokens], 2)
            assigned.append(opset6.assign(present, variable))
            if case.group > 1:  # the form of GQA that the plugin fuses: nothing is expanded in memory
                ones = op.constant(np.ones((1, 1, case.group, 1, 1), np.float32))
                present = op.reshape(op.multiply(op.unsqueeze(present, op.constant(np.int64(2))), ones),
                                     op.constant(np.array([0, case.q_heads, -1, case.dim])), True)
            seen.append(present)
        result = op.result(op.scaled_dot_product_attention(query, *seen, causal=case.causal))
        model = self.ov.Model([result], assigned, [query, *new, beams], "attention")
        out = np.zeros(data.q.shape, np.float32)
        first = case.kv_len - 1 if case.q_len == 1 else 0
        arrays = [data.q, *(np.ascontiguousarray(x[:, :, first:], np.float32) for x in (data.k, data.v)), np.zeros(1, np.int32)]
        request = self.compiled(model, arrays, out, KV_CACHE_PRECISION=case.kv)
        if case.q_len > 1:
            def prompt():
                request.reset_state()
                request.infer()

            return Way(prompt, lambda: out[0], (arrays, out))
        count = [case.kv_len]

        def restore():
            if count[0] < case.kv_len // 100:
                return
            for state in request.query_state():
                state.state = self.ov.Tensor(np.ascontiguousarray({"k": data.k, "v": data.v}[state.name][:, :, :first], np.float32))
            request.infer()
            count[0] = 1

        def step():
            request.infer()
            count[0] += 1

        return Way(step, lambda: out[0], (arrays, out), restore)

    def ways(self, case, data):
        if case.kv == "f32":
            rows = data.q if case.group == 1 else folded(data.q, case)
            note = "" if case.group == 1 else ", group as rows"
            yield "sdpa" + note, lambda: self.stateless(case, data, rows, True)
            if not case.causal:
                yield "matmul softmax matmul" + note, lambda: self.stateless(case, data, rows, False)
        yield "sdpa with state", lambda: self.stateful(case, data)


class OnnxRuntimeWay:
    """Three operations: Attention of ONNX opset 23, com.microsoft MultiHeadAttention with keys as [batch, len, heads dim] (where it may take
    its flash kernel) or [batch, heads, len, dim], and GroupQueryAttention, which is causal and in decode appends the last key to the cache in
    place. Inputs and output are bound to numpy's memory. f16 keys: its queries and result are f16 as well."""

    name = "onnxruntime"

    def __init__(self):
        self.np = importlib.import_module("numpy")
        self.ort = importlib.import_module("onnxruntime")
        self.onnx = importlib.import_module("onnx")

    def version(self):
        return self.ort.__version__

    def made(self, op, attributes, inputs, outputs, as_heads, domain=""):
        """A session of this one node. inputs may have None for what is left out; as_heads(outputs[0]) is [heads, len, dim]."""
        helper = self.onnx.helper

        def info(name, x):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)

        names = ["" if x is None else f"in{i}" for i, x in enumerate(inputs)]
        bound = [(name, x) for name, x in zip(names, inputs) if x is not None]
        results = [(f"out{i}", x) for i, x in enumerate(outputs)]
        node = helper.make_node(op, names, [name for name, _ in results], domain=domain, **attributes)
        graph = helper.make_graph([node], "attention", [info(*x) for x in bound], [info(*x) for x in results])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)], ir_version=11)
        options = self.ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = self.ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for bind, arrays in ((binding.bind_input, bound), (binding.bind_output, results)):
            for name, x in arrays:
                bind(name, "cpu", 0, x.dtype.type, x.shape, x.ctypes.data)

        return Way(lambda: session.run_with_iobinding(binding), lambda: as_heads(outputs[0]), (inputs, outputs))

    def ways(self, case, data):
        np = self.np
        k, v = data.k, data.v
        q = data.q.astype(k.dtype)

        def joined(x):  # [1, heads, len, dim] -> [1, len, heads dim]
            return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(1, x.shape[2], -1)

        def split(x):
            return x[0].reshape(case.q_len, case.q_heads, case.dim).transpose(1, 0, 2)

        causal = int(case.causal)
        yield "Attention-23", lambda: self.made("Attention", {"is_causal": causal}, [q, k, v], [np.zeros_like(q)], lambda x: x[0])
        if case.kv == "f32":
            rows = q if case.group == 1 else folded(q, case)
            note = "" if case.group == 1 else ", group as rows"

            def heads_of_rows(x):
                return x[0].reshape(rows.shape[2], rows.shape[1], case.dim).transpose(1, 0, 2).reshape(data.q.shape[1:])

            for layout, keys in (("[b, len, heads dim]", lambda: [joined(k), joined(v)]), ("[b, heads, len, dim]", lambda: [k, v])):
                yield f"MultiHeadAttention {layout}{note}", lambda keys=keys: self.made(
                    "MultiHeadAttention", {"num_heads": case.kv_heads, "unidirectional": causal}, [joined(rows), *keys()],
                    [np.zeros_like(joined(rows))], heads_of_rows, "com.microsoft")
        attributes = {"num_heads": case.q_heads, "kv_num_heads": case.kv_heads}
        lengths = [np.array([case.kv_len - 1], np.int32), np.array(case.kv_len, np.int32)]
        if case.causal:
            yield "GroupQueryAttention", lambda: self.made(
                "GroupQueryAttention", attributes, [joined(q), joined(k), joined(v), None, None, *lengths],
                [np.zeros_like(joined(q)), np.zeros_like(k), np.zeros_like(v)], split, "com.microsoft")
        elif case.q_len == 1:
            yield "GroupQueryAttention", lambda: self.made(  # past and present are the same memory: the last key is written over itself
                "GroupQueryAttention", attributes, [joined(q), joined(k[:, :, -1:]), joined(v[:, :, -1:]), k, v, *lengths],
                [np.zeros_like(joined(q)), k, v], split, "com.microsoft")


class NumpyWay:
    """What one writes without any library for it: matmul, softmax in place, matmul, divided last, into buffers made before. All heads at once,
    head by head, and 256 rows at a time, which skips what a causal mask hides."""

    name = "numpy"

    def __init__(self):
        self.np = importlib.import_module("numpy")

    def version(self):
        try:
            blas = self.np.show_config(mode="dicts")["Build Dependencies"]["blas"]
            return f"{self.np.__version__}, {blas['name']} {blas['version']}"
        except (KeyError, TypeError):
            return self.np.__version__

    def ways(self, case, data):
        np = self.np
        if case.kv != "f32":
            return  # its matmul of f16 is not BLAS's
        q = folded(data.q, case)[0] if case.q_len == 1 else data.q[0]
        keys, values = data.k[0].swapaxes(1, 2), data.v[0]
        scale = np.float32(1 / math.sqrt(case.dim))
        hidden = ~np.tri(case.q_len, case.kv_len, dtype=bool) if case.causal else None

        def make(heads, step):
            scaled, out = np.zeros_like(q), np.zeros_like(q)
            rows = q.shape[1]
            buffer = np.zeros(heads * min(step, rows) * case.kv_len, np.float32)

            def call():
                np.multiply(q, scale, out=scaled)
                for head in range(0, case.kv_heads, heads):
                    h = slice(head, head + heads)
                    for first in range(0, rows, step):
                        r = slice(first, min(first + step, rows))
                        seen = r.stop if case.causal else case.kv_len
                        scores = buffer[:heads * (r.stop - first) * seen].reshape(heads, r.stop - first, seen)
                        np.matmul(scaled[h, r], keys[h, :, :seen], out=scores)
                        if hidden is not None:
                            np.copyto(scores, -np.inf, where=hidden[r, :seen])
                        scores -= scores.max(-1, keepdims=True)
                        np.exp(scores, out=scores)
                        np.matmul(scores, values[h, :seen], out=out[h, r])
                        out[h, r] /= scores.sum(-1, keepdims=True)

            return Way(call, lambda: out.reshape(data.q.shape[1:]))

        note = "" if case.group == 1 else ", group as rows"
        yield "all heads" + note, lambda: make(case.kv_heads, q.shape[1])
        yield "head by head" + note, lambda: make(1, q.shape[1])
        if q.shape[1] > 256:
            yield "256 rows of a head", lambda: make(1, 256)


# -------------------------------------------------------------------------------------------------------------- timing


def timed(call, count=1):
    """(CPU, wall) seconds of one call, on average."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - cpu) / count, (time.perf_counter() - wall) / count


def candidates(implementation, case, data):
    """The ways that are right and fast, each as (way, its entry in the list); and a list of what became of each way."""
    right, tried = [], []
    for name, make in implementation.ways(case, data):
        try:
            way = make()
            (way.restore or way.call)()
            error = data.error(way.output())
            way.call()
            seconds = min(timed(way.call)[0] for _ in range(3))
        except Exception as exception:  # pylint: disable=broad-except: whatever a peer throws is its answer
            text = (str(exception).splitlines() or [""])[0]
            tried.append({"way": name, "fault": f"{type(exception).__name__}: {text}"[:200]})
            continue
        tried.append({"way": name, "tried_seconds": seconds, "rms": error})
        if not error < MAX_ERROR[case.kv]:
            tried[-1]["fault"] = f"wrong, relative RMS error {error:.1e}"
        else:
            right.append((way, tried[-1]))
            fastest = min(entry["tried_seconds"] for _, entry in right)
            right = [x for x in right if x[1]["tried_seconds"] <= CLOSE * fastest]  # the others' memory is free again
    return right, tried


def measure(case, implementations, options):
    data = Data(case)
    results, timing = [], []
    for implementation in implementations:
        found, tried = candidates(implementation, case, data)
        results.append({"name": implementation.name, "ways": tried})
        timing += found
    for _, entry in timing:
        entry["rounds"], entry["wall_rounds"] = [], []
    gc.collect()
    gc.disable()
    begin = time.perf_counter()
    for done in range(options.rounds):
        if done >= 3 and time.perf_counter() - begin > options.case_seconds * done / (done + 1):
            break
        for way, entry in timing:
            if way.restore:
                way.restore()
            if entry["tried_seconds"] < options.sample:
                way.call()  # caches as this one leaves them
            cpu, wall = timed(way.call, max(1, math.ceil(options.sample / entry["tried_seconds"])))
            entry["rounds"].append(cpu)
            entry["wall_rounds"].append(wall)
    gc.enable()
    base = None
    for result in results:
        entries = [entry for entry in result["ways"] if "rounds" in entry]
        if not entries:
            continue
        best = min(entries, key=lambda entry: statistics.median(entry["rounds"]))
        result.update(way=best["way"], rms=best["rms"], rounds=len(best["rounds"]), seconds=statistics.median(best["rounds"]),
                      wall_seconds=statistics.median(best["wall_rounds"]))
        if result["name"] == "etalon":
            base = best["rounds"]
        if base:
            ratios = [mine / its for mine, its in zip(best["rounds"], base)]
            result["ratio"] = {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}
    return results


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [x.ljust(w) if i in (0, len(row) - 1) else x.rjust(w) for i, (x, w) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


def cpu_name():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
        field = dict(re.findall(r"^([^\t:]+)\s*: (.*)$", text, re.MULTILINE))
        wide = [x for x in ("avx2", "fma", "avx512f") if x in field["flags"].split()]
        return f"{field['model name']} (family {field['cpu family']}, model {field['model']}; {' '.join(wide)})"
    except (OSError, KeyError):
        return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lib", default=str(ROOT / "build/peers/libetalon.so"), help="libetalon as a shared library: build/peers/libetalon.so")
    parser.add_argument("--target", help="Etalon's kernel table, instead of the default one")
    parser.add_argument("--cases", default="", help="only cases whose name this regular expression finds")
    parser.add_argument("--peers", default="torch,openvino,onnxruntime,numpy", help="which to time; all by default")
    parser.add_argument("--rounds", type=int, default=11, help="11")
    parser.add_argument("--case-seconds", type=float, default=25, help="a case that would take longer gets fewer rounds, 3 at least: 25")
    parser.add_argument("--sample", type=float, default=.05, help="a sample is as many calls as fill so many seconds: .05")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the CPU to run on: the last one")
    parser.add_argument("--json", help="write everything to this file")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--self-check", metavar="LIB", help="test this script's view of the library, and nothing else")
    options = parser.parse_args()
    if options.self_check:
        return self_check(options.self_check)
    cases = [case for case in CASES if re.search(options.cases, case.name)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0

    os.sched_setaffinity(0, {options.cpu})
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"

    try:
        importlib.import_module("numpy")
        implementations = [EtalonWay(options.lib, options.target)]
    except (ImportError, OSError) as error:
        print(f"{error}: bench/README.md#beside-others says what to build and install", file=sys.stderr)
        return 2
    versions = {"etalon": implementations[0].version()}
    missing = []
    for peer in (TorchWay, OpenVinoWay, OnnxRuntimeWay, NumpyWay):
        if peer.name not in options.peers.split(","):
            continue
        try:
            implementations.append(peer())
            versions[peer.name] = implementations[-1].version()
        except ImportError as error:
            versions[peer.name] = f"? ({error})"
            missing.append(peer.name)
    print(f"{cpu_name()}, CPU {options.cpu}, one thread, Python {platform.python_version()}")
    for name, version in versions.items():
        print(f"{name} {version}")

    report = {"cpu": cpu_name(), "versions": versions, "cases": []}
    for case in cases:
        results = measure(case, implementations, options)
        rounds = max(r.get("rounds", 0) for r in results)
        report["cases"].append({**dataclasses.asdict(case), "results": results})
        rows = [(case.name, "ms", "rate", "rel. RMS", "time / etalon's", f"{rounds} rounds; way")]
        for r in results:
            if "seconds" in r:
                ratio = "{median:.2f} [{min:.2f} .. {max:.2f}]".format(**r["ratio"]) if "ratio" in r else "?"
                way = implementations[0].table if r["name"] == "etalon" else r["way"]
                rows.append((r["name"], f"{1e3 * r['seconds']:.2f}", case.rate(r["seconds"]), f"{r['rms']:.1e}", ratio, way))
            else:
                rows.append((r["name"], "-", "-", "-", "-", "; ".join(x["way"] + ": " + x["fault"] for x in r["ways"]) or "has none"))
        rows += [(name, "?", "?", "?", "?", "not installed") for name in missing]
        print()
        table(rows)
        for r in results:
            for way in r["ways"]:
                if "fault" in way and "seconds" in r:
                    print(f"  {r['name']} {way['way']}: {way['fault']}")
        sys.stdout.flush()
    report["etalon_table"] = implementations[0].table
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs one case: reads its tensors, applies arithmetic.py row by row, returns the words it expects to be written.

`compute(case)` gives {output name: words}. Types of the outputs are those written in the case's `expect` lines.
"""

import arithmetic as A
from softfloat import ZERO, fma, widen


def compute(case):
    return OPS[case.op](case)


def query_rows(case):
    """How many query rows a case holds, 0 for the element-wise ones."""
    shape_of = {"scores": "s", "softmax": "w"}.get(case.op, "out")
    return case.expects[shape_of].dims[0] if shape_of in case.expects else 0


def floats(tensor):
    """Rows of a floating-point tensor as f32 bits (step 1: widening is exact)."""
    return [[widen(x, tensor.kind) for x in row] for row in tensor.rows()]


def column(case, name):
    t = case.tensors.get(name)
    return None if t is None else t.words


# --- element-wise -------------------------------------------------------------------------------------------------------------


def elementwise(function):
    def run(case):
        return {"y": [A.write(function(x)) for x in case.tensors["x"].words]}
    return run


def run_fma(case):
    a, b, c = (case.tensors[n].words for n in "abc")
    return {"y": [A.write(fma(*abc)) for abc in zip(a, b, c)]}


def run_widen(case):
    x = case.tensors["x"]
    return {"y": [A.write(widen(w, x.kind)) for w in x.words]}


def run_narrow(case):
    return {"y": [A.write(w, case.expects["y"].kind) for w in case.tensors["x"].words]}


# --- visibility ---------------------------------------------------------------------------------------------------------------


def allowed_keys(case, row, keys, base, suffix=""):
    """Geometry and mask of one row: spans are positions, the mask is by index of the tensor."""
    yes = [True] * keys
    span = case.tensors.get("span" + suffix)
    if span is not None:
        first, last = span.rows()[row]
        yes = [first <= base + i < last for i in range(keys)]
    mask = case.tensors.get("mask" + suffix)
    if mask is not None:
        yes = [y and m != 0 for y, m in zip(yes, mask.rows()[row])]
    return yes


# --- scores and attention -----------------------------------------------------------------------------------------------------


def source_scores(case, suffix, row, scaled_q, k, base):
    """Steps 2 and 3 of one row against one source."""
    softcap = case.params.get("softcap", ("f32", ZERO))[1]
    slope, q_pos = column(case, "slope"), column(case, "q_pos")
    bias = case.tensors.get("bias" + suffix)
    bias_row = None if bias is None else [widen(x, bias.kind) for x in bias.rows()[row]]
    allowed = allowed_keys(case, row, len(k), base, suffix)
    scores = []
    for i, key in enumerate(k):
        options = A.KeyOptions(softcap=softcap)
        if slope is not None:
            options.slope = slope[row]
            options.distance = abs(q_pos[row] - (base + i))
        if bias_row is not None:
            options.bias = bias_row[i]
        scores.append(A.score(scaled_q, key, options, allowed[i]))
    return scores


def base_of(case, suffix):
    return case.params.get("base" + suffix, ("i64", 0))[1]


def run_scores(case):
    k = floats(case.tensors["k"])
    scale = case.params["scale"][1]
    s = []
    for row, q in enumerate(floats(case.tensors["q"])):
        s += source_scores(case, "", row, A.scale_query(q, scale), k, base_of(case, ""))
    return {"s": [A.write(x) for x in s]}


def run_attention(case):
    sources = []
    while "k%d" % len(sources) in case.tensors:
        n = str(len(sources))
        sources.append((n, floats(case.tensors["k" + n]), floats(case.tensors["v" + n]), base_of(case, n)))
    out_type, value_dim = case.expects["out"].kind, case.expects["out"].dims[-1]
    scale = case.params["scale"][1]
    sinks = column(case, "sink")
    result = {"out": [], "lse": [], "m": [], "l": [], "o": []}
    for row, q in enumerate(floats(case.tensors["q"])):
        scaled_q = A.scale_query(q, scale)
        blocks = []
        for suffix, k, v, base in sources:
            blocks += A.source_blocks(source_scores(case, suffix, row, scaled_q, k, base), v, base)
        for state in blocks:
            m, l, o = A.write_state(state, value_dim)
            result["m"].append(m)
            result["l"].append(l)
            result["o"] += o
        put_row(result, blocks, A.NO_SINK if sinks is None else sinks[row], value_dim, out_type)
    return result


def put_row(result, blocks, sink, value_dim, out_type):
    out, lse = A.finish(A.total_state(blocks, sink, value_dim), value_dim)
    result["out"] += [A.write_out(x, out_type) for x in out]
    result["lse"].append(A.write(lse))


def run_fold(case):
    """States from outside: l = 0 says that one is empty."""
    value_dim = case.tensors["o"].dims[-1]
    n = case.tensors["m"].dims[-1]
    o = case.tensors["o"].rows()
    sinks = column(case, "sink")
    result = {"out": [], "lse": []}
    for row, (m, l) in enumerate(zip(case.tensors["m"].rows(), case.tensors["l"].rows())):
        blocks = [None if l[i] == ZERO else (m[i], l[i], o[row * n + i]) for i in range(n)]
        put_row(result, blocks, A.NO_SINK if sinks is None else sinks[row], value_dim, case.expects["out"].kind)
    return result


# --- primitives on rows -------------------------------------------------------------------------------------------------------


def run_softmax(case):
    result = {"w": [], "lse": []}
    for row, s in enumerate(case.tensors["s"].rows()):
        w, lse = A.softmax_row(s, allowed_keys(case, row, len(s), 0))
        result["w"] += [A.write(x) for x in w]
        result["lse"].append(A.write(lse))
    return result


def run_weighted_sum(case):
    v = floats(case.tensors["v"])
    out = case.expects["out"]
    words = []
    for row, w in enumerate(case.tensors["w"].rows()):
        total = A.weighted_sum_row(w, v, allowed_keys(case, row, len(w), 0), out.dims[-1])
        words += [A.write_out(x, out.kind) for x in total]
    return {"out": words}


def run_merge(case):
    out1, out2 = floats(case.tensors["out1"]), floats(case.tensors["out2"])
    result = {"out": [], "lse": []}
    for row, (lse1, lse2) in enumerate(zip(case.tensors["lse1"].words, case.tensors["lse2"].words)):
        out, lse = A.merge(out1[row], lse1, out2[row], lse2)
        result["out"] += [A.write_out(x, case.expects["out"].kind) for x in out]
        result["lse"].append(A.write(lse))
    return result


OPS = {
    "fma": run_fma, "widen": run_widen, "narrow": run_narrow,
    "exp": elementwise(lambda x: A.exp(x)), "log": elementwise(lambda x: A.log(x)), "tanh": elementwise(lambda x: A.tanh(x)),
    "scores": run_scores, "softmax": run_softmax, "weighted_sum": run_weighted_sum,
    "attention": run_attention, "merge": run_merge, "fold": run_fold,
}


def fill(case):
    """Writes the computed words into the case's expects."""
    words = compute(case)
    for name, tensor in case.expects.items():
        tensor.words = words[name]
    return case

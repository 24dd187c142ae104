"""What attention means, in plain float64, and what others mean by it. docs/semantics.md says the same in words.

`attention(arrays, options)` is Etalon's meaning. Each further argument is what another library means, so that a wrong answer has a name: the files
in tests/conformance/cases hold both. Nothing here is fast or careful about rounding: the answers are kept in f32.
"""
import math

from arrays import indices, stored

STEPS = ("softcap", "alibi", "bias", "masks")  # in the order in which they act on q k scale


def add(terms):
    """Not sum(), whose last bits depend on the version of Python."""
    total = 0.0
    for x in terms:
        total += x
    return total


def standard_slope(head, heads):
    n = 2 ** int(math.log2(heads))
    return 2.0 ** (-8 * (head + 1) / n) if head < n else 2.0 ** (-4 * (2 * (head - n) + 1) / n)


def q_offset(options, q_len, kv_len):
    return kv_len - q_len if options.get("causal") == "bottom-right" else 0


def shown(arrays, options, head, row, key):
    """What geometry, the mask and the segments say of a pair; the bias has a word to say later."""
    q_len, kv_len = arrays["q"].shape[1], arrays["k"].shape[1]
    ahead = key - (row + q_offset(options, q_len, kv_len))  # by how much the key's position lies behind the row's own
    left, right = options.get("window", (-1, -1))
    if options.get("causal"):
        right = 0
    if left >= 0 and ahead < -left:
        return False
    if right >= 0 and ahead > right and key >= options.get("prefix", 0):
        return False
    if "mask" in options and not arrays["mask"].at(head, row, key):
        return False
    return "segments" not in options or arrays["segments"].at(row) == arrays["segments"].at(key)


def score(arrays, options, head, kv_head, row, key, order, distance, hidden):
    """-inf says that the row does not see the key."""
    dim = arrays["q"].shape[2]
    q, k = arrays["q"], arrays["k"]
    scale = options.get("scale", 1 / math.sqrt(dim))
    s = add(q.at(head, row, c) * scale * k.at(kv_head, key, c) for c in range(dim))

    def hide(s):
        return s + -math.inf if hidden == "NaN stays" else -math.inf

    for step in order:
        if step == "softcap" and "softcap" in options:
            cap = options["softcap"]
            s = cap * math.tanh(s / cap)
        elif step == "alibi" and "alibi" in options:
            slope = standard_slope(head, q.shape[0]) if options["alibi"] == "standard" else arrays["alibi"].at(head)
            s += slope * distance(key - (row + q_offset(options, q.shape[1], k.shape[1])))
        elif step == "bias" and "bias" in options:
            bias = arrays["bias"].at(head, row, key)
            s = hide(s) if bias == -math.inf else s + bias
        elif step == "masks" and not shown(arrays, options, head, row, key):
            s = hide(s)
    return s


def softmax_row(scores, values, sink, empty, hidden, infinite):
    """(out, lse) of one row; values are the rows of v."""
    dims = range(len(values[0])) if values else ()
    seen = [t for t, s in enumerate(scores) if s != -math.inf]
    if infinite == "NaN is no key":
        seen = [t for t in seen if not math.isnan(scores[t])]
    if infinite == "takes all" and math.inf in scores:
        return values[scores.index(math.inf)], math.inf
    if any(math.isnan(scores[t]) or scores[t] == math.inf for t in seen):
        return [math.nan for _ in dims], math.nan
    logits = [scores[t] for t in seen] + ([sink] if sink > -math.inf else [])
    top = max(logits, default=-math.inf)
    total = add(math.exp(s - top) for s in logits)
    lse = top + math.log(total) if logits else -math.inf
    if not seen and empty != "0":
        return [math.nan if empty == "NaN" else add(v[c] for v in values) / len(values) for c in dims], lse
    out = [add(math.exp(scores[t] - top) * values[t][c] for t in seen) / total if seen else 0.0 for c in dims]
    if hidden == "weighs 0":  # its value is multiplied all the same
        out = [x + add(0 * v[c] for v in values) for c, x in zip(dims, out)]
    return out, lse


def attention(arrays, options, *, empty="0", hidden="absent", order=STEPS, heads="in blocks", distance=lambda d: -abs(d), infinite="NaN",
              everything=None, **changed):
    """(out, lse) as Arrays. `changed` replaces options; None takes one away."""
    options = {name: value for name, value in {**options, **changed}.items() if value is not None}
    (num_heads, q_len, _), (kv_heads, kv_len, value_dim) = arrays["q"].shape, arrays["v"].shape
    out, lse = [], []
    for head, row in indices((num_heads, q_len)):
        kv_head = head // (num_heads // kv_heads) if heads == "in blocks" else head % kv_heads
        values = [[arrays["v"].at(kv_head, t, c) for c in range(value_dim)] for t in range(kv_len)]
        scores = [score(arrays, options, head, kv_head, row, t, order, distance, hidden) for t in range(kv_len)]
        sink = arrays["sinks"].at(head) if "sinks" in options else -math.inf
        row_out, row_lse = softmax_row(scores, values, sink, empty, hidden, infinite)
        out += row_out or [0.0 if empty == "0" else math.nan] * value_dim
        lse.append(row_lse)
    if everything is not None:
        out = [everything] * len(out)
    return stored("f32", (num_heads, q_len, value_dim), out), stored("f32", (num_heads, q_len), lse)


def largest(arrays, options):
    """The largest finite score and value, which the tolerances are made of."""
    scores = [abs(score(arrays, options, h, h // (arrays["q"].shape[0] // arrays["k"].shape[0]), i, t, STEPS, lambda d: -abs(d), "absent"))
              for h, i, t in indices((*arrays["q"].shape[:2], arrays["k"].shape[1]))]
    return [max((x for x in map(abs, xs) if math.isfinite(x)), default=0.0) for xs in (scores, arrays["v"].values)]

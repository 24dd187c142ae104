"""What becomes of a score: softcap, sinks, scale, heads, ALiBi."""
import math

from question import Question, counting, flags, floats, given, identity, ramp, same, trio

NAN, INF = math.nan, math.inf
SOFTCAP, SINKS, SCALE, HEADS, ALIBI = "softcap", "sinks", "scale", "heads", "ALiBi"
CAP_LAST = ("alibi", "bias", "masks", "softcap")


def softcap():
    arrays = {**given([1, 3, 2], identity(3))}
    without = {"ignored": {"softcap": None}}
    yield Question("softcap-bias", SOFTCAP, "A softcap of 2 and a bias: which comes first?", ["MSK-8"], "scores",
                   {**arrays, "bias": floats((1, 3), [0, -1, 1])}, {"scale": 1.0, "softcap": 2.0, "bias": "bias"}, "softcap first",
                   {"bias first": {"order": CAP_LAST}, **without})
    late = {"it returns as -cap": {"order": CAP_LAST}, **without}
    yield Question("softcap-mask", SOFTCAP, "A softcap of 2, and a boolean mask: does the key stay hidden?", ["MSK-8", "NUM-12"], "scores",
                   {**arrays, "mask": flags((1, 3), [1, 0, 1])}, {"scale": 1.0, "softcap": 2.0, "mask": "mask"}, "it stays hidden", late)
    yield Question("softcap-causal", SOFTCAP, "A softcap of 0.25, and a causal mask: do later keys stay hidden?", ["NUM-12"], "scores",
                   trio(2, 6, 6, 8), {"softcap": 0.25, "causal": "top-left"}, "they stay hidden",
                   {"they return as -cap": {"order": CAP_LAST}, **without})
    yield Question("softcap-of-large", SOFTCAP, "A softcap of 50 over scores up to 10000.", ["NUM-12"], "scores",
                   given([1, 49, 51, 100, 4400, 10000, -10000], identity(7)), {"scale": 1.0, "softcap": 50.0}, "finite",
                   {"NaN": {"everything": NAN}, **without})
    yield Question("softcap-scale", SOFTCAP, "A softcap of 2 and a scale of 0.5: is it the scaled score that is capped?", ["NUM-12"], "scores",
                   arrays, {"scale": 0.5, "softcap": 2.0}, "the scaled score",
                   {"the score before": {"softcap": 1.0}, **without})
    yield Question("softcap-alibi", SOFTCAP, "A softcap of 2 and ALiBi: which comes first?", ["MSK-12", "NUM-12"], "scores",
                   {**arrays, "alibi": floats((1,), [0.75])}, {"scale": 1.0, "softcap": 2.0, "alibi": "alibi"}, "softcap first",
                   {"ALiBi first": {"order": CAP_LAST}, **without})


def sinks():
    """The causal ones are for those who have sinks in causal attention alone."""
    section = "lse-and-sinks"
    ones = {"q": same((2, 3, 8), 0), "k": ramp((2, 4, 8), 5, 2), "v": same((2, 4, 8), 1), "sinks": floats((2,), [0, math.log(4)])}
    ignored = {"ignored": {"sinks": None}}
    yield Question("sinks", SINKS, "Logits of 0 and ln 4, one a head, beside four equal keys.", ["MSK-11"], section, ones,
                   {"sinks": "sinks"}, "weight without value", ignored)
    causal = {**trio(2, 4, 4, 8), "sinks": floats((2,), [0.5, 3])}
    yield Question("sinks-causal", SINKS, "Logits of 0.5 and 3, causal, default scale: are they scaled like scores?", ["MSK-11"], section, causal,
                   {"causal": "top-left", "sinks": "sinks"}, "not scaled", {"scaled": {"arrays": {"sinks": floats((2,), [x * 8**-0.5 for x in (0.5, 3)])}}, **ignored})
    yield Question("sinks-softcap", SINKS, "The same with a softcap of 0.5: is the sink capped?", ["MSK-11", "NUM-12"], section, causal,
                   {"causal": "top-left", "softcap": 0.5, "sinks": "sinks"}, "not capped",
                   {"capped": {"arrays": {"sinks": floats((2,), [0.5 * math.tanh(x / 0.5) for x in (0.5, 3)])}}, "softcap ignored": {"softcap": None}, **ignored})
    yield Question("sinks-of-empty-rows", SINKS, "A row that sees nothing, with a sink.", ["MSK-11", "MSK-1"], section,
                   {**counting(1, 2, 3), "sinks": floats((1,), [1]), "mask": flags((2, 3), [1, 1, 0, 0, 0, 0])},
                   {"mask": "mask", "sinks": "sinks"}, "0", {"NaN": {"empty": "NaN"}, "mean of v": {"empty": "mean"}, **ignored})


def scale():
    wide = trio(1, 2, 5, 8, 16)
    yield Question("scale-default", SCALE, "No scale is given; head_dim is 8, value_dim 16.", ["SHP-6"], SCALE, wide, {}, "1/sqrt(head_dim)",
                   {"1/sqrt(value_dim)": {"scale": 0.25}, "1": {"scale": 1.0}})
    equal = {"arrays": {"q": same((1, 1, 8), 0)}}
    yield Question("scale-zero", SCALE, "A scale of 0 is given. (Etalon's C interface takes it for the default, so the tool has it written out or left out.)",
                   ["SHP-6"], SCALE, trio(1, 1, 5, 8), {"scale": 0.0}, "refuses", {"default": {"scale": None}, "equal scores": equal})
    yield Question("scale-negative", SCALE, "A scale of -0.5.", ["SHP-6"], SCALE, trio(1, 1, 5, 8), {"scale": -0.5}, "as given",
                   {"NaN": {"everything": NAN}, "its absolute": {"scale": 0.5}, "default": {"scale": None}})
    yield Question("scale-large", SCALE, "A scale of 16.", ["SHP-6"], SCALE, trio(1, 1, 5, 8), {"scale": 16.0}, "as given",
                   {"default": {"scale": None}})


def heads():
    values = floats((2, 5, 8), [float(h + 1) for h in range(2) for _ in range(40)])
    yield Question("heads-in-groups", HEADS, "Four query heads, two key heads: which one does each read?", ["SHP-2"], "heads-and-sizes",
                   {"q": ramp((4, 1, 8), 3, 1), "k": ramp((2, 5, 8), 5, 2), "v": values}, {}, "0, 0, 1, 1",
                   {"0, 1, 0, 1": {"heads": "in turn"}})
    yield Question("heads-value-dim", HEADS, "value_dim is 3, head_dim 8.", ["SHP-6", "SHP-7"], "heads-and-sizes", trio(2, 3, 5, 8, 3), {},
                   "out has value_dim", {})
    yield Question("heads-odd-dim", HEADS, "head_dim is 7.", ["SHP-7"], "heads-and-sizes", trio(1, 1, 9, 7), {}, "any head_dim",
                   {"padding counts": {"scale": 8**-0.5}})


def alibi():
    yield Question("alibi-slopes", ALIBI, "The standard slopes of 8 heads, a row at position 3.", ["MSK-12"], "scores", counting(8, 1, 4),
                   {"alibi": "standard", "causal": "bottom-right"}, "2^-1 ... 2^-8", {"no ALiBi": {"alibi": None}})
    yield Question("alibi-sign", ALIBI, "A slope of 0.75, keys before and after the row.", ["MSK-12"], "scores",
                   {**counting(1, 4, 4), "alibi": floats((1,), [0.75])}, {"alibi": "alibi"}, "- slope abs(t - p)",
                   {"+ slope (t - p)": {"distance": lambda ahead: ahead}, "+ slope abs(t - p)": {"distance": abs}, "no ALiBi": {"alibi": None}})


def questions():
    for group in (softcap, sinks, scale, heads, alibi):
        yield from group()

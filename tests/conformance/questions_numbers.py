"""What numbers survive: f16, large scores, subnormals, -0, NaN and infinity where they are seen."""
import math

from question import Question, flags, floats, given, ramp, same

NAN, INF = math.nan, math.inf
F16, LARGE, SMALL, SEEN = "f16", "large numbers", "small numbers", "visible NaN and infinity"


def f16():
    section = "types-and-rounding"
    yield Question("f16-scores", F16, "f16 whose scores are 65536 and 65280: beyond f16, not beyond f32.", ["NUM-3"], section,
                   {"q": floats((1, 1, 8), [256] + [0] * 7, "f16"), "k": floats((1, 2, 8), [255] + [0] * 7 + [256] + [0] * 7, "f16"),
                    "v": floats((1, 2, 8), [1.0] * 8 + [2.0] * 8, "f16")}, {"scale": 1.0, "out_type": "f16"}, "kept apart",
                   {"NaN": {"everything": NAN}, "taken for equal": {"everything": 1.5}})
    yield Question("f16-values", F16, "f16 values of 60000, and eight equal keys.", ["NUM-9"], section,
                   {"q": same((1, 1, 8), 0, "f16"), "k": same((1, 8, 8), 0, "f16"), "v": same((1, 8, 8), 60000, "f16")}, {"out_type": "f16"},
                   "60000", {"infinity": {"everything": INF}, "NaN": {"everything": NAN}})
    yield Question("f16-many-keys", F16, "f16 values of 1, and 4096 equal keys: their weights are 2^-12.", ["NUM-7"], section,
                   {"q": same((1, 1, 1), 0, "f16"), "k": same((1, 4096, 1), 0, "f16"), "v": same((1, 4096, 1), 1, "f16")}, {"out_type": "f16"},
                   "1", {"summed in f16": {"everything": 0.5}, "0": {"everything": 0.0}})
    yield Question("f16-subnormals", F16, "f16 values below 2^-14.", ["NUM-11"], section,
                   {"q": same((1, 1, 8), 0, "f16"), "k": same((1, 2, 8), 0, "f16"),
                    "v": floats((1, 2, 8), [(i + 1) * 2.0**-23 for i in range(16)], "f16")}, {"out_type": "f16"},
                   "kept", {"flushed to 0": {"everything": 0.0}})


def large():
    section = "visibility"
    yield Question("scores-very-low", LARGE, "Scores of -245000 and -240000: lower than many a number that stands for -inf.", ["NUM-2"], section,
                   given([-245000, -240000], [[1], [2]]), {"scale": 1.0}, "2", {"0": {"everything": 0.0}, "NaN": {"everything": NAN},
                                                                            "mean of v": {"everything": 1.5}})
    yield Question("scores-low-and-equal", LARGE, "Four scores of -60000.", ["NUM-2"], section, given([-60000] * 4, [[0], [1], [2], [3]]),
                   {"scale": 1.0}, "mean of v", {"0": {"everything": 0.0}, "NaN": {"everything": NAN}})
    yield Question("scores-low-and-hidden", LARGE, "The same, and the last key hidden by a boolean mask.", ["NUM-2", "MSK-4"], section,
                   {**given([-60000] * 4, [[0], [1], [2], [3]]), "mask": flags((1, 4), [1, 1, 1, 0])}, {"scale": 1.0, "mask": "mask"},
                   "it stays hidden", {"the hidden key alone": {"everything": 3.0}, "it counts like the others": {"mask": None},
                                       "0": {"everything": 0.0}, "NaN": {"everything": NAN}})
    yield Question("one-key", LARGE, "One key, and q = k = v = 133120.", ["NUM-1"], section, {name: same((1, 1, 64), 133120) for name in "qkv"},
                   {}, "v", {"NaN": {"everything": NAN}, "0": {"everything": 0.0}})


def small():
    section = "types-and-rounding"
    yield Question("subnormal-values", SMALL, "Values below 2^-126.", ["NUM-5"], section,
                   {"q": same((1, 1, 8), 0), "k": ramp((1, 2, 8), 5, 2), "v": floats((1, 2, 8), [(i + 1) * 2.0**-140 for i in range(16)])}, {},
                   "kept", {"flushed to 0": {"everything": 0.0}})
    yield Question("subnormal-keys", SMALL, "Keys below 2^-126, and queries that make scores near 1 of them.", ["NUM-5"], section,
                   {"q": same((1, 1, 8), 2.0**126), "k": floats((1, 2, 8), [0] * 8 + [2.0**-128] * 8), "v": floats((1, 2, 8), [0] * 8 + [1] * 8)},
                   {"scale": 1.0}, "kept", {"flushed to 0": {"everything": 0.5}})
    yield Question("minus-zero", SMALL, "All visible values are -0.", ["NUM-5"], section,
                   {"q": same((1, 1, 8), 0), "k": ramp((1, 2, 8), 5, 2), "v": same((1, 2, 8), -0.0)}, {}, "+0", {"-0": {"everything": -0.0}},
                   signed_zeros=True)


def seen():
    section = "nan-and-infinity"
    values = [[1, 2], [3, 5], [4, 4]]
    yield Question("nan-score", SEEN, "One of three visible scores is NaN.", ["NUM-8"], section, given([1, NAN, 2], values), {"scale": 1.0}, "NaN",
                   {"as if it were not there": {"infinite": "NaN is no key"}, "0": {"everything": 0.0}})
    yield Question("infinite-score", SEEN, "One of three visible scores is +inf.", ["NUM-13"], section, given([1, INF, 2], values), {"scale": 1.0},
                   "NaN", {"it takes all weight": {"infinite": "takes all"}, "0": {"everything": 0.0}})
    yield Question("minus-infinite-score", SEEN, "One of three scores is -inf, by the product of q and k.", ["MSK-3"], section,
                   given([1, -INF, 2], values), {"scale": 1.0}, "hidden", {"NaN": {"everything": NAN}})
    yield Question("infinite-bias", SEEN, "One of three keys has a bias of +inf.", ["NUM-13"], section,
                   {**given([1, 0.5, 2], values), "bias": floats((1, 3), [0, INF, 0])}, {"scale": 1.0, "bias": "bias"}, "NaN",
                   {"it takes all weight": {"infinite": "takes all"}, "0": {"everything": 0.0}})
    yield Question("nan-value", SEEN, "A visible value is NaN in one channel.", ["NUM-8"], section, given([1, 3, 2], [[1, 2], [NAN, 5], [4, 4]]),
                   {"scale": 1.0}, "NaN in that channel", {"NaN in all": {"everything": NAN}})
    yield Question("infinite-value", SEEN, "A visible value is +inf in one channel.", ["NUM-8"], section, given([1, 3, 2], [[1, 2], [INF, 5], [4, 4]]),
                   {"scale": 1.0}, "infinity in that channel", {"NaN in all": {"everything": NAN}})


def questions():
    for group in (f16, large, small, seen):
        yield from group()

"""Who sees whom: empty rows, hidden NaN, alignment, windows, masks."""
import math

from arrays import Array
from question import Question, counting, flags, floats, given, ramp, same, trio

NAN, INF = math.nan, math.inf
POISON = [NAN, INF, -INF, NAN] * 2


def poisoned(where):
    """Two rows and two keys of numbers 0 ... 15; key 1, which is hidden, holds what would spoil the rows."""
    arrays = {name: floats((1, 2, 8), range(16)) for name in "qkv"}
    if "k" in where:
        arrays["k"].values[8] = NAN
    if "v" in where:
        arrays["v"].values[8:] = POISON
    return arrays


EMPTY = "empty rows"
HIDDEN = "hidden NaN and infinity"
ALIGNED = "causal alignment"
WINDOW = "windows"
MASKS = "masks"


def empty_rows():
    shows = [j <= i and i < 5 for i in range(6) for j in range(10)]
    others = {"NaN": {"empty": "NaN"}, "mean of v": {"empty": "mean"}}
    arrays = counting(2, 6, 10)
    yield Question("empty-by-mask", EMPTY, "A boolean mask hides all keys from the last row. What is its output?", ["MSK-1"], "visibility",
                   {**arrays, "mask": flags((6, 10), shows)}, {"scale": 0.125, "mask": "mask"}, "0", others)
    yield Question("empty-by-bias", EMPTY, "The same by a bias of -inf.", ["MSK-1", "MSK-3"], "visibility",
                   {**arrays, "bias": floats((6, 10), [0 if x else -INF for x in shows])}, {"scale": 0.125, "bias": "bias"}, "0", others)
    yield Question("empty-by-causal", EMPTY, "Five rows over two keys, causal, bottom-right: the first three rows see nothing.",
                   ["MSK-5"], "visibility", counting(1, 5, 2), {"causal": "bottom-right"}, "0",
                   {**others, "aligned top-left": {"causal": "top-left"}})
    yield Question("empty-no-keys", EMPTY, "There is no key at all. (Etalon's C interface gives 0; a file of the tool has a key.)", ["SHP-1"], "heads-and-sizes",
                   {"q": ramp((2, 3, 8), 3, 1), "k": same((2, 0, 8), 0), "v": same((2, 0, 8), 0)}, {}, "refuses",
                   {"0": {}, "NaN": {"everything": NAN}})


def hidden():
    mask = {"mask": flags((2, 2), [1, 0, 1, 0])}
    score, value = {"NaN": {"hidden": "NaN stays"}}, {"NaN": {"hidden": "weighs 0"}}
    clean = "no influence"
    yield Question("hidden-key", HIDDEN, "A key that a boolean mask hides holds a NaN.", ["MSK-4"], "visibility",
                   {**poisoned("k"), **mask}, {"mask": "mask"}, clean, score)
    yield Question("hidden-value", HIDDEN, "The value of a key that a boolean mask hides holds NaN and infinity.", ["MSK-4"], "visibility",
                   {**poisoned("v"), **mask}, {"mask": "mask"}, clean, value)
    yield Question("hidden-key-by-bias", HIDDEN, "A key that a bias of -inf hides holds a NaN.", ["MSK-3", "MSK-4"], "visibility",
                   {**poisoned("k"), "bias": floats((2, 2), [0, -INF] * 2)}, {"bias": "bias"}, clean, score)
    yield Question("hidden-value-by-bias", HIDDEN, "The value of such a key holds NaN and infinity.", ["MSK-3", "MSK-4"], "visibility",
                   {**poisoned("v"), "bias": floats((2, 2), [0, -INF] * 2)}, {"bias": "bias"}, clean, value)
    yield Question("hidden-by-causal", HIDDEN, "Key 1 and its value hold NaN. Row 1 sees it; is row 0, which is before it, clean?", ["MSK-4"],
                   "nan-and-infinity", poisoned("kv"), {"causal": "top-left"}, "only row 1 is NaN",
                   {"both are NaN": {"everything": NAN}})
    yield Question("visible-of-no-weight", HIDDEN, "A visible key whose weight underflows to 0 has a NaN in one channel of its value.", ["MSK-4"], "visibility",
                   given([0, -200], [[1, 2], [NAN, 3]]), {"scale": 1.0}, "NaN in that channel",
                   {clean: {"arrays": {"v": given([0, -200], [[1, 2], [0, 3]])["v"]}}, "NaN in all": {"everything": NAN}})


def alignment():
    others = {"top-left": {"causal": "top-left"}, "no mask": {"causal": None}}
    fields = ["MSK-5"]
    yield Question("causal-bottom-right", ALIGNED, "Two rows over five keys, the rows being the last two tokens. Whoever has one flag is given it.",
                   fields, "geometry", trio(1, 2, 5, 8), {"causal": "bottom-right"}, "bottom-right", others)
    yield Question("causal-top-left", ALIGNED, "The same, the rows being the first two tokens.", fields, "geometry", trio(1, 2, 5, 8),
                   {"causal": "top-left"}, "top-left", {"bottom-right": {"causal": "bottom-right"}, "no mask": {"causal": None}})
    yield Question("causal-decode", ALIGNED, "One row, the last token of five.", fields, "geometry", counting(1, 1, 5),
                   {"causal": "bottom-right"}, "bottom-right", {"top-left": {"causal": "top-left"}})
    yield Question("causal-square", ALIGNED, "As many rows as keys: no room for alignment.", fields, "geometry", trio(2, 6, 6, 8),
                   {"causal": "top-left"}, "causal", {"no mask": {"causal": None}})


def windows():
    yield Question("window-causal", WINDOW, "Causal, and a window of three tokens, the row's own included: left = 2.", ["MSK-6"], "geometry",
                   counting(1, 6, 6), {"causal": "top-left", "window": [2, -1]}, "three tokens",
                   {"four tokens": {"window": [3, -1]}, "two tokens": {"window": [1, -1]}, "window ignored": {"window": None}})
    yield Question("window-alone", WINDOW, "left = 2, right = 0 without a causal flag or a mask.", ["MSK-9"], "geometry", counting(1, 8, 8),
                   {"window": [2, 0]}, "a window", {"window ignored": {"window": None}, "right ignored": {"window": [2, -1]}})
    yield Question("window-decode", WINDOW, "One row, the last token of six, with that window.", ["MSK-6"], "geometry", counting(1, 1, 6),
                   {"causal": "bottom-right", "window": [2, -1]}, "three tokens",
                   {"four tokens": {"window": [3, -1]}, "window ignored": {"window": None},
                    "aligned top-left": {"causal": "top-left"}})
    yield Question("prefix", WINDOW, "Causal, but all rows see the first three of six keys.", ["MSK-5"], "geometry", counting(1, 6, 6),
                   {"causal": "top-left", "prefix": 3}, "a prefix", {"prefix ignored": {"prefix": None}})


def masks():
    forbids = {"mask": flags((4, 4), [j != 1 for _ in range(4) for j in range(4)])}
    yield Question("mask-polarity", MASKS, "Does true in a boolean mask show a key, or hide it?", ["MSK-1", "MSK-7"], "masks",
                   {**counting(1, 2, 4), "mask": flags((2, 4), [1, 0, 0, 0, 1, 1, 0, 0])}, {"mask": "mask"}, "true shows",
                   {"true hides": {"arrays": {"mask": flags((2, 4), [0, 1, 1, 1, 0, 0, 1, 1])}}, "mask ignored": {"mask": None}})
    yield Question("mask-and-causal", MASKS, "A causal mask, and a boolean mask that forbids key 1 everywhere.", ["API-1"], "masks",
                   {**counting(1, 4, 4), **forbids}, {"causal": "top-left", "mask": "mask"}, "both hold",
                   {"mask ignored": {"mask": None}, "causal ignored": {"causal": None}})
    yield Question("mask-and-causal-empty", MASKS, "A causal mask, and padding at key 0, so that row 0 sees nothing.", ["MSK-7"], "masks",
                   {**counting(1, 3, 3), "mask": flags((1, 3), [0, 1, 1])}, {"causal": "top-left", "mask": "mask"}, "both hold, 0",
                   {"both hold, NaN": {"empty": "NaN"}, "both hold, mean of v": {"empty": "mean"}, "mask ignored": {"mask": None},
                    "causal ignored": {"causal": None}})
    padded = {"arrays": {"mask": flags((3, 5), [1, 0, 0, 0, 0] + [0] * 5 + [1, 0, 0, 0, 0])}}
    yield Question("mask-of-one-column", MASKS, "A mask of [q_len, 1]: one word for all keys of a row, here false for row 1.", ["MEM-1", "API-4"],
                   "masks", {**counting(1, 3, 5), "mask": flags((3, 1), [1, 0, 1])}, {"mask": "mask"}, "for all keys, 0",
                   {"for all keys, NaN": {"empty": "NaN"}, "for all keys, mean of v": {"empty": "mean"},
                    "for key 0 alone, 0": padded, "for key 0 alone, NaN": {**padded, "empty": "NaN"}})
    yield Question("bias-of-a-head", MASKS, "A bias of [heads, 1, kv_len].", ["SHP-5"], "scores",
                   {**trio(2, 3, 4, 8), "bias": floats((2, 1, 4), [3.5, 0.453125, 3.1875, 0.97265625, -5.46875, 5.1875, 2.15625, 0.5390625])},
                   {"bias": "bias"}, "added", {"ignored": {"bias": None}})
    yield Question("bias-and-mask", MASKS, "A bias and a boolean mask together.", ["MSK-8", "MSK-7"], "masks",
                   {**trio(1, 4, 4, 8), **forbids, "bias": ramp((4, 4), 11, 5)}, {"bias": "bias", "mask": "mask"}, "both hold",
                   {"bias ignored": {"bias": None}, "mask ignored": {"mask": None}})
    hides = {"arrays": {"bias": floats((3, 1), [-INF, 0, 0])}}
    yield Question("bias-lowest", MASKS, "A bias of -3.4e38, the lowest number, in all of row 0.", ["MSK-2"], "visibility",
                   {**trio(1, 3, 3, 4), "bias": floats((3, 3), [-float.fromhex("0x1.fffffep127")] * 3 + [0] * 6)}, {"bias": "bias"}, "mean of v",
                   {"0": hides, "NaN": {**hides, "empty": "NaN"}, "as without the bias": {"bias": None}})
    yield Question("documents", MASKS, "Rows see keys of their own document only, and no later ones.", ["API-1"], "masks",
                   {**counting(1, 6, 6), "segments": Array("i64", (6,), [0, 0, 7, 7, 7, 0])}, {"causal": "top-left", "segments": "segments"},
                   "numbers are equal", {"new ones begin where numbers change": {"arrays": {"segments": Array("i64", (6,), [0, 0, 7, 7, 7, 8])}}, "ignored": {"segments": None}})


def questions():
    for group in (empty_rows, hidden, alignment, windows, masks):
        yield from group()

"""Cases in memory and as text; the text format is described in tests/golden/README.md."""

DIGITS = {"f32": 8, "f16": 4, "bf16": 4, "u8": 2}


class Tensor:
    """Row-major words (bit patterns, or integers for i64)."""

    __slots__ = ("kind", "dims", "words")

    def __init__(self, kind, dims, words):
        count = 1
        for d in dims:
            count *= d
        if count != len(words):
            raise ValueError("%d words for dimensions %s" % (len(words), list(dims)))
        self.kind, self.dims, self.words = kind, tuple(dims), words

    def rows(self):
        """The tensor as a list of rows, whatever its rank."""
        n = self.dims[-1]
        return [self.words[i:i + n] for i in range(0, len(self.words), n)]


class Case:
    """params: name -> (type, word); tensors and expects: name -> Tensor. Order is kept."""

    def __init__(self, name, op):
        self.name, self.op = name, op
        self.params, self.tensors, self.expects = {}, {}, {}

    def param(self, name, kind, word):
        self.params[name] = (kind, word)
        return self

    def tensor(self, name, kind, dims, words):
        self.tensors[name] = Tensor(kind, dims, words)
        return self

    def expect(self, name, kind, dims, words=None):
        """Without words: a placeholder that says which type and shape is wanted."""
        count = 1
        for d in dims:
            count *= d
        self.expects[name] = Tensor(kind, dims, [0] * count if words is None else words)
        return self


def format_word(kind, word):
    return str(word) if kind == "i64" else "%0*X" % (DIGITS[kind], word)


def parse_word(kind, text):
    if kind == "i64":
        return int(text)
    if len(text) != DIGITS[kind]:
        raise ValueError("%s is not a word of type %s" % (text, kind))
    return int(text, 16)


def format_case(case):
    lines = ["case %s %s" % (case.name, case.op)]
    for name, (kind, word) in case.params.items():
        lines.append("param %s %s %s" % (name, kind, format_word(kind, word)))
    for keyword, group in (("tensor", case.tensors), ("expect", case.expects)):
        for name, t in group.items():
            dims = " ".join(map(str, t.dims))
            lines.append("%s %s %s %s : %s" % (keyword, name, t.kind, dims, " ".join(format_word(t.kind, w) for w in t.words)))
    lines.append("end")
    return "\n".join(lines) + "\n"


def parse_cases(lines):
    """Yields the cases of a file. Raises ValueError with the line number for anything out of place."""
    case = None
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            keyword = words[0]
            if keyword == "case" and case is None:
                case = Case(words[1], words[2])
            elif keyword == "end" and case is not None:
                yield case
                case = None
            elif keyword == "param" and case is not None:
                case.param(words[1], words[2], parse_word(words[2], words[3]))
            elif keyword in ("tensor", "expect") and case is not None:
                colon = words.index(":")
                group = case.tensors if keyword == "tensor" else case.expects
                kind = words[2]
                group[words[1]] = Tensor(kind, [int(w) for w in words[3:colon]], [parse_word(kind, w) for w in words[colon + 1:]])
            else:
                raise ValueError("unexpected '%s'" % keyword)
        except (IndexError, KeyError, ValueError) as problem:
            raise ValueError("line %d: %s" % (number, problem))
    if case is not None:
        raise ValueError("case %s has no end" % case.name)

"""C and C++ source text for the checkers: what the compiler sees is not what stands in comments."""

import re

# Literals come first, so that "//" inside one of them starts no comment. The look-behind leaves digit separators (1'000) alone.
_TOKEN = re.compile(r"""
      R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
    | "(?:\\.|[^"\\\n])*"
    | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'
    | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
    """, re.VERBOSE | re.DOTALL)


def strip_comments(text):
    """The text without comments; line numbers stay as they are."""

    def blank(match):
        comment = match.group("comment")
        return match.group(0) if comment is None else " " + "\n" * comment.count("\n")

    return _TOKEN.sub(blank, text)

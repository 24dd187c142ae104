#!/usr/bin/env python3
"""Draws docs/images/kv-cache-*.svg, of docs/kv-cache.md:  python3 docs/draw_kv_cache.py [--check]

With --check it writes nothing, and the exit code is 1 if a file is not what would be written.
"""

import pathlib
import sys

CELL, GAP, LEFT, TOP = 34, 10, 110, 34
HERE = pathlib.Path(__file__).resolve().parent / "images"


class Drawing:
    """Boxes and words in black on white: to be read in print, and by anybody's eyes."""

    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
                      f'font-family="sans-serif" font-size="13" role="img">', f"<title>{title}</title>",
                      f'<rect width="{width}" height="{height}" fill="#fff"/>']

    def word(self, x, y, words, anchor="middle", weight="normal"):
        self.parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>')

    def box(self, x, y, word, fill="#fff", dashed=False):
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{fill}" stroke="#000"{dash}/>')
        self.word(x + CELL // 2, y + CELL // 2 + 5, word)

    def line(self, x1, y1, x2, y2):
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#000" stroke-width="1"/>')

    def text(self):
        return "\n".join(self.parts + ["</svg>", ""])


def pages():
    """Two sequences of 10 and 5 tokens in pages of 4."""
    drawing = Drawing(700, 232, "Two sequences in pages of four tokens: each row of the page table names the pages of one sequence")
    table, lens, page_len, num_pages = [[2, 0, 4], [1, 3, None]], [10, 5], 4, 5
    drawing.word(LEFT + 1.5 * CELL, 20, "page_table", weight="bold")
    owner = {}
    for b, row in enumerate(table):
        y = TOP + b * (CELL + GAP)
        drawing.word(LEFT - 12, y + 22, f"sequence {b}", "end")
        for i, page in enumerate(row):
            drawing.box(LEFT + i * CELL, y, "any" if page is None else str(page), dashed=page is None)
            if page is not None:
                owner[page] = (b, i)
        drawing.word(LEFT + 3 * CELL + 12, y + 22, f"kv_lens = {lens[b]}", "start")
    y = TOP + 2 * (CELL + GAP) + 40
    drawing.word(LEFT - 12, y + 22, "k, v", "end", "bold")
    for page in range(num_pages):
        b, i = owner[page]
        x = 20 + LEFT + page * (page_len * 24 + 16) - 20
        drawing.word(x + page_len * 12, y - 8, f"page {page}")
        for row in range(page_len):
            token = i * page_len + row
            used = token < lens[b]
            fill = "#fff" if not used else "#ddd" if b == 0 else "#aaa"
            drawing.parts.append(f'<rect x="{x + row * 24}" y="{y}" width="24" height="{CELL}" fill="{fill}" stroke="#000"/>')
            if used:
                drawing.word(x + row * 24 + 12, y + 22, str(token))
    drawing.word(LEFT, y + CELL + 22, "light: tokens of sequence 0, dark: of sequence 1; empty rows are never read", "start")
    return drawing.text()


def ring():
    """Tokens 0, 1 are kept, the others share six rows."""
    keep, ring_len, lens = 2, 6, [5, 8, 9, 15]
    drawing = Drawing(620, 60 + len(lens) * (CELL + GAP) + 30, "A ring that keeps two tokens, and the last six of the others, after 5, 8, 9 and 15 tokens")
    drawing.word(LEFT + keep * CELL // 2, 20, "ring_keep", weight="bold")
    drawing.word(LEFT + GAP + keep * CELL + ring_len * CELL // 2, 20, "ring_len", weight="bold")
    for i, length in enumerate(lens):
        y = TOP + i * (CELL + GAP)
        drawing.word(LEFT - 12, y + 22, f"kv_lens = {length}", "end")
        rows = [None] * (keep + ring_len)
        for token in range(length):
            rows[token if token < keep else keep + (token - keep) % ring_len] = token
        for row, token in enumerate(rows):
            x = LEFT + row * CELL + (GAP if row >= keep else 0)
            fill = "#fff" if token is None else "#aaa" if token == length - 1 else "#ddd"
            drawing.box(x, y, "" if token is None else str(token), fill, dashed=token is None)
    drawing.word(LEFT, TOP + len(lens) * (CELL + GAP) + 18, "dark: the newest token, which took the place of the oldest in the ring", "start")
    return drawing.text()


def main(arguments):
    wrong = []
    for name, drawing in (("kv-cache-pages.svg", pages()), ("kv-cache-ring.svg", ring())):
        path = HERE / name
        if arguments == ["--check"]:
            if not path.is_file() or path.read_text(encoding="utf-8") != drawing:
                wrong.append(name)
        else:
            path.write_text(drawing, encoding="utf-8")
    for name in wrong:
        print(f"docs/images/{name} is not what docs/draw_kv_cache.py draws: run it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

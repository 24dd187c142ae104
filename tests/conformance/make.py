#!/usr/bin/env python3
"""Writes the cases of tests/conformance: cases.json, and cases/<id>.npz with inputs, answers and bits.

    python3 tests/conformance/make.py            writes them
    python3 tests/conformance/make.py --check    the exit code is 1 if what is there differs

Answers are the definition's (definition.py, float64, kept in f32), the bits those of the model of the arithmetic (bits.py).
"""
import itertools
import json
import pathlib
import sys

import bits
import definition
import questions_numbers
import questions_rows
import questions_scores
from arrays import from_bytes, read_npz, write_npz
from answers import FORMAT, REFUSES, same

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = [questions_rows, questions_scores, questions_numbers]
# An answer has a name if it is so near, as a share of the largest value. Loose, since the names are to be told apart, not accuracy.
NEAR = {"f32": 2e-3, "f16": 1e-2}
HALF_ULP = 2.0**-11  # of f16


def rounded(x):
    """Few digits, so that no library's last bit of tanh shows."""
    return float("%.3g" % x)


def build(question):
    """(its entry in cases.json, its arrays)"""
    kind = question.options.get("out_type", "f32")
    answers = {question.expected: {}, **question.others}
    members = {name: None if name == REFUSES else "answer%d" % number for number, name in enumerate(answers)}
    arrays, found = dict(question.arrays), {}
    for name, told in answers.items():
        if name == REFUSES:
            continue
        told = dict(told)
        changed = {**question.arrays, **told.pop("arrays", {})}
        out, lse = definition.attention(changed, question.options, **told)
        arrays[members[name]] = found[name] = out
        if name == question.expected:
            arrays["lse"] = lse
    if question.expected != REFUSES:
        arrays["etalon_out"], arrays["etalon_lse"] = bits.attention(question.arrays, question.options)
    score, value = definition.largest(question.arrays, question.options)
    entry = {
        "id": question.id, "subject": question.subject, "asks": question.asks, "field": question.field,
        "semantics": question.section, "options": question.options,
        "answers": members, "expected": question.expected,
        "near": rounded(NEAR[kind] * value), "tolerance": rounded(((1 + score) * 1e-6 + (HALF_ULP if kind == "f16" else 0)) * value),
        "signed_zeros": question.signed_zeros,
    }
    for fault in faults(entry, arrays, found):
        raise SystemExit("%s: %s" % (question.id, fault))
    return entry, arrays


def faults(entry, arrays, found):
    """What would make a case say nothing: answers that cannot be told apart, bits that are not the definition's."""
    for a, b in itertools.combinations(found, 2):
        if all(same(x, y, 2 * entry["near"], entry["signed_zeros"]) for x, y in zip(found[a].values, found[b].values)):
            yield "'%s' and '%s' cannot be told apart" % (a, b)
    if entry["expected"] == REFUSES:
        return
    for name, truth in (("out", found[entry["expected"]]), ("lse", arrays["lse"])):
        for x, y in zip(arrays["etalon_" + name].values, truth.values):
            allowed = entry["tolerance"] if name == "out" else 1e-5 + 1e-6 * abs(y)
            if not same(x, y, allowed):
                yield "%s: the model's %r is not within %g of the definition's %r" % (name, x, allowed, y)


def text(entries):
    head = {"format": FORMAT, "see": "docs/conformance.md", "written by": "tests/conformance/make.py"}
    lines = ",\n".join(json.dumps(entry) for entry in entries)  # a case a line
    return json.dumps(head)[:-1] + ', "cases": [\n' + lines + "\n]}\n"


def check(entries, arrays):
    """What differs from the files, one a line. NaN being equal to nothing, the arrays are compared by their bytes."""
    if (HERE / "cases.json").read_text() != text(entries):
        yield "cases.json"
    there = {path.stem: path for path in (HERE / "cases").iterdir()}
    for name in sorted(set(there) ^ set(arrays)):
        yield "cases/%s.npz is %s" % (name, "left over" if name in there else "missing")
    for name in sorted(set(there) & set(arrays)):
        stored = read_npz(there[name])
        for member in sorted(set(stored) ^ set(arrays[name])):
            yield "cases/%s.npz: %s is in one only" % (name, member)
        for member in sorted(set(stored) & set(arrays[name])):
            a, b = stored[member], arrays[name][member]
            if (a.kind, a.shape, a.data()) != (b.kind, b.shape, b.data()):
                yield "cases/%s.npz: %s" % (name, member)


def everything():
    """(the entries of cases.json, {id: arrays})"""
    built = [build(question) for source in SOURCES for question in source.questions()]
    entries, arrays = [entry for entry, _ in built], {entry["id"]: content for entry, content in built}
    if len(arrays) != len(entries):
        raise SystemExit("two cases have one id")
    return entries, arrays


def main():
    entries, arrays = everything()
    if sys.argv[1:] == ["--check"]:
        different = list(check(entries, arrays))
        for line in different:
            print("tests/conformance: differs from what make.py makes: " + line)
        print("%d cases compared" % len(entries))
        return 1 if different else 0
    (HERE / "cases").mkdir(exist_ok=True)
    for path in (HERE / "cases").iterdir():
        if path.stem not in arrays:
            path.unlink()
    (HERE / "cases.json").write_text(text(entries))
    for name, content in arrays.items():
        write_npz(HERE / "cases" / (name + ".npz"), content)
    print("%d cases written" % len(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The tables of tools/conformance.py."""
import dataclasses
import json

import conformance_ask

LEGEND = '"-": this function has no such option, or none for this form of it; another function of the same library may.'


@dataclasses.dataclass
class Column:
    """What one library was asked. rows is {case id: (words, more about it, fault)}, or None for one that is absent."""
    heading: str
    function: str  # what exactly was called
    given: conformance_ask.Answers
    rows: dict
    held: bool  # to Etalon's bits

    def wrong(self):
        """How many cases are; one that is held and absent is one."""
        return int(self.held) if self.rows is None else sum(bool(fault) for _, _, fault in self.rows.values())

    def cell(self, case):
        if self.rows is None:
            return self.given.absent
        words, _, fault = self.rows[case.id]
        return "WRONG: " + words if fault else words


def subjects(cases):
    """(subject, its cases), in order."""
    result = {}
    for case in cases:
        result.setdefault(case.about["subject"], []).append(case)
    return result.items()


def short(text, most=170):
    """Long messages of others say at their end what is wrong."""
    return text if len(text) <= most else "... " + text[-most:].partition(" ")[2]


def notes(cases, asked):
    """Everything that a cell has no room for."""
    for column in asked:
        for case in cases:
            words, more, fault = column.rows[case.id] if column.rows else ("", "", "")
            if fault or more and words != "-":
                yield "%s, %s: %s" % (column.heading, case.id, short("; ".join(filter(None, (fault, more)))))


def asked_of(asked, form):
    """Lines: who, which version of it, and the function."""
    def state(given):
        return given.absent + (" (%s)" % short(given.why) if given.why else "") if given.absent else given.version
    return ["%s %s" % (column.heading, state(column.given)) + (form % column.function if column.function else "") for column in asked]


def grid(rows):
    widths = [max(len(row[i]) for row in rows if row[1:]) for i in range(max(map(len, rows)))]
    return [("  ".join(x.ljust(width) for x, width in zip(row, widths)) if row[1:] else row[0]).rstrip() for row in rows]


def as_text(cases, asked):
    rows = [["case", *(column.heading for column in asked)]]
    for subject, members in subjects(cases):
        rows += [[""], [subject]]
        rows += [["  " + case.id, *(column.cell(case) for column in asked)] for case in members]
    end = "Etalon: %d answers, %d wrong" % (len(cases) * sum(column.held for column in asked), sum(column.wrong() for column in asked))
    return "\n".join([*asked_of(asked, ": %s"), "", *grid(rows), "", LEGEND, *notes(cases, asked), "", end])


def as_markdown(cases, asked):
    lines = ["- " + line for line in asked_of(asked, ": `%s`")]
    for subject, members in subjects(cases):
        lines += ["", "**%s**" % subject, "", "| case | asks | %s |" % " | ".join(column.heading for column in asked)]
        lines += ["|---" * (len(asked) + 2) + "|"]
        lines += ["| %s | %s | %s |" % (case.id, case.about["asks"], " | ".join(column.cell(case) for column in asked)) for case in members]
    return "\n".join([*lines, "", LEGEND, "", *("- " + note.replace("|", "/") for note in notes(cases, asked))])


def as_json(cases, asked):
    return json.dumps({
        "asked": [{"name": column.heading, "function": column.function, "version": column.given.version, "absent": column.given.absent,
                   "why": column.given.why} for column in asked],
        "cases": [{
            "id": case.id, "subject": case.about["subject"], "asks": case.about["asks"], "expected": case.expected,
            "answers": {column.heading: column.rows and dict(zip(("answer", "more", "fault"), column.rows[case.id])) for column in asked},
        } for case in cases]}, indent=1)

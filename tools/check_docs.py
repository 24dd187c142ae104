#!/usr/bin/env python3
"""Checks that documents and sources point at what exists, and the plain rules of their text.

    python3 tools/check_docs.py [ROOT]

- relative links and #anchors of Markdown files, and anchors of docs/ named in other files, lead somewhere;
- README.md has less than 200 lines;
- every kernel of arch/kernel_table.h stands in docs/kernels.md, once that exists;
- fenced code whose info string names a file ("```c examples/hello.c") is a run of lines of that file, indented alike;
  in README.md all C and C++ names one;
- no tabs and no trailing blanks; no line names a package registry or a folder of somebody's machine.
Prints one line for each fault, with what to do about it; the exit code is 1 if there is one.
"""

import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import checker

README_LINES = 200
SOURCES = {".md", ".h", ".hpp", ".c", ".cc", ".py", ".sh", ".cmake", ".txt", ".in", ".json", ".yml", ".yaml", ".toml"}

# Spelt with blanks, for this file is checked too. Names of registries belong into the settings of whoever installs.
_REGISTRIES = ["pypi org", "pythonhosted org", "deb debian org", "security debian org", "snapshot debian org", "archive ubuntu com",
               "security ubuntu com", "ports ubuntu com", "anaconda org", "npmjs org", "crates io", "proxy golang org", "docker io",
               "ghcr io", "quay io", "conan io", "maven org"]
REGISTRY = re.compile(r"(?<![\w-])(?:" + "|".join(re.escape(r.replace(" ", ".")) for r in _REGISTRIES) + r")(?![\w-])")
# After a word, a brace or the like it is a folder of something else: $prefix/home/.
MACHINE_PATH = re.compile(r"(?<![\w.~})>*\]-])/(?:root|work|home|Users)/")

FENCE = re.compile(r" {0,3}(```+|~~~+)")
HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
LINK = re.compile(r"\]\(\s*(?:<([^>]*)>|([^\s)]*))(?:\s+[\"'][^)]*)?\s*\)|^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)")
ANCHOR_TAG = re.compile(r"<a\s+(?:id|name)=[\"']([^\"']+)[\"']")
QUOTE = re.compile(r"^```\w+ ([\w./-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UNQUOTED = re.compile(r"^ {0,3}(?:```+|~~~+)[ \t]*(?:c|cc|cpp|cxx|c\+\+)[ \t]*$", re.MULTILINE | re.IGNORECASE)
DOC_REFERENCE = re.compile(r"\b(docs/[\w./-]+\.md)#([\w-]+)")


def text_files(root):
    """{path: text} of what git has or would add; without git, of everything outside build folders."""
    try:
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        paths = sorted(os.fsdecode(p) for p in listed.split(b"\0") if p)
    except (OSError, subprocess.CalledProcessError):
        paths = sorted(p.relative_to(root).as_posix() for p in root.rglob("*"))
    texts = {}
    for path in paths:
        file = root / path
        parts = path.split("/")
        if parts[0].startswith("build") or ".git" in parts or "__pycache__" in parts or file.is_symlink() or not file.is_file():
            continue
        data = file.read_bytes()
        if b"\0" not in data[:8192]:
            texts[path] = data.decode("utf-8", errors="replace")
    return texts


def prose_lines(text):
    """(number, line) outside fenced code."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if fence is None and match:
            fence = match.group(1)
        elif fence is not None:
            if match and match.group(1).startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
        else:
            yield number, line


def anchors(text):
    """The anchors of a Markdown text, by GitHub's rule for headings."""
    found = set()
    for _, line in prose_lines(text):
        found.update(ANCHOR_TAG.findall(line))
        match = HEADING.match(line)
        if match:
            title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"<[^>]*>", "", match.group(1)))
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            unique, count = slug, 0
            while unique in found:
                count += 1
                unique = f"{slug}-{count}"
            found.add(unique)
    return found


def check_links(root, path, texts, anchors_of):
    for number, line in prose_lines(texts[path]):
        for match in LINK.finditer(re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line)):
            link = next((g for g in match.groups() if g is not None), "")
            if re.match(r"[A-Za-z][\w+.-]*:", link):
                continue
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            goal = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
            if target.startswith("/") or goal.split("/")[0] == "..":
                yield f"{path}:{number}: ({link}) leaves the project: write a path relative to this file"
            elif not (root / goal).exists():
                yield f"{path}:{number}: ({link}) leads nowhere: there is no {goal}"
            elif anchor and goal.endswith(".md") and anchor not in anchors_of(goal):
                yield f"{path}:{number}: ({link}) leads nowhere: {goal} has no heading #{anchor}"


def check_references(path, texts, anchors_of):
    for number, line in enumerate(texts[path].splitlines(), 1):
        for goal, anchor in DOC_REFERENCE.findall(line):
            if goal not in texts:
                yield f"{path}:{number}: {goal}#{anchor} leads nowhere: there is no {goal}"
            elif anchor not in anchors_of(goal):
                yield f"{path}:{number}: {goal}#{anchor} leads nowhere: {goal} has no heading #{anchor}"


def check_text(path, text):
    is_source = pathlib.PurePosixPath(path).suffix in SOURCES
    for number, line in enumerate(text.split("\n"), 1):
        if is_source and "\t" in line:
            yield f"{path}:{number}: has a tab: write spaces"
        if is_source and line != line.rstrip():
            yield f"{path}:{number}: ends in blanks: remove them"
        match = REGISTRY.search(line)
        if match:
            yield f"{path}:{number}: names the registry {match.group(0)}: leave the choice to the user's settings"
        match = MACHINE_PATH.search(line)
        if match:
            yield f"{path}:{number}: has the path {match.group(0)}... of one machine: write it relative to the project"


def check_quotes(path, texts):
    """Code in a document that says which file it is from, so that what readers copy is what the tests compile."""
    for match in QUOTE.finditer(texts[path]):
        number, source = texts[path].count("\n", 0, match.start()) + 1, match.group(1)
        if source not in texts:
            yield f"{path}:{number}: quotes {source}, which is missing: correct the path"
            continue
        indents = {line[:len(line) - len(line.lstrip(" "))] for line in texts[source].splitlines()}
        quoted = match.group(2).splitlines()
        if not quoted:
            yield f"{path}:{number}: quotes nothing of {source}: copy the lines"
            continue
        if not any("\n" + "".join(indent + line + "\n" if line else "\n" for line in quoted) in "\n" + texts[source]
                   for indent in indents):
            yield f"{path}:{number}: is no run of lines of {source}: copy it anew"
    if path == "README.md":
        for match in UNQUOTED.finditer(texts[path]):
            number = texts[path].count("\n", 0, match.start()) + 1
            yield f"{path}:{number}: code that nothing compiles: quote a file of examples/, and name it behind the language"


def check_kernels(texts):
    seam, listing = "arch/kernel_table.h", "docs/kernels.md"
    if seam not in texts or listing not in texts:
        return
    table = re.search(r"^struct KernelTable \{(.*?)^\};", texts[seam], re.MULTILINE | re.DOTALL)
    kernels = re.findall(r"\(\*(\w+)\)\s*\(", table.group(1)) if table else []
    if not kernels:
        yield f"{seam}:1: no kernel found in struct KernelTable: adapt tools/check_docs.py to how it is written now"
    for kernel in kernels:
        if re.search(rf"`{kernel}\b", texts[listing]) is None:   # in code marks: fold and merge are also plain words
            yield f"{listing}:1: the kernel `{kernel}` is missing: describe it"


def check(root):
    """Every fault as "path:line: what to do"."""
    texts = text_files(root)
    if not texts:
        return [f"{root}: no text files here: pass the root of the project"]
    cache = {}

    def anchors_of(path):
        if path not in cache:
            cache[path] = anchors(texts.get(path, ""))
        return cache[path]

    faults = []
    for path in texts:
        faults += check_text(path, texts[path])
        if path.endswith(".md"):
            faults += check_links(root, path, texts, anchors_of)
            faults += check_quotes(path, texts)
        else:
            faults += check_references(path, texts, anchors_of)
    length = len(texts.get("README.md", "").splitlines())
    if length >= README_LINES:
        faults.append(f"README.md:{README_LINES}: has {length} lines, less than {README_LINES} are allowed: move some to docs/")
    return faults + list(check_kernels(texts))


def main():
    return checker.run(check)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks which way the includes of lib, arch, cli, tests and bench point, and the include guards of their headers.

    python3 tools/check_layering.py [ROOT]

Prints one line for each fault, with what to do about it; the exit code is 1 if there is one.
"""

import re
import sys

import checker
from source_text import strip_comments

# THE arrows. A file belongs to the first layer whose pattern its path matches. It may include files of its own layer, of the layers
# in the second column, the C++ standard library, and the foreign headers that the third pattern matches.
# Backends see no other backend: then their agreement in every bit is evidence, and no wide code reaches a narrow object.
_STAGE = "dispatch.h kernel_table.h visible.h key_rows.h base"
_SEAM = "dispatch.h kernel_table.h visible.h cpu.h base attention"   # for tests and benches that look below the public interface
LAYERS = [
    # layer          path                                    may include                                      foreign headers
    ("base",         r"lib/base/",                           "",                                              r"xmmintrin\.h"),
    ("quant",        r"lib/quant/",                          _STAGE,                                          None),
    ("attention",    r"lib/attention/",                      _STAGE + " quant",                               None),
    ("compressed",   r"lib/compressed/",                     _STAGE + " quant attention",                     None),
    ("spectral",     r"lib/spectral/",                       _STAGE + " quant attention compressed",          r"Eigen/.*"),
    ("public",       r"lib/include/etalon/",                 "",                                              r"std\w+\.h"),
    ("api",          r"lib/api/",                            _STAGE + " cpu.h quant attention spectral compressed public", None),
    ("thread_pool",  r"lib/thread_pool/",                    "public",                                        r"pthread\.h|sched\.h|unistd\.h|sys/\w+\.h|signal\.h|errno\.h|time\.h"),
    ("cpu.h",        r"arch/cpu\.h$",                        "base",                                          None),
    ("kernel_table.h", r"arch/kernel_table\.h$",             "cpu.h base",                                    None),
    ("visible.h",    r"arch/visible\.h$",                     "kernel_table.h base",                           None),
    ("key_rows.h",   r"arch/key_rows\.h$",                    "kernel_table.h base",                           None),
    ("dispatch.h",   r"arch/dispatch\.h$",                   "kernel_table.h base",                           None),
    ("cpu.cc",       r"arch/cpu\.cc$",                       "cpu.h dispatch.h kernel_table.h base",          r"cpuid\.h|sys/auxv\.h"),
    ("dispatch.cc",  r"arch/dispatch\.cc$",                  "cpu.h dispatch.h kernel_table.h base",          None),
    ("scalar",       r"arch/scalar/",                        "kernel_table.h visible.h key_rows.h base",      None),
    ("highway",      r"arch/highway/",                       "kernel_table.h visible.h key_rows.h base",      r"hwy/.*"),
    ("xsimd",        r"arch/xsimd/",                         "kernel_table.h base",                           r"xsimd/.*"),
    ("cli/check",    r"cli/check/",                          _SEAM + " tests cli cli/engine",                 r".*"),
    ("cli/speed",    r"cli/speed\.(?:h|cc)$",                "bench cli cli/engine",                          r".*"),
    ("cli/engine",   r"cli/engine\.(?:h|cc)$",               "cli public",                                    r".*"),
    ("cli/bench",    r"cli/bench\.cc$",                     "cli cli/engine bench",                          r".*"),
    ("cli",          r"cli/",                                "cli/engine cli/check cli/speed",                r".*"),
    ("tests/cli",    r"tests/cli/",                          _SEAM + " public tests cli cli/engine cli/check", r".*"),
    ("tests/fuzz/npz", r"tests/fuzz/npz_",                   "tests cli",                                     None),
    ("tests",        r"tests/",                              _SEAM + " public",                               r".*"),
    ("bench",        r"bench/",                              _SEAM + " public tests",                         r".*"),
]

# Not the hot path: headers that become the user's code, and the pool, whose purpose is to own threads.
HOST_CODE = {"public", "thread_pool"}

# Standard headers that library sources (lib, arch) do not include, and why.
_ALLOCATES = "the hot path allocates nothing: take memory from the caller, in plain pointers and sizes"
_INLINE = "its inline functions, compiled wide, may be linked into narrow code: write the loop"
_THREADS = "the library owns no threads or locks: cut the range with lib/base/parallel.h, the caller runs the parts"
_THROWS = "nothing is thrown across the C ABI: return a status"
_PRINTS = "a library does not print, and streams run code before main: return a status"
BANNED = {
    **dict.fromkeys("vector string memory functional map set deque list unordered_map unordered_set new".split(), _ALLOCATES),
    **dict.fromkeys("algorithm numeric".split(), _INLINE),
    **dict.fromkeys("thread mutex shared_mutex condition_variable future".split(), _THREADS),
    **dict.fromkeys("exception stdexcept".split(), _THROWS),
    **dict.fromkeys("iostream ostream istream sstream fstream".split(), _PRINTS),
    "random": "the library draws no random numbers: the caller passes a seed or the data",
}

SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cxx", ".inc"}
TOPS = ["lib", "arch", "cli", "tests", "bench"]
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[ \t]*(.*?)[ \t]*$", re.MULTILINE)
PUBLIC_PREFIX = "lib/include/"   # public headers are included as <etalon/...>


def layer_of(path):
    for name, pattern, allowed, foreign in LAYERS:
        if re.match(pattern, path):
            return name, allowed.split(), foreign
    return None


def is_standard(header):
    return re.fullmatch(r"[a-z_0-9]+", header) is not None   # C++ names have no ".h"


def check_include(root, path, target):
    """The fault of one include of the file `path`, or None. `target` still has its quotes or angle brackets."""
    name, allowed, foreign = layer_of(path)
    match = re.fullmatch(r'"([^"]+)"|<([^>]+)>', target)
    if match is None:
        return f"#include {target} cannot be followed: write the path itself"
    quoted, angled = match.groups()
    if angled and angled.startswith("etalon/"):
        goal = PUBLIC_PREFIX + angled
    elif angled:
        if angled.split("/")[0] in TOPS and (root / angled).is_file():
            return f'write "{angled}" in quotes: angle brackets are for other projects\' headers'
        if is_standard(angled):
            if angled in BANNED and path.startswith(("lib/", "arch/")) and name not in HOST_CODE:
                return f"remove <{angled}>: {BANNED[angled]}"
        elif not (foreign and re.fullmatch(foreign, angled)):
            return f"remove <{angled}>: {name} may not use this foreign header (tools/check_layering.py, LAYERS)"
        return None
    else:
        goal = quoted
        if ".." in goal.split("/") or goal.split("/")[0] not in TOPS or "/" not in goal:
            return f'"{goal}" does not start at the root: write "folder/of/it.h", or <...> for other projects\' headers'
        if goal.startswith(PUBLIC_PREFIX):
            return f"write <{goal[len(PUBLIC_PREFIX):]}>: users include public headers so, and we do as they"
    if not (root / goal).is_file():
        return f"{target} does not exist: correct the path"
    target_layer = layer_of(goal)
    if target_layer is None:
        return f"{target} has no layer: add a row to LAYERS in tools/check_layering.py"
    if target_layer[0] != name and target_layer[0] not in allowed:
        return f"remove {target}: {name} may include only {', '.join([name] + allowed)} of the project, not {target_layer[0]}"
    return None


def guard_name(path):
    """Public headers are named after the path that users write, which begins with etalon/ already."""
    name = path[len(PUBLIC_PREFIX):] if path.startswith(PUBLIC_PREFIX) else "etalon/" + path
    return re.sub(r"\W", "_", name).upper() + "_"


def check_guard(path, text):
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    guard = guard_name(path)
    # Highway includes such a file once for each target, which flips the macro back and forth.
    toggle = [f"#if defined({guard}) == defined(HWY_TARGET_TOGGLE)", f"#ifdef {guard}", f"#undef {guard}", "#else",
              f"#define {guard}", "#endif"]
    toggles = path.startswith("arch/highway/") and path.endswith("-inl.h") and lines[:6] == toggle
    if lines[:2] != [f"#ifndef {guard}", f"#define {guard}"] and not toggles:
        return f"begin with #ifndef {guard} and #define of the same: the guard is the path"
    if lines[-1] != "#endif":
        return "end with the #endif of the include guard"
    return None


def check(root):
    """Every fault as "path:line: what to do"."""
    faults = []
    paths = [p for top in TOPS for p in sorted((root / top).rglob("*")) if p.suffix in SUFFIXES and p.is_file()]
    if not paths:
        return [f"{root}: no sources here: pass the root of the project"]
    for file in paths:
        path = file.relative_to(root).as_posix()
        if layer_of(path) is None:
            faults.append(f"{path}:1: this folder has no layer: add a row to LAYERS in tools/check_layering.py")
            continue
        text = strip_comments(file.read_text(encoding="utf-8"))
        for match in INCLUDE.finditer(text):
            fault = check_include(root, path, match.group(1))
            if fault:
                faults.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {fault}")
        if file.suffix in (".h", ".hpp"):
            fault = check_guard(path, text)
            if fault:
                faults.append(f"{path}:1: {fault}")
    return faults


def main():
    return checker.run(check)


if __name__ == "__main__":
    sys.exit(main())

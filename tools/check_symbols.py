#!/usr/bin/env python3
"""Checks what compiled code defines and needs.

    python3 tools/check_symbols.py [--nm NM] table OBJECT...   objects of arch/*/table.cc, one instruction set each
    python3 tools/check_symbols.py [--nm NM] [--objdump OBJDUMP] xsimd OBJECT...     objects of arch/xsimd/*.cc
    python3 tools/check_symbols.py [--nm NM] [--objdump OBJDUMP] highway OBJECT...   objects of arch/highway/*.cc
    python3 tools/check_symbols.py [--nm NM] [--objdump OBJDUMP] baseline OBJECT...  what is not for one instruction set
    python3 tools/check_symbols.py [--nm NM] archive LIBRARY   libetalon.a
    python3 tools/check_symbols.py [--nm NM] exports LIST LIBRARY... --headers HEADER...

A table is compiled for one instruction set and exports one symbol, the table: of anything else, a linker might take this object's
copy for code that runs on lesser processors.

A table of arch/xsimd is one of XSIMD_TABLES, and all its vectors are of the architecture of xsimd that stands there, which fuses its
fma. Without optimisation constructors of xsimd's registers stay as weak copies; their names hold that architecture or one that it
builds on, so that no narrow code calls them. On aarch64, where NEON is no more than the baseline, all of xsimd may leave weak copies, and
does. The table for AVX2 has no instruction of AVX-512.

An object of arch/highway holds its stage for every target, each in a namespace of its own (TARGETS), and exports nothing else; that
of table.cc exports the tables and holds no code. Nothing is defined in the namespace of a fallback target, whose MulAdd rounds twice.
Inline functions of headers may come out as weak copies, which a linker may hand to narrow code: outside the namespaces of targets no
instruction is wider than the baseline (x86-64: disassembled with --objdump or $OBJDUMP). What Highway itself emits as weak copies
may be wide in its own namespace of the same targets alone (hwy::N_AVX2), where no narrow code calls it.

Detection and choice run before anybody knows what the processor can do: no instruction of theirs is wider than the baseline,
whatever flags the user has; of the rest that is compiled once, none where the user has no such flags.

The archive needs nothing that allocates, throws, prints, locks or ends the program.

A library, shared or static, exports the names of LIST (one a line, sorted), all of them and no others; the same ones are declared
in its public headers in C.

The nm of a cross build is named by --nm or $NM. Prints one line for each fault, with what to do about
it; the exit code is 1 if there is one, 2 if nm or objdump fails.
"""

import argparse
import os
import re
import subprocess
import sys

from source_text import strip_comments

TABLE = re.compile(r"etalon::k\w+Table")

# Tables of arch/xsimd: the architecture of their vectors, and those whose registers it is built from. Not plain avx2, whose fma is a
# multiply and an add.
XSIMD_TABLES = {
    "etalon::kXsimdAvx2Table": ("xsimd::fma3<xsimd::avx2>", ["xsimd::avx2"]),
    "etalon::kXsimdAvx512Table": ("xsimd::avx512bw", ["xsimd::avx512dq", "xsimd::avx512cd", "xsimd::avx512f"]),
    "etalon::kXsimdNeon64Table": ("xsimd::neon64", ["xsimd::neon"]),
}
XSIMD_VECTOR = re.compile(r"xsimd::batch(?:_bool)?<[\w ]+, ([\w:<> ]+?) ?>(?=[,)&*:\[]|$)")
XSIMD_WEAK = re.compile(r"xsimd::types::(?:simd_register<[\w ]+, ([\w:<> ]+?) ?>|(simd_avx512_bool_register)<[\w ]+>)::.+")

# Tables and namespaces of arch/highway; a new one is a decision, and wants its CPU features in table.cc.
HIGHWAY_TABLE = re.compile(r"etalon::kHighway(?:Avx2|Avx3|Neon)Table")
TARGETS = ("N_AVX2", "N_AVX3", "N_NEON_WITHOUT_AES")
# A mangled name in a namespace of etalon or Highway that is called after a target. The length says where that ends.
IN_TARGET = re.compile(r"_Z+(?:GV|T[VTIS])?Z*N[rVKRO]*(?:6(etalon)|3(hwy))(\d+)(N_[A-Z0-9_]+)")

# Markers that address sanitizer adds to an object.
SANITIZER_EXPORT = re.compile(r"__odr_asan.*|___asan_globals_registered")

# Markers that linkers add to a shared library.
LINKER_EXPORT = re.compile(r"_init|_fini|_edata|_end|__bss_start(?:__)?|__bss_end__|_bss_end__|__end__")

# In a public header, a function with the macro that exports it (first group) or without.
DECLARATION = re.compile(r"(?:\b(ETALON_API|ETALON_STATUS)\b[^;{}()]*?)?\b(etalon_\w+)\s*\(")

# What an object may need from outside, and why.
_COMPILER = "the compiler emits it by itself"
_SANITIZER = "part of a sanitizer build"
TABLE_NEEDS = {
    r"memset|memcpy|memmove|memcmp": _COMPILER,
    r"__stack_chk_(?:fail|guard)": _COMPILER,
    r"_GLOBAL_OFFSET_TABLE_": _COMPILER,
    r"__(?:asan|ubsan|tsan|msan|sanitizer)_\w+|__(?:start|stop)_asan_globals": _SANITIZER,
}
ARCHIVE_NEEDS = {
    **TABLE_NEEDS,
    r"getenv": "dispatch reads ETALON_TARGET",
    r"strcmp": "dispatch compares names of tables",
    r"__aarch64_(?:cas|swp|ld(?:add|clr|eor|set))\d+_\w+": "atomics, from the library that comes with the compiler",
    r"getauxval": "features of aarch64 processors",
    r"fe(?:get|set|hold|update)(?:env|except|round)|feclearexcept": "the environment where we know no register to set",
}

# Why common offenders are not allowed, first match first.
ADVICE = [
    (r"sqrt[fl]?", "an instruction, unless errno is to be set: compile with -fno-math-errno, and call __builtin_sqrt"),
    (r"fma[fl]?", "slow, and not every C library rounds it right: use Fma of lib/base/arithmetic.h"),
    (r"(?:exp|log|tanh|exp2|log2|pow|sin|cos|rint|floor|round\w*)[fl]?", "its bits differ between C libraries: use lib/base/arithmetic.h"),
    (r"operator (?:new|delete).*|(?:m|c|re)alloc|free|aligned_alloc|posix_memalign", "nothing is allocated: take memory from the caller"),
    (r"__cxa_guard_\w+", "a lock hides in a static local: make it constexpr, or compile with -fno-threadsafe-statics"),
    (r"__cxa_\w+|__gxx_personality\w*|_Unwind_\w+|std::terminate.*|std::__throw_\w+.*", "nothing is thrown: return a status"),
    (r"pthread_\w+|std::thread.*|std::mutex.*", "the library owns no threads or locks: leave them to the caller"),
    (r"\w*printf\w*|puts|putchar|fwrite|fputs|std::(?:cout|cerr|ios_base).*|std::.*ostream.*", "a library does not print: return a status"),
    (r"_?exit|abort|__assert_fail|std::abort.*|raise", "a library does not end the program: return a status"),
    (r"hwy::.*", "a function of Highway's library, which is not linked: do without it (HWY_ASSERT and lists of targets need some)"),
    (r"etalon::.*", "another part of the library: make it static or typed by the table, in a header"),
]
DEFAULT_ADVICE = "not in the list of tools/check_symbols.py: do without it, or add it there with the reason"


class ToolFailed(Exception):
    pass


def run_tool(option, tool, *arguments):
    """The output of nm or objdump; the last argument is the file."""
    try:
        done = subprocess.run([tool, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                              env={**os.environ, "LC_ALL": "C"})
    except OSError as error:
        raise ToolFailed(f"{tool}: {error.strerror}: name {option} by --{option} or ${option.upper()}") from None
    if done.returncode != 0:
        raise ToolFailed(f"{arguments[-1]}: {tool} cannot read it: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return done.stdout


def read_symbols(nm, path, *options):
    """[(type letter, demangled name)] of the external symbols of an object, or of all members of an archive."""
    symbols = []
    for line in run_tool("nm", nm, "-C", "--extern-only", *options, path).splitlines():
        match = re.fullmatch(r"(?:[0-9A-Fa-f]+)? +([A-Za-z]) (.+)", line)
        if match:
            symbols.append((match.group(1), match.group(2).split("@")[0]))
    return symbols


def read_names(nm, path):
    """[(type letter, mangled name, demangled name)] of all symbols of an object, local ones too."""
    def lines(*options):
        found = run_tool("nm", nm, "-p", *options, path).splitlines()
        return [match.groups() for match in (re.fullmatch(r"(?:[0-9A-Fa-f]+)? +([A-Za-z]) (.+)", line) for line in found) if match]
    return [(letter, mangled, demangled) for (letter, mangled), (_, demangled) in zip(lines(), lines("-C"))]


def is_undefined(letter):
    return letter in "Uvw"   # the small ones: weak, without a definition here


def needs_faults(path, names, allowed):
    faults = []
    for name in sorted(names):
        if any(re.fullmatch(pattern, name) for pattern in allowed):
            continue
        advice = next((text for pattern, text in ADVICE if re.fullmatch(pattern, name)), DEFAULT_ADVICE)
        faults.append(f"{path}: needs {name}: {advice}")
    return faults


def check_table(nm, path, may_be_weak=lambda name: False):
    symbols = read_symbols(nm, path)
    defined = [(letter, name) for letter, name in symbols
               if not is_undefined(letter) and not SANITIZER_EXPORT.fullmatch(name) and not (letter in "VWu" and may_be_weak(name))]
    tables = [name for letter, name in defined if TABLE.fullmatch(name) and letter in "RDB"]
    faults = []
    if len(tables) != 1:
        faults.append(f"{path}: defines {len(tables)} tables ({', '.join(tables) or 'none'}): define one, extern const etalon::k...Table")
    for letter, name in defined:
        if name not in tables:
            kind = "weak, a copy for narrow code may come from here" if letter in "VWu" else f"type {letter}"
            faults.append(f"{path}: also exports {name} ({kind}): make it static, or put it into an anonymous namespace")
    return faults + needs_faults(path, {name for letter, name in symbols if is_undefined(letter)}, TABLE_NEEDS)


def check_xsimd(nm, objdump, path):
    names = read_names(nm, path)
    table = next((name for letter, _, name in names if letter in "RDB" and name in XSIMD_TABLES), None)
    if table is None:
        return [f"{path}: defines none of {', '.join(XSIMD_TABLES)}: if the fma of its architecture is one instruction, add its table to XSIMD_TABLES"]
    architecture, parts = XSIMD_TABLES[table]

    def may_be_weak(name):
        if architecture == "xsimd::neon64":   # in every processor of aarch64: no code is narrower than these copies
            return re.search(r"\b(?:xsimd|std)::|^_ZN(?:5xsimd|St)", name) is not None   # nm cannot read all names of clang
        match = XSIMD_WEAK.fullmatch(name)
        return match is not None and ((match.group(1) or "").replace("> >", ">>") in [architecture, *parts]
                                      or match.group(2) is not None and "xsimd::avx512f" in parts)
    faults = check_table(nm, path, may_be_weak)
    others = {vector for _, _, name in names for vector in XSIMD_VECTOR.findall(name) if vector.replace("> >", ">>") != architecture}
    faults += [f"{path}: {table} has vectors of {other}: {architecture} alone is known to give its bits" for other in sorted(others)]
    if is_x86_64(path) and "xsimd::avx512f" not in parts:
        faults += [f"{path}: {mangled} has {instruction}: {table} does not ask the processor for AVX-512; its flags do not undo one of the user"
                   for mangled, instruction in sorted(wide_functions(objdump, path, is_avx512).items())]
    return faults


def target_of(mangled):
    """("etalon" or "hwy", namespace) where a name lies in the namespace of a target, else (None, None)."""
    match = IN_TARGET.match(mangled)
    return (match.group(1) or match.group(2), match.group(4)[:int(match.group(3))]) if match else (None, None)


def unknown_targets(mangled):
    """Namespaces of targets that a name mentions, as its own or in the type of an argument, and that have no table."""
    found = {name[:int(length)] for length, name in re.findall(r"(?<!\d)(\d+)(N_[A-Z0-9_]+)", mangled)}
    return sorted(found - set(TARGETS))


def is_wide(code):
    """Whether an instruction of x86-64, from its bytes, is more than SSE2: VEX, EVEX or XOP, the opcode maps 0f 38 and 0f 3a (SSSE3
    and later), popcnt, lzcnt and those of SSE3. Not tzcnt: what g++ writes as "rep bsf" is meant to run on any processor."""
    prefixes, at = set(), 0
    while at < len(code) and code[at] in b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3":
        prefixes.add(code[at])
        at += 1
    opcode = code[at:]
    if opcode[:1] in (b"\xc4", b"\xc5", b"\x62"):
        return True
    if opcode[:1] == b"\x8f":
        return len(opcode) > 1 and opcode[1] & 0x1f >= 8
    if opcode and opcode[0] & 0xf0 == 0x40:   # REX
        opcode = opcode[1:]
    if len(opcode) < 2 or opcode[0] != 0x0f:
        return False
    second = opcode[1]
    return (second in (0x38, 0x3a, 0x7c, 0x7d, 0xd0) or (0xf3 in prefixes and second in (0x12, 0x16, 0xb8, 0xbd))
            or (0xf2 in prefixes and second in (0x12, 0xf0)))


def is_x86_64(path):
    with open(path, "rb") as file:
        start = file.read(20)
    return start[:4] == b"\x7fELF" and start[18:20] == b"\x3e\0"


def is_avx512(code):
    """Whether an instruction of x86-64 has the prefix EVEX, behind whatever else."""
    return code.lstrip(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")[:1] == b"\x62"


def wide_functions(objdump, path, is_wide=is_wide):
    """{mangled name: its first instruction beyond the baseline} of the functions that have one."""
    found, function = {}, "?"
    for line in run_tool("objdump", objdump, "-d", "-w", path).splitlines():
        match = re.fullmatch(r"[0-9a-f]+ <(.+)>:", line)
        if match:
            function = match.group(1)
            continue
        # Both of GNU ("0:\tc5 f8 77  \tvzeroupper") and of LLVM ("0: c5 f8 77  \tvzeroupper").
        match = re.match(r"\s*[0-9a-f]+:\s+((?:[0-9a-f]{2}\s)+)\s*(.*)", line)
        if match and is_wide(bytes.fromhex(match.group(1))):
            found.setdefault(function, " ".join(match.group(2).split()))
    return found


def check_highway(nm, objdump, path):
    names = read_names(nm, path)
    defined = [symbol for symbol in names if not is_undefined(symbol[0]) and not SANITIZER_EXPORT.fullmatch(symbol[2])]
    exported = [symbol for symbol in defined if symbol[0].isupper() and symbol[0] != "N" or symbol[0] == "u"]
    has_tables = any(TABLE.fullmatch(name) for _, _, name in exported)
    demangle = {mangled: name for _, mangled, name in names}
    faults = []
    for letter, mangled, name in exported:
        library, target = target_of(mangled)
        weak = letter in "VWu"
        if has_tables:
            if not HIGHWAY_TABLE.fullmatch(name) and TABLE.fullmatch(name):
                faults.append(f"{path}: exports {name}, a table that nobody knows: if its target fuses MulAdd, add it to HIGHWAY_TABLE and TARGETS")
            elif not HIGHWAY_TABLE.fullmatch(name):
                faults.append(f"{path}: exports {name} beside tables: move it to the file of its stage")
        elif not (library == "etalon" and target in TARGETS) and not weak:
            faults.append(f"{path}: exports {name} (type {letter}) outside the namespaces of targets: make it static, or put it into HWY_NAMESPACE")
    for _, mangled, name in defined:
        for target in unknown_targets(mangled):
            faults.append(f"{path}: defines {name}: {target} is no target with a table, and its MulAdd may round twice: "
                          "hold code for it back with ETALON_HIGHWAY_EXACT")
    if is_x86_64(path):
        local = {mangled for letter, mangled, _ in defined if letter.islower() and letter != "u"}
        for mangled, instruction in sorted(wide_functions(objdump, path).items()):
            library, target = target_of(mangled)
            if target in TARGETS:
                continue
            kind = "static" if mangled in local else "weak, so that narrow code may get this copy"
            faults.append(f"{path}: {demangle.get(mangled, mangled)} ({kind}) has {instruction}: put it into HWY_NAMESPACE, "
                          "or before HWY_BEFORE_NAMESPACE")
    needed = {name for letter, mangled, name in names if is_undefined(letter)
              and not (target_of(mangled)[0] == "etalon" and target_of(mangled)[1] in TARGETS)}
    return faults + needs_faults(path, needed, TABLE_NEEDS)


def check_baseline(objdump, path):
    if not is_x86_64(path):
        return []
    return [f"{path}: {mangled} has {instruction}: no flag of ours asks for it, and where a user's may not, ETALON_BASELINE_FLAGS undo it (cmake/EtalonFlags.cmake)"
            for mangled, instruction in sorted(wide_functions(objdump, path).items())]


def check_archive(nm, path):
    symbols = read_symbols(nm, path)
    defined = {name for letter, name in symbols if not is_undefined(letter)}
    if not any(TABLE.fullmatch(name) for name in defined):   # bytecode for the linker, say, would have no undefined names either
        return [f"{path}: {nm} sees no table in it: build without link-time optimisation, and pass libetalon.a"]
    return needs_faults(path, {name for letter, name in symbols if is_undefined(letter)} - defined, ARCHIVE_NEEDS)


def read_list(path):
    """({name: its line}, faults)"""
    lines, faults, last = {}, [], ""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file.read().splitlines(), 1):
            if re.fullmatch(r"etalon_\w+", line) is None:
                faults.append(f'{path}:{number}: "{line}" is no exported name: write one name a line, and nothing else')
                continue
            if line <= last:
                faults.append(f"{path}:{number}: {line} comes after {last}: sort the list, each name once")
            lines[line], last = number, line
    return lines, faults


def read_declarations(path):
    """([(line, name)] of what a public header exports, faults)"""
    with open(path, encoding="utf-8") as file:
        text = strip_comments(file.read())
    # Macros are no declarations; their lines stay, for the numbers.
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda macro: "\n" * macro.group(0).count("\n"), text, flags=re.MULTILINE)
    declared, faults = [], []
    for match in DECLARATION.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 1
        if match.group(1):
            declared.append((line, match.group(2)))
        else:
            faults.append(f"{path}:{line}: {match.group(2)} has no ETALON_API or ETALON_STATUS: begin with one of them")
    return declared, faults


def check_exports(nm, listed, libraries, headers):
    lines, faults = read_list(listed)
    declared = set()
    for header in headers:
        found, more = read_declarations(header)
        faults += more
        declared.update(name for _, name in found)
        faults += [f"{header}:{line}: {name} is not in {listed}: add it there, and to CHANGELOG.md"
                   for line, name in found if name not in lines]
    faults += [f"{listed}:{line}: {name} is declared in no header: declare it, or remove it here and say so in CHANGELOG.md"
               for name, line in lines.items() if name not in declared]
    for path in libraries:
        static = path.endswith(".a")
        symbols = read_symbols(nm, path, *([] if static else ["-D"]))
        defined = {name for letter, name in symbols if not is_undefined(letter) and not LINKER_EXPORT.fullmatch(name)}
        for name in sorted(defined - lines.keys()):
            if not static or name.startswith("etalon_"):
                faults.append(f"{path}: exports {name}: hide it, or add it to {listed}, a public header and CHANGELOG.md")
            elif re.fullmatch(r"[^_\W]\w*(?:\(.*)?", name):   # what is in a namespace, parts of the archive need of each other
                faults.append(f"{path}: takes the name {name} from users: put it into namespace etalon, or make it static")
        for name in sorted(lines.keys() - defined):
            faults.append(f"{path}: does not export {name}: define it after its declaration, or remove it from {listed}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nm", default=os.environ.get("NM") or "nm", help="default: $NM or nm")
    parser.add_argument("--objdump", default=os.environ.get("OBJDUMP") or "objdump", help="default: $OBJDUMP or objdump")
    parser.add_argument("mode", choices=["table", "xsimd", "highway", "baseline", "archive", "exports"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--headers", nargs="+", metavar="HEADER", help="public headers in C, for exports")
    args = parser.parse_args()
    if (args.mode == "exports") != bool(args.headers) or (args.mode == "exports" and len(args.files) < 2):
        parser.error("write: exports LIST LIBRARY... --headers HEADER..., or another mode without --headers")
    try:
        if args.mode == "exports":
            faults = check_exports(args.nm, args.files[0], args.files[1:], args.headers)
        elif args.mode == "highway":
            faults = [fault for path in args.files for fault in check_highway(args.nm, args.objdump, path)]
        elif args.mode == "xsimd":
            faults = [fault for path in args.files for fault in check_xsimd(args.nm, args.objdump, path)]
        elif args.mode == "baseline":
            faults = [fault for path in args.files for fault in check_baseline(args.objdump, path)]
        else:
            check_file = check_table if args.mode == "table" else check_archive
            faults = [fault for path in args.files for fault in check_file(args.nm, path)]
    except ToolFailed as error:
        print(error)
        return 2
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

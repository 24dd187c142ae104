"""Sees each checker of tools/ pass on a small good tree and fail, with the right line, on each small bad one."""

import contextlib
import importlib
import io
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))


class TreeTest(unittest.TestCase):
    """A tree of small files in a temporary folder, and one checker to run on it."""

    tool = ""
    good = {}   # the smallest tree that passes

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "project"
        self.write(self.good)

    def write(self, files):
        for path, text in files.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def run_tool(self, *arguments):
        """(exit code, output). In this process: a hundred starts of Python would take most of the time."""
        output = io.StringIO()
        with mock.patch.object(sys, "argv", [self.tool, *map(str, arguments)]), contextlib.redirect_stdout(output):
            code = importlib.import_module(self.tool).main()
        return code, output.getvalue()

    def assert_passes(self, files=None):
        self.write(files or {})
        self.assertEqual(self.run_tool(self.root), (0, ""))

    def assert_fails(self, files, *beginnings):
        """One line for each of the beginnings and no other. A beginning may be cut by "..."; what follows is anywhere later."""
        self.write(files)
        code, output = self.run_tool(self.root)
        self.assertEqual(code, 1, output)
        lines = output.splitlines()
        self.assertEqual(len(lines), len(beginnings), output)
        for line, beginning in zip(lines, beginnings):
            start, _, rest = beginning.partition("...")
            self.assertTrue(line.startswith(start) and rest in line[len(start):], f"{line!r} is not {beginning!r}")


def header(path, body=""):
    guard = ("" if path.startswith("etalon/") else "ETALON_") + "".join(c if c.isalnum() else "_" for c in path).upper() + "_"
    return f"// {path}: for a test.\n#ifndef {guard}\n#define {guard}\n{body}#endif  // {guard}\n"


class LayeringTest(TreeTest):
    tool = "check_layering"
    good = {
        **{path: header(path) for path in ["lib/base/types.h", "lib/quant/layout.h", "lib/spectral/basis.h", "lib/compressed/bar.h",
                                           "arch/cpu.h", "arch/visible.h", "arch/scalar/score-inl.h", "arch/highway/tail-inl.h", "cli/text.h",
                                           "bench/d.h"]},
        "lib/include/etalon/etalon.h": header("etalon/etalon.h", "#include <stddef.h>\n"),
        "arch/kernel_table.h": header("arch/kernel_table.h", '#include "arch/cpu.h"\n#include "lib/base/types.h"\n'),
        "arch/dispatch.h": header("arch/dispatch.h", '#include "arch/kernel_table.h"\n'),
        "arch/dispatch.cc": '#include "arch/dispatch.h"\n#include "arch/cpu.h"\n#include <cstring>\n',
        "arch/scalar/table.cc": '#include "arch/kernel_table.h"\n#include "arch/scalar/score-inl.h"  // Scores\n',
        "lib/attention/attention.h": header("lib/attention/attention.h", '#include "arch/dispatch.h"\n#include "lib/quant/layout.h"\n'),
        "lib/spectral/basis.cc": '#include <Eigen/Dense>\n#include "lib/attention/attention.h"\n#include "lib/spectral/basis.h"\n',
        "lib/api/c_api.cc": '#include <etalon/etalon.h>\n#include "lib/spectral/basis.h"\n#include "lib/compressed/bar.h"\n',
        "cli/engine.h": header("cli/engine.h", "#include <vector>\n"),
        "cli/engine.cc": '#include "cli/engine.h"\n#include <etalon/etalon.h>\n',
        "lib/thread_pool/pool.cc": "#include <etalon/etalon.h>\n#include <pthread.h>\n#include <new>\n",
        "cli/bench.cc": '#include <CLI/CLI.hpp>\n#include "bench/d.h"\n#include "cli/engine.h"\n#include "cli/text.h"\n',
        "cli/main.cc": '#include <CLI/CLI.hpp>\n#include "cli/engine.h"\n',
        "tests/a_test.cc": '#include <doctest/doctest.h>\n#include <etalon/etalon.h>\n#include "lib/attention/attention.h"\n#include <vector>\n',
        "tests/cli/b_test.cc": '#include "cli/engine.h"\n',
        "bench/c_bench.cc": '#include <benchmark/benchmark.h>\n#include "arch/dispatch.h"\n',
    }

    def test_good(self):
        self.assert_passes()

    def test_arrows_that_do_not_exist(self):
        for path, included in [
                ("lib/base/x.cc", "arch/kernel_table.h"),
                ("lib/base/x.cc", "lib/attention/attention.h"),
                ("lib/quant/x.cc", "lib/attention/attention.h"),
                ("lib/attention/x.cc", "lib/spectral/basis.h"),
                ("lib/attention/x.cc", "lib/compressed/bar.h"),
                ("lib/attention/x.cc", "arch/cpu.h"),
                ("lib/attention/x.cc", "arch/scalar/score-inl.h"),
                ("arch/scalar/x.cc", "arch/highway/tail-inl.h"),
                ("arch/highway/x.cc", "arch/scalar/score-inl.h"),
                ("arch/xsimd/x.cc", "arch/highway/tail-inl.h"),
                ("arch/xsimd/x.cc", "arch/scalar/score-inl.h"),
                ("arch/xsimd/x.cc", "arch/visible.h"),
                ("arch/xsimd/x.cc", "arch/dispatch.h"),
                ("arch/scalar/x.cc", "arch/cpu.h"),
                ("arch/scalar/x.cc", "lib/quant/layout.h"),
                ("arch/dispatch.cc", "lib/attention/attention.h"),
                ("arch/dispatch.cc", "arch/scalar/score-inl.h"),
                ("cli/x.cc", "arch/kernel_table.h"),
                ("cli/x.cc", "lib/base/types.h"),
                ("cli/x.cc", "bench/d.h"),
                ("cli/bench_x.cc", "bench/d.h"),
                ("cli/bench.cc", "arch/dispatch.h"),
                ("cli/engine.cc", "arch/dispatch.h"),
                ("lib/thread_pool/x.cc", "lib/base/types.h"),
                ("tests/x.cc", "arch/scalar/score-inl.h"),
                ("tests/x.cc", "cli/text.h"),
                ("bench/x.cc", "lib/spectral/basis.h")]:
            with self.subTest(path=path, included=included):
                kept = self.good.get(path)
                self.assert_fails({path: f'\n#include "{included}"\n'}, f'{path}:2: remove "{included}": ... may include only')
                (self.root / path).unlink()
                if kept is not None:
                    self.write({path: kept})

    def test_public_header_is_not_for_stages(self):
        self.assert_fails({"lib/attention/x.cc": "#include <etalon/etalon.h>\n"}, "lib/attention/x.cc:1: remove <etalon/etalon.h>: attention may")

    def test_paths_start_at_the_root(self):
        for included in ["score-inl.h", "../cpu.h", "arch/scalar/../cpu.h", "hwy/highway.h"]:
            with self.subTest(included=included):
                self.assert_fails({"arch/scalar/x.cc": f'#include "{included}"\n'},
                                  f'arch/scalar/x.cc:1: "{included}" does not start at the root')

    def test_spelling_of_includes(self):
        self.assert_fails({"lib/base/x.cc": '#include "lib/base/none.h"\n#include <lib/base/types.h>\n#include SOME_FILE\n'},
                          'lib/base/x.cc:1: "lib/base/none.h" does not exist',
                          'lib/base/x.cc:2: write "lib/base/types.h" in quotes',
                          "lib/base/x.cc:3: #include SOME_FILE cannot be followed")

    def test_public_header_in_quotes(self):
        self.assert_fails({"tests/x.cc": '#include "lib/include/etalon/etalon.h"\n'}, "tests/x.cc:1: write <etalon/etalon.h>")

    def test_comments_are_no_includes(self):
        self.assert_passes({"lib/base/x.cc": '/*\n#include "arch/cpu.h"\n*/\n// #include <vector>\nconst char* s = "/*";\n'})

    def test_include_behind_a_string_that_looks_like_a_comment(self):
        self.assert_fails({"lib/base/x.cc": 'const char* s = "/*";\n#include <vector>\n'}, "lib/base/x.cc:2: remove <vector>")

    def test_standard_headers_not_for_the_library(self):
        for banned in ["iostream", "thread", "mutex", "exception", "vector", "string", "algorithm", "memory", "functional", "map", "random"]:
            for path in ["lib/base/x.h", "lib/api/x.h", "arch/scalar/x.h"]:
                with self.subTest(banned=banned, path=path):
                    self.assert_fails({path: header(path, f"#include <{banned}>\n")}, f"{path}:4: remove <{banned}>: ")
                    (self.root / path).unlink()

    def test_foreign_headers(self):
        for path, included in [("lib/base/x.cc", "Eigen/Dense"), ("lib/attention/x.cc", "immintrin.h"), ("arch/scalar/x.cc", "hwy/highway.h"),
                               ("arch/highway/x.cc", "xsimd/xsimd.hpp"), ("arch/xsimd/x.cc", "hwy/highway.h")]:
            with self.subTest(path=path, included=included):
                self.assert_fails({path: f"#include <{included}>\n"}, f"{path}:1: remove <{included}>: ...foreign")
                (self.root / path).unlink()

    def test_unknown_folder(self):
        self.assert_fails({"lib/extra/x.cc": "\n"}, "lib/extra/x.cc:1: this folder has no layer")

    def test_guards(self):
        for text in ["", "#pragma once\n", header("lib/base/other.h"), header("lib/base/x.h").replace("#endif", "#if 1\n#endif\n#endif\nint a;"),
                     header("lib/base/x.h").replace("#define ETALON_LIB", "#define ETALON_LIP"), "int a;\n" + header("lib/base/x.h")]:
            with self.subTest(text=text):
                end = "end with" if "int a;" in text[10:] else "begin with"
                self.assert_fails({"lib/base/x.h": text}, f"lib/base/x.h:1: {end}")

    def test_guard_that_toggles(self):
        def toggle(path):
            guard = "ETALON_" + path.upper().translate(str.maketrans("/.-", "___")) + "_"
            return (f"#if defined({guard}) == defined(HWY_TARGET_TOGGLE)  // once for each target\n#ifdef {guard}\n#undef {guard}\n"
                    f"#else\n#define {guard}\n#endif\nint a;\n#endif\n")

        self.assert_passes({"arch/highway/x-inl.h": toggle("arch/highway/x-inl.h")})
        self.assert_fails({"arch/highway/x-inl.h": toggle("arch/highway/y-inl.h"), "arch/scalar/x-inl.h": toggle("arch/scalar/x-inl.h")},
                          "arch/highway/x-inl.h:1: begin with", "arch/scalar/x-inl.h:1: begin with")

    def test_wrong_root(self):
        shutil.rmtree(self.root)
        self.root.mkdir()
        self.assert_fails({}, f"{self.root}: no sources here")


class CasesTest(TreeTest):
    tool = "check_cases"
    good = {
        "tests/cases.txt": "# a comment\n\nNUM-1   test kernel; step 1b\nNUM-2  test\nNUM-3  test\nNUM-4  test\nAPI-2  after step 9\nCMP-1  step 9a\n",
        "tests/a/b_test.cc": 'TEST_CASE("NUM-1, NUM-2: large") {\n}\nTEST_CASE("no case") {}\n',
        "tests/a/c_test.py": "# case: NUM-3\n",
        "tests/a/d_test.c": "/* case: NUM-4 */\n",
    }

    def list_with(self, line):
        return {"tests/cases.txt": self.good["tests/cases.txt"] + line + "\n"}

    def test_good(self):
        self.assert_passes()

    def test_lines_of_the_list(self):
        for line, fault in [("NUM-5", "NUM-5 has neither a test nor a step"),
                            ("NUM-5  ;", "NUM-5 has neither a test nor a step"),
                            ("NUM-5  soon", 'NUM-5: "soon" is not one of'),
                            ("NUM-5  step 10", 'NUM-5: "step 10" is not one of'),
                            ("num-5  test", 'write "ID  test; step N"'),
                            ("NUM-2  test", "NUM-2 stands in line 4 already")]:
            with self.subTest(line=line):
                self.assert_fails(self.list_with(line), f"tests/cases.txt:9: {fault}")

    def test_no_test(self):
        self.assert_fails(self.list_with("NUM-5  test"), "tests/cases.txt:9: NUM-5 has no test")

    def test_not_a_test(self):
        for text in ['// TEST_CASE("NUM-5: x") {}\n', '/*\nTEST_CASE("NUM-5: x") {}\n*/\n', 'TEST_CASE("NUM-5: x" * doctest::skip()) {}\n',
                     'TEST_CASE("as in NUM-5: x") {}\n', 'const char* s = "NUM-5";\n', 'const char* s = "# case: NUM-5";\n']:
            with self.subTest(text=text):
                self.assert_fails({**self.list_with("NUM-5  test"), "tests/x_test.cc": text}, "tests/cases.txt:9: NUM-5 has no test")

    def test_only_later_but_tested(self):
        self.assert_fails({**self.list_with("NUM-5  step 4"), "tests/x_test.cc": '\n  TEST_CASE(\n"NUM-5: x") {}\n'},
                          "tests/cases.txt:9: NUM-5 is tested in tests/x_test.cc:2: add")

    def test_timed(self):
        row = {"bench/rows/x.cc": "int a;\n// case: NUM-5, NUM-1\n"}
        timed = {"tests/cases.txt": self.good["tests/cases.txt"].replace("NUM-1   test kernel", "NUM-1   test kernel; bench")}
        self.assert_fails(self.list_with("NUM-5  bench"), "tests/cases.txt:9: NUM-5 has no row in bench: write")
        self.assert_fails({**self.list_with("NUM-5  bench"), **row}, "tests/cases.txt:3: NUM-1 is timed in bench/rows/x.cc:2: add")
        self.assert_fails(timed, "bench/rows/x.cc:2: NUM-5 is no case of")
        self.assert_passes({"tests/cases.txt": timed["tests/cases.txt"] + "NUM-5  bench\n"})

    def test_unknown_case(self):
        self.assert_fails({"tests/x_test.cc": 'TEST_CASE("NUM-99: x") {}\n'}, "tests/x_test.cc:1: NUM-99 is no case of tests/cases.txt")

    def test_unknown_case_in_a_marker(self):
        self.assert_fails({"tests/x/CMakeLists.txt": "# case: NUM-99\n"}, "tests/x/CMakeLists.txt:1: NUM-99 is no case of tests/cases.txt")

    def test_name_without_colon(self):
        self.assert_fails({"tests/x_test.cc": 'TEST_CASE("NUM-1 x") {}\n'}, 'tests/x_test.cc:1: write TEST_CASE("ID: ...")')

    def test_missing_list(self):
        (self.root / "tests/cases.txt").unlink()
        self.assert_fails({}, "tests/cases.txt: missing")

    def test_requirements_beside_the_checkout(self):
        requirements = "".join(f"- **{case}** (somewhere)\n" for case in ["NUM-1", "NUM-2", "NUM-3", "NUM-4", "API-2", "CMP-1"])
        self.assert_passes({"../shared/CASES.md": requirements})
        self.assert_fails({"../shared/CASES.md": requirements.replace("CMP-1", "CMP-2")},
                          "tests/cases.txt:1: CMP-2 of ../shared/CASES.md is missing", "tests/cases.txt:8: CMP-1 is not in ../shared/CASES.md")


DOCS = "docs"   # apart from what follows it, else the checker looks for the anchors of these examples


class DocsTest(TreeTest):
    tool = "check_docs"
    good = {
        "README.md": f"# Etalon\n\nSee [the text]({DOCS}/numerics.md#a-b-c-1), [above](#etalon), [far](https://example.com/#x), `[no](link)`.\n"
                     "\n```\n[no](link)\n```\n\n[ref]: docs/kernels.md\n",
        "docs/numerics.md": '# A `b`, (c)\n\n## A b c\n\n[back](../README.md) ![image](../image.png "title")\n<a id="here"></a>\n',
        "docs/kernels.md": "| `scores` | `fold(...)` |\n",
        "image.png": "x",
        "arch/kernel_table.h": "struct KernelTable {\n  const char* name;\n  void (*scores)(const ScoresArgs&);\n  void (*fold)(int);\n};\n",
        "lib/a.h": f"// {DOCS}/numerics.md#here and {DOCS}/numerics.md#a-b-c; numerics: scores\n",
    }

    def test_good(self):
        self.assert_passes()

    def test_links(self):
        for link, fault in [("none.md", "there is no docs/none.md"), ("numerics.md#none", "docs/numerics.md has no heading #none"),
                            ("#none", "docs/x.md has no heading #none"), ("../../x.md", "leaves the project"), ("/x.md", "leaves the project")]:
            for text in [f"[x]({link})", f"![x]({link})", f"[x]({link} 'title')", f"[x](<{link}>)", f"[x]: {link}"]:
                with self.subTest(text=text):
                    self.assert_fails({"docs/x.md": "\n" + text + "\n"}, f"docs/x.md:2: ({link}) ...{fault}")

    def test_references_in_sources(self):
        for path in ["lib/x.h", "tools/x.py", "CMakeLists.txt"]:
            with self.subTest(path=path):
                self.assert_fails({path: f"{DOCS}/numerics.md#none, {DOCS}/none.md#x\n"},
                                  f"{path}:1: {DOCS}/numerics.md#none leads nowhere: docs/numerics.md has no heading",
                                  f"{path}:1: {DOCS}/none.md#x leads nowhere: there is no docs/none.md")
                (self.root / path).unlink()

    def test_long_readme(self):
        self.assert_passes({"README.md": "a\n" * 199})
        self.assert_fails({"README.md": "a\n" * 200}, "README.md:200: has 200 lines")

    def test_quotes(self):
        source = {"examples/x.c": "int a;\n  if (a)\n\n    b();\nint c;\n"}
        for quote in ["int a;\n  if (a)\n", "if (a)\n\n  b();\n", "int c;\n"]:
            with self.subTest(quote=quote):
                self.assert_passes({**source, "docs/x.md": f"```c examples/x.c\n{quote}```\n\n```c\nother\n```\n"})
        for quote in ["int b;\n", "int a;\nint c;\n", "nt c;\n", "int c\n"]:
            with self.subTest(quote=quote):
                self.assert_fails({**source, "docs/x.md": f"\n```c examples/x.c\n{quote}```\n"}, "docs/x.md:2: is no run of lines")
        self.assert_fails({**source, "docs/x.md": "```c examples/x.c\n```\n"}, "docs/x.md:1: quotes nothing of examples/x.c")
        (self.root / "docs/x.md").unlink()
        for language in ["c", "cpp", "C++"]:
            with self.subTest(language=language):
                self.assert_fails({"README.md": f"# Etalon\n```{language}\nint a;\n```\n"}, "README.md:2: code that nothing compiles")
        (self.root / "README.md").write_text("# Etalon\n")
        self.assert_fails({"docs/x.md": "```c examples/y.c\nint a;\n```\n"}, "docs/x.md:1: quotes examples/y.c, which is missing")

    def test_kernel_without_a_word(self):
        self.assert_fails({"docs/kernels.md": "`scores`, `fold_all`, fold\n"}, "docs/kernels.md:1: the kernel `fold` is missing")

    def test_kernel_table_that_is_not_understood(self):
        self.assert_fails({"arch/kernel_table.h": "struct Kernels {};\n"}, "arch/kernel_table.h:1: no kernel found")

    def test_no_kernel_list_yet(self):
        (self.root / "docs/kernels.md").unlink()
        self.assert_passes({"README.md": "# Etalon\n"})

    def test_blanks(self):
        for path in ["docs/x.md", "lib/x.cc", "CMakeLists.txt"]:
            with self.subTest(path=path):
                self.assert_fails({path: "a\n\tb\nc \n"}, f"{path}:2: has a tab", f"{path}:3: ends in blanks")
                (self.root / path).unlink()

    def test_machine_paths(self):
        for folder in ["root", "work", "home", "Users"]:
            with self.subTest(folder=folder):
                self.assert_fails({"tools/x.sh": f"cd $prefix/{folder}/x\ncd /{folder}/x\n"}, f"tools/x.sh:2: has the path /{folder}/...")

    def test_registries(self):
        for host in ["pypi" + ".org", "deb.debian" + ".org", "conda.anaconda" + ".org"]:
            with self.subTest(host=host):
                self.assert_fails({"tools/x.sh": f"fetch https://{host}/x\n"}, "tools/x.sh:1: names the registry ...leave the choice")

    def test_binary_files_are_not_read(self):
        (self.root / "data.npz").write_bytes(b"\0 \t /" + b"root/ \n")
        self.assert_passes()

    @unittest.skipUnless(shutil.which("git"), "no git")
    def test_ignored_files_are_not_read(self):
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        bad = {"out/x.md": "a \n", "x.md": "a \n"}
        self.assert_fails({".gitignore": "/out/\n", **bad}, "x.md:1: ends in blanks")


COMPILER = next((c for c in (os.environ.get("CXX"), "c++", "g++", "clang++") if c and shutil.which(c)), None)
NM = os.environ.get("NM") or "nm"
OBJDUMP = os.environ.get("OBJDUMP") or "objdump"
TABLE = "struct KernelTable { void (*run)(float*, int); };\n"


@unittest.skipUnless(COMPILER and shutil.which(NM) and shutil.which("ar"), "no compiler, nm and ar")
class SymbolsTest(TreeTest):
    tool = "check_symbols"
    table = (TABLE + "namespace etalon {\nnamespace {\nvoid Run(float* x, int n) { for (int i = 0; i < n; ++i) x[i] += 1; }\n}\n"
             "extern const KernelTable kGoodTable;\nconstexpr KernelTable kGoodTable = {Run};\n}\n")

    def compile(self, name, text, *flags):
        self.write({name + ".cc": text})
        target = self.root / (name + ".o")
        subprocess.run([COMPILER, "-std=c++17", "-fPIC", *flags, "-c", str(self.root / (name + ".cc")), "-o", str(target)], check=True)
        return target

    def archive(self, *objects):
        target = self.root / "lib.a"
        if target.exists():
            target.unlink()
        subprocess.run(["ar", "rcs", str(target), *map(str, objects)], check=True)
        return target

    def assert_line(self, run, line):
        code, output = run
        self.assertEqual(code, 1, output)
        self.assertIn(line, output)

    def table_with(self, declarations, body):
        return TABLE + declarations + ("\nnamespace etalon {\nstatic void Run(float* x, int n) { %s }\nextern const KernelTable kBadTable;\n"
                                       "constexpr KernelTable kBadTable = {Run};\n}\n" % body)

    def test_good_tables(self):
        objects = [self.compile("t" + level, self.table.replace("Good", "Good" + level), "-O" + level) for level in "013"]
        self.assertEqual(self.run_tool("--nm", NM, "table", *objects), (0, ""))

    def test_second_export(self):
        for declaration, name in [("int Extra() { return 1; }", "Extra()"), ("int extra = 1;", "extra"),
                                  ("inline int Inline(int n) { static int calls; return calls += n; }", "Inline(int)"),
                                  ("template <class T> T Twice(T x) { return x + x; }", "int Twice<int>(int)"),
                                  ("struct S { static int Get(int n) { return n + 1; } };", "S::Get(int)")]:
            with self.subTest(name=name):
                call = {"Inline(int)": "Inline(n);", "int Twice<int>(int)": "x[0] = Twice(n);", "S::Get(int)": "x[0] = S::Get(n);"}.get(name, "x[0] = n;")
                self.assert_line(self.run_tool("table", self.compile("bad", self.table_with(declaration, call), "-O0")),
                                 f"bad.o: also exports {name}")

    def test_number_of_tables(self):
        self.assert_line(self.run_tool("table", self.compile("none", "namespace etalon { int Other() { return 1; } }\n")), "none.o: defines 0 tables")
        twice = self.table + "namespace etalon { extern const KernelTable kMoreTable; constexpr KernelTable kMoreTable = {nullptr}; }\n"
        self.assert_line(self.run_tool("table", self.compile("two", twice)), "two.o: defines 2 tables (etalon::kGoodTable, etalon::kMoreTable)")
        other = self.table.replace("namespace etalon", "namespace other")
        self.assert_line(self.run_tool("table", self.compile("other", other)), "other.o: also exports other::kGoodTable")

    def test_calls_of_a_table(self):
        for declarations, body, name in [
                ("#include <cmath>\n", "x[0] = std::fma(x[1], x[2], x[n]);", "fmaf"),
                ("#include <cmath>\n", "x[0] = std::exp(x[n]);", "expf"),
                ("#include <cmath>\n", "x[0] = std::tanh(static_cast<double>(x[n]));", "tanh"),
                ("static float* volatile kept;", "kept = new float(x[n]);", "operator new(unsigned"),
                ("float Get(int); ", "static float first = Get(n); x[0] = first;", "__cxa_guard_acquire"),
                ("namespace etalon { float Get(int); }", "x[0] = Get(n);", "etalon::Get(int)")]:
            with self.subTest(name=name):
                flags = ["-O1", "-fmath-errno", "-fno-builtin"]
                self.assert_line(self.run_tool("table", self.compile("bad", self.table_with(declarations, body), *flags)), f"bad.o: needs {name}")

    # Object files of arch/highway: a stage for two targets, and the tables.
    stage = ("inline int Larger(int a, int b) { return a > b ? a : b; }\n"
             "namespace etalon {\nnamespace N_AVX2 {\n"
             "WIDE static void Add(float* x, int n) { for (int i = 0; i < n; ++i) x[i] += 1; }\n"
             "WIDE void Run(float* x, int n) { const auto all = [&](int k) WIDE { Add(x, k); }; all(Larger(n, 1)); }\n}\n"
             "namespace N_AVX3 {\nnamespace {\nWIDE void Add(float* x, int n) { for (int i = 0; i < n; ++i) x[i] += 2; }\n}\n"
             "extern const int kRows;\nconst int kRows = 4;\nWIDE void Run(float* x, int n) { Add(x, n); }\n}\n}\n"
             "namespace hwy {\nnamespace N_AVX2 {\nWIDE inline float Twice(float x) { return x + x; }\n}\n}\n"
             "namespace etalon {\nnamespace N_AVX2 {\nWIDE float Use(float x) { return hwy::N_AVX2::Twice(x); }\n}\n}\n")
    tables = (TABLE + "namespace etalon {\nnamespace N_AVX2 { void Run(float* x, int n); }\n"
              "extern const KernelTable kHighwayAvx2Table;\nconstexpr KernelTable kHighwayAvx2Table = {N_AVX2::Run};\n}\n")
    wide = platform.machine() in ("x86_64", "AMD64")

    def highway(self, text, *flags):
        """(exit code, fault lines without the folder) for one object."""
        attribute = '__attribute__((target("avx2,fma")))' if self.wide else ""
        target = self.compile("stage", f"#define WIDE {attribute}\n" + text, *flags)
        code, output = self.run_tool("--nm", NM, "--objdump", OBJDUMP, "highway", target)
        lines = output.replace(f"{self.root}/", "").splitlines()
        self.assertEqual(code, 1 if lines else 0)
        return lines

    def test_good_highway(self):
        for level in ["-O0", "-O1", "-O3"]:
            with self.subTest(level=level):
                self.assertEqual(self.highway(self.stage, level), [])
                self.assertEqual(self.highway(self.tables, level), [])

    def test_exports_of_highway(self):
        for text, name in [("namespace etalon { void Helper() {} }", "etalon::Helper() (type T)"), ("void Helper() {}", "Helper() (type T)"),
                           ("namespace etalon { int count = 1; }", "etalon::count (type D)"), ('extern "C" void N_AVX2() {}', "N_AVX2 (type T)"),
                           ("namespace N_AVX2 { void Run() {} }", "N_AVX2::Run() (type T)"),
                           ("namespace hwy { namespace N_AVX2 { void Run() {} } }", "hwy::N_AVX2::Run() (type T)"),
                           ("namespace etalon { namespace N_AVX2 { struct S {}; } void Run(N_AVX2::S) {} }", "etalon::Run(etalon::N_AVX2::S) (type T)")]:
            with self.subTest(text=text):
                self.assert_lines(self.highway(self.stage + text + "\n"), f"stage.o: exports {name} outside the namespaces of targets")

    def test_tables_of_highway(self):
        other = "namespace etalon { extern const KernelTable %s; constexpr KernelTable %s = {nullptr}; }\n"
        for name in ["kHighwayScalarTable", "kHighwayEmu128Table", "kHighwaySse4Table", "kHighwayAvx3DlTable", "kScalarTable"]:
            with self.subTest(name=name):
                self.assert_lines(self.highway(self.tables + other % (name, name)), f"stage.o: exports etalon::{name}, a table that nobody knows")
        run = "namespace etalon { namespace N_AVX2 { void Run(float* x, int n) { x[n] = 0; } } }\n"
        self.assert_lines(self.highway(self.tables + run), "stage.o: exports etalon::N_AVX2::Run(float*, int) beside tables")
        missing = self.tables.replace("N_AVX2", "N_EMU128")
        self.assert_lines(self.highway(missing), "stage.o: needs etalon::N_EMU128::Run(float*, int): another part")

    def test_fallback_targets_of_highway(self):
        targets = ["N_AVX2X", "N_AVX3_DL", "N_EMU128", "N_NEON", "N_SCALAR", "N_SSE2", "N_SSE4", "N_SSSE3"]
        for text, name, faults in [
                ("namespace etalon { namespace %s { void Run() {} } }", "etalon::%s::Run()", 2),   # exported, too
                ("namespace hwy { namespace %s { struct S { int x; }; } }\nnamespace etalon { namespace N_AVX2 { "
                 "int Get(hwy::%s::S s) { return s.x; } } }", "etalon::N_AVX2::Get(hwy::%s::S)", 1),
                ("namespace etalon { namespace %s { namespace { __attribute__((noinline)) int Get(int n) { return n + 1; } } }\n"
                 "namespace N_AVX2 { int Call%s(int n) { return %s::Get(n); } } }", "etalon::%s::(anonymous namespace)::Get(int)", 1)]:
            with self.subTest(text=text):
                lines = self.highway(self.stage + "".join(text.replace("%s", target) + "\n" for target in targets), "-O0")
                self.assertEqual(len(lines), faults * len(targets), lines)
                for target in targets:
                    fault = f"stage.o: defines {name.replace('%s', target)}: {target} is no target with a table"
                    self.assertEqual(sum(line.startswith(fault) for line in lines), 1, (fault, lines))

    def test_wide_code_of_highway(self):
        if not self.wide:
            self.skipTest("x86-64 alone has instructions that a baseline lacks")
        weak = 'namespace etalon { WIDE inline float Twice(float x) { return x + x; }\nnamespace N_AVX2 { WIDE float Call(float x) { return Twice(x); } } }\n'
        self.assert_lines(self.highway(weak, "-O0"), "stage.o: etalon::Twice(float) (weak, so that narrow code may get this copy) has v")
        self.assert_lines(self.highway(weak.replace("inline", "static"), "-O0"), "stage.o: etalon::Twice(float) (static) has v")
        template = weak.replace("WIDE inline float Twice(float", "template <class T> WIDE T Twice(T")
        self.assert_lines(self.highway(template, "-O0"), "stage.o: float etalon::Twice<float>(float) (weak")
        # A lambda belongs to the function that it is written in, a call to the template that it is passed to.
        passed = ("namespace etalon {\ntemplate <class F> WIDE float Apply(F f) { return f(1.5f) + 1; }\nnamespace N_AVX2 {\n"
                  "WIDE float Call(float x) { return Apply([x](float y) WIDE { return x * y; }); }\n} }\n")
        self.assert_lines(self.highway(passed, "-O0"), "stage.o: float etalon::Apply<etalon::N_AVX2::Call(float)::{lambda(float)#1}>")
        for features, code in [("avx", "float F(float x) { return x + x; }"), ("fma", "float F(float x) { return __builtin_fmaf(x, x, x); }"),
                               ("avx512f", "__attribute__((vector_size(64))) float G(const float* p) { "
                                           "return *reinterpret_cast<const __attribute__((vector_size(64), aligned(64))) float*>(p); }"),
                               ("bmi2", "unsigned long F(unsigned long x, int n) { return x << n; }"), ("popcnt", "int F(unsigned x) { return __builtin_popcount(x); }"),
                               ("lzcnt", "int F(unsigned x) { return __builtin_clz(x); }"), ("ssse3", "void F(signed char* x) { for (int i = 0; i < 16; ++i) x[i] = x[i] < 0 ? -x[i] : x[i]; }"),
                               ("sse4.1", "double F(double x) { return __builtin_floor(x); }")]:
            with self.subTest(features=features):
                text = f'namespace etalon {{ namespace {{ __attribute__((target("{features}"), used)) {code} }} }}\n'
                lines = self.highway(text, "-O3", "-fno-math-errno", "-fno-trapping-math")
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(" (static) has ", lines[0])
        # What every x86-64 has.
        plain = ("namespace etalon { namespace N_AVX2 { int F(unsigned x) { return __builtin_ctz(x); } double G(double x) { return x + 1; }\n"
                 "float H(const float* x, int n) { float s = 0; for (int i = 0; i < n; ++i) s += x[i]; return s; } } }\n")
        self.assertEqual(self.highway("__attribute__((used)) static " + "int F(unsigned x) { return __builtin_ctz(x); }\n" + plain, "-O3"), [])

    def test_needs_of_highway(self):
        for text, name in [("namespace etalon { void Other(); namespace N_AVX2 { void Call() { Other(); } } }", "etalon::Other(): another part"),
                           ("namespace hwy { void Abort(int); }\nnamespace etalon { namespace N_AVX2 { void Call() { hwy::Abort(1); } } }",
                            "hwy::Abort(int): a function of Highway's library"),
                           ("namespace etalon { namespace N_SSE4 { void Run(); } namespace N_AVX2 { void Call() { N_SSE4::Run(); } } }", "etalon::N_SSE4::Run()"),
                           ("#include <cmath>\nnamespace etalon { namespace N_AVX2 { float Call(float x) { return std::exp(x); } } }", "expf: its bits")]:
            with self.subTest(name=name):
                self.assert_lines(self.highway(text + "\n"), f"stage.o: needs {name}")
        other = "namespace etalon { namespace N_AVX2 { void Other(); void Call() { Other(); } } }\n"   # of another stage
        self.assertEqual(self.highway(other), [])

    # An object of arch/xsimd: what -O0 leaves of the library, and a table.
    registers = ("namespace xsimd {\nstruct avx {};\nstruct avx2 : avx {};\ntemplate <class A> struct fma3 : A {};\n"
                 "namespace types { template <class T, class A> struct simd_register { T data; simd_register(T x) : data(x) {} }; }\n"
                 "template <class T, class A> struct batch { types::simd_register<T, A> data; batch(T x); };\n"
                 "template <class T, class A> __attribute__((always_inline)) inline batch<T, A>::batch(T x) : data(x) {}\n}\n")
    xsimd_table = (TABLE + registers + "namespace etalon {\nnamespace {\nusing F32 = xsimd::batch<float, xsimd::fma3<xsimd::avx2>>;\n"
                   "__attribute__((noinline)) float Twice(F32 x) { return x.data.data * 2; }\n"
                   "void Run(float* x, int n) { x[n] = Twice(F32(x[0])); }\n}\n"
                   "extern const KernelTable kXsimdAvx2Table;\nconstexpr KernelTable kXsimdAvx2Table = {Run};\n}\n")

    def xsimd(self, text, *flags):
        """(exit code, fault lines without the folder) for one object."""
        code, output = self.run_tool("--nm", NM, "--objdump", OBJDUMP, "xsimd", self.compile("table", text, *flags))
        lines = output.replace(f"{self.root}/", "").splitlines()
        self.assertEqual(code, 1 if lines else 0)
        return lines

    def test_good_xsimd(self):
        self.assertIn("simd_register", subprocess.run([NM, "-C", "--extern-only", str(self.compile("weak", self.xsimd_table, "-O0"))],
                                                      stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout)   # else nothing is allowed
        for level in ["-O0", "-O1", "-O3"]:
            with self.subTest(level=level):
                self.assertEqual(self.xsimd(self.xsimd_table, level), [])

    def test_exports_of_xsimd(self):
        weak = "(weak, a copy for narrow code may come from here)"
        for added, name in [("inline int Larger(int a, int b) { return a > b ? a : b; }\nstatic int Use(int n) { return Larger(n, 1); }\n", f"Larger(int, int) {weak}"),
                            ("namespace xsimd { inline int Size(int n) { return n; } }\nstatic int Use(int n) { return xsimd::Size(n); }\n", f"xsimd::Size(int) {weak}"),
                            ("static float Use(int n) { return xsimd::types::simd_register<float, xsimd::avx>(n).data; }\n",
                             "xsimd::types::simd_register<float, xsimd::avx>::simd_register(float) "),
                            ("int Use(int n) { return n; }\n", "Use(int) (type T)")]:
            with self.subTest(name=name):
                text = self.xsimd_table + added + "__attribute__((used)) static int Call(int n) { return static_cast<int>(Use(n)); }\n"
                lines = self.xsimd(text, "-O0")
                self.assert_lines(lines, *[f"table.o: also exports {name}"] * max(len(lines), 1))   # some compilers write a constructor twice

    def test_exports_of_xsimd_on_arm(self):   # names alone decide, so that any machine can ask
        text = self.xsimd_table.replace("xsimd::fma3<xsimd::avx2>", "xsimd::neon64").replace("struct avx {};", "struct neon64 {};\nstruct avx {};")
        text = text.replace("kXsimdAvx2Table", "kXsimdNeon64Table") + "namespace xsimd { inline int Size(int n) { return n; } }\n"
        use = "__attribute__((used)) static int Use(int n) { return %s(n); }\n"
        self.assertEqual(self.xsimd(text + use % "xsimd::Size", "-O0"), [])
        self.assert_lines(self.xsimd(text + "inline int Size(int n) { return n; }\n" + use % "Size", "-O0"), "table.o: also exports Size(int) (weak")
        self.assert_lines(self.xsimd(text + "namespace xsimd { int Count(int n) { return n; } }\n", "-O0"), "table.o: also exports xsimd::Count(int) (type T)")

    def test_tables_of_xsimd(self):
        other = self.xsimd_table.replace("kXsimdAvx2Table", "kXsimdSse2Table")
        self.assert_lines(self.xsimd(other, "-O1"), "table.o: defines none of etalon::kXsimdAvx2Table, ")
        twice = self.xsimd_table + "namespace etalon { extern const KernelTable kMoreTable; constexpr KernelTable kMoreTable = {nullptr}; }\n"
        self.assert_lines(self.xsimd(twice, "-O1"), "table.o: defines 2 tables (")
        rounds_twice = self.xsimd_table.replace("xsimd::fma3<xsimd::avx2>>", "xsimd::avx2>")
        for level in ["-O0", "-O1"]:
            self.assert_lines(self.xsimd(rounds_twice, level), "table.o: etalon::kXsimdAvx2Table has vectors of xsimd::avx2: xsimd::fma3<xsimd::avx2> alone")

    def test_wide_code_of_xsimd(self):
        if not self.wide:
            self.skipTest("x86-64 alone has instructions that a baseline lacks")
        for features, fault in [("avx2,fma", False), ("avx512f", True)]:
            text = self.xsimd_table + ('namespace etalon { namespace { __attribute__((target("%s"), used, vector_size(%d))) float G(const float* p) { '
                                       "return *reinterpret_cast<const __attribute__((vector_size(%d), aligned(4))) float*>(p); } } }\n"
                                       % (features, 64 if fault else 32, 64 if fault else 32))
            with self.subTest(features=features):
                lines = self.xsimd(text, "-O1")
                self.assertEqual(len(lines), 1 if fault else 0, lines)
                if fault:
                    self.assertIn("etalon::kXsimdAvx2Table does not ask the processor for AVX-512", lines[0])

    def test_good_archive(self):
        user = self.compile("user", "#include <cstdlib>\n#include <cstring>\nint Other();\nint Use() { return Other() + (std::getenv(\"X\") != nullptr); }\n")
        other = self.compile("other", "int Other() { return 1; }\n")
        self.assertEqual(self.run_tool("archive", self.archive(self.compile("table", self.table), user, other)), (0, ""))

    def test_calls_of_an_archive(self):
        table = self.compile("table", self.table)
        for text, name in [("#include <cmath>\nfloat F(float x) { return std::fma(x, x, x); }\n", "fmaf"),
                           ("#include <cmath>\ndouble F(double x) { return std::sqrt(x); }\n", "sqrt"),
                           ("#include <cstdlib>\nvoid* F(int n) { return std::malloc(n); }\n", "malloc"),
                           ("#include <cstdlib>\nvoid F(void* p) { std::free(p); }\n", "free"),
                           ("void F(int* p) { delete p; }\n", "operator delete(void*"),
                           ("void F() { throw 1; }\n", "__cxa_throw"),
                           ("#include <pthread.h>\nint F(pthread_t t) { return pthread_join(t, nullptr); }\n", "pthread_join"),
                           ("#include <cstdio>\nvoid F(int n) { std::printf(\"%d\", n); }\n", "printf"),
                           ("#include <cstdlib>\nvoid F() { std::abort(); }\n", "abort"),
                           ("#include <cstdlib>\nvoid F() { std::exit(1); }\n", "exit"),
                           ("namespace hwy { long DispatchedTarget(); }\nlong F() { return hwy::DispatchedTarget(); }\n",
                            "hwy::DispatchedTarget(): a function of Highway's library, which is not linked"),
                           ("int Missing();\nint F() { return Missing(); }\n", "Missing()")]:
            with self.subTest(name=name):
                self.assert_line(self.run_tool("archive", self.archive(table, self.compile("bad", text))), f"lib.a: needs {name}")

    def test_archive_without_tables(self):
        self.assert_line(self.run_tool("archive", self.archive(self.compile("none", "int F() { return 1; }\n"))), "sees no table")

    header = """
#define ETALON_API __attribute__((visibility("default")))
#define ETALON_STATUS __attribute__((visibility("default"), \\
    warn_unused_result)) int
extern "C" {
// etalon_old(x) is gone.
ETALON_API const char* etalon_name(int x);
ETALON_STATUS etalon_run(void (*each)(int x),
                         int last);
typedef int (*etalon_fn)(int x);
}
"""
    library = ('#include "etalon.h"\nnamespace etalon { int Part() { return 1; } }\n'
               'const char* etalon_name(int x) { return x == etalon::Part() ? "a" : "b"; }\n'
               "int etalon_run(void (*each)(int), int last) { each(last); return 0; }\n")
    listed = "etalon_name\netalon_run\n"

    def exports(self, listed=listed, header=header, library=library):
        """The fault lines for a static and a shared library of these sources, without the folder."""
        self.write({"symbols.txt": listed, "etalon.h": header})
        user = self.compile("api", library, "-fvisibility=hidden")
        shared = self.root / "lib.so"
        subprocess.run([COMPILER, "-shared", str(user), "-o", str(shared)], check=True)
        code, output = self.run_tool("--nm", NM, "exports", self.root / "symbols.txt", self.archive(user), shared,
                                     "--headers", self.root / "etalon.h")
        lines = output.replace(f"{self.root}/", "").splitlines()
        self.assertEqual(code, 1 if lines else 0)
        return lines

    def assert_lines(self, lines, *beginnings):
        self.assertEqual(len(lines), len(beginnings), lines)
        for line, beginning in zip(lines, beginnings):
            self.assertTrue(line.startswith(beginning), f"{line!r} is not {beginning!r}")

    def test_good_exports(self):
        self.assertEqual(self.exports(), [])

    def test_list_of_exports(self):
        self.assert_lines(self.exports("etalon_run\netalon_name\n"), "symbols.txt:2: etalon_name comes after etalon_run: sort")
        self.assert_lines(self.exports("etalon_name\netalon_name\netalon_run\n"), "symbols.txt:2: etalon_name comes after etalon_name")
        self.assert_lines(self.exports("# names\n" + self.listed), 'symbols.txt:1: "# names" is no exported name')

    def test_exports_and_declarations(self):
        self.assert_lines(self.exports("etalon_run\n"), "etalon.h:7: etalon_name is not in symbols.txt: add it",
                          "lib.a: exports etalon_name: hide it, or add it to symbols.txt",
                          "lib.so: exports etalon_name: hide it, or add it to symbols.txt")
        self.assert_lines(self.exports(self.listed + "etalon_stop\n"), "symbols.txt:3: etalon_stop is declared in no header",
                          "lib.a: does not export etalon_stop", "lib.so: does not export etalon_stop")
        self.assert_lines(self.exports(header=self.header.replace("ETALON_API const", "const")),
                          "etalon.h:7: etalon_name has no ETALON_API", "symbols.txt:1: etalon_name is declared in no header",
                          "lib.so: does not export etalon_name: define it after")

    def test_exports_too_many(self):
        for text, name, lines in [
                ('extern "C" ETALON_API int etalon_extra() { return 1; }\n', "etalon_extra", ("lib.a: exports", "lib.so: exports")),
                ('extern "C" int etalon_extra() { return 1; }\n', "etalon_extra", ("lib.a: exports",)),
                ('extern "C" int extra() { return 1; }\n', "extra", ("lib.a: takes the name",)),
                ("int Extra(int x) { return x; }\n", "Extra(int)", ("lib.a: takes the name",)),
                ("namespace etalon { ETALON_API int Extra() { return 1; } }\n", "etalon::Extra()", ("lib.so: exports",))]:
            with self.subTest(text=text):
                self.assert_lines(self.exports(library=self.library + text), *(f"{line} {name}" for line in lines))

    def test_usage_of_exports(self):
        for arguments in [("exports", "list", "lib.a"), ("exports", "list", "--headers", "h"), ("archive", "lib.a", "--headers", "h")]:
            with self.subTest(arguments=arguments), contextlib.redirect_stderr(io.StringIO()) as error:
                with self.assertRaises(SystemExit) as stopped:
                    self.run_tool(*arguments)
                self.assertEqual((stopped.exception.code, "write: exports LIST" in error.getvalue()), (2, True))

    def test_nm_fails(self):
        self.write({"text.o": "no object\n"})
        code, output = self.run_tool("table", self.root / "text.o")
        self.assertEqual((code, "text.o: nm cannot read it" in output.replace(NM, "nm"), output.count("\n")), (2, True, 1))
        code, output = self.run_tool("--nm", "no-such-nm", "table", self.root / "text.o")
        self.assertEqual((code, "name nm by --nm" in output, output.count("\n")), (2, True, 1))
        code, output = self.run_tool("--objdump", "no-such-objdump", "highway", self.compile("stage", "int x;\n"))
        if self.wide:
            self.assertEqual((code, "name objdump by --objdump or $OBJDUMP" in output, output.count("\n")), (2, True, 1))


if __name__ == "__main__":
    unittest.main()

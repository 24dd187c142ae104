"""Builds the library with a part of its kernel tables, as ETALON_TARGETS says, and asks each build what it has:

    targets_test.py OPTIONS CLASS          (options: prefixes.py)
"""
# case: DSP-2
import pathlib
import platform
import shutil
import sys
import unittest

from prefixes import OPTIONS, run

HERE = pathlib.Path(__file__).resolve().parent
WORK = OPTIONS.work / "targets"

# Tables of this machine's architecture, in ascending preference, with the flag of /proc/cpuinfo that stands for what each needs.
TABLES = {
    "x86_64": {"scalar": None, "xsimd-avx2": "avx2", "xsimd-avx512": "avx512vl", "scalar-fma": "fma", "highway-avx2": "avx2", "highway-avx3": "avx512vl"},
    "aarch64": {"scalar": None, "xsimd-neon64": "asimd", "highway-neon": "asimd"},
}.get(platform.machine(), {"scalar": None})
FOREIGN = "highway-avx2" if platform.machine() == "aarch64" else "highway-neon"
HIGHWAY = [name for name in TABLES if name.startswith("highway-")]
XSIMD = [name for name in TABLES if name.startswith("xsimd-")]


def configure(build, targets, expected=0, highway=OPTIONS.highway, xsimd=OPTIONS.xsimd, **more):
    shutil.rmtree(build, ignore_errors=True)
    options = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_COMPILER": OPTIONS.cxx, "ETALON_BUILD_TESTS": "OFF", "ETALON_BUILD_CLI": "OFF",
               "ETALON_BUILD_THREAD_POOL": "OFF", "ETALON_TARGETS": targets, **more}
    if highway:
        options["ETALON_HIGHWAY_SOURCE_DIR"] = highway
    if xsimd:
        options["ETALON_XSIMD_INCLUDE_DIR"] = xsimd
    return run(OPTIONS.cmake, "-G", OPTIONS.generator, "-S", OPTIONS.source, "-B", build,
               *(f"-D{name}={value}" for name, value in options.items()), expected=expected)


class Refused(unittest.TestCase):
    """What is known when CMake runs."""

    def assert_refused(self, targets, *words, **options):
        output = " ".join(configure(WORK / "refused", targets, expected=1, **options).split())
        for word in words:
            self.assertIn(word, output)

    def test_unknown_names(self):
        known = f"there are {', '.join(TABLES)}, or all"
        for targets, name in [("highway-avx9", "highway-avx9"), (FOREIGN, FOREIGN), ("scalar;Scalar", "Scalar"), ("scalar;sclar", "sclar"),
                              ("all;highway", "highway")]:
            with self.subTest(targets=targets):
                self.assert_refused(targets, f"ETALON_TARGETS: no table is called {name} here; {known}")

    def test_big_endian(self):
        told = WORK / "big_endian.cmake"  # instead of a compiler for such a processor, which few machines have
        told.parent.mkdir(parents=True, exist_ok=True)
        told.write_text("set(CMAKE_CXX_BYTE_ORDER BIG_ENDIAN)\n")
        self.assert_refused("all", "etalon is for little-endian processors", CMAKE_PROJECT_INCLUDE=told)

    @unittest.skipUnless(HIGHWAY, "no table of Highway here")
    def test_highway_that_is_not_there(self):
        empty = WORK / "empty"
        empty.mkdir(parents=True, exist_ok=True)
        self.assert_refused("all", "Highway 1.2 or newer was not found", "run cmake/deps.sh", "ETALON_TARGETS to scalar tables to do without", highway=empty)
        old = WORK / "old"
        (old / "hwy").mkdir(parents=True, exist_ok=True)
        (old / "hwy/base.h").write_text("#define HWY_MAJOR 1\n#define HWY_MINOR 0\n#define HWY_PATCH 7\n", encoding="ascii")
        self.assert_refused("all", f"Highway in {old} is 1.0, 1.2 or newer is needed: run cmake/deps.sh", highway=old)

    @unittest.skipUnless(XSIMD, "no table of xsimd here")
    def test_xsimd_that_is_not_there(self):   # only who names a table of it must have it
        old = WORK / "old"
        (old / "xsimd/config").mkdir(parents=True, exist_ok=True)
        (old / "xsimd/config/xsimd_config.hpp").write_text("#define XSIMD_VERSION_MAJOR 8\n#define XSIMD_VERSION_MINOR 1\n", encoding="ascii")
        for where, fault in [(WORK / "empty", f"xsimd 13 or newer was not found in {WORK / 'empty'}: "), (old, f"xsimd in {old} is 8.1, 13 or newer is needed: ")]:
            with self.subTest(where=where):
                self.assert_refused(f"scalar;{XSIMD[0]}", fault + "run cmake/deps.sh, or set ETALON_XSIMD_INCLUDE_DIR, or leave", xsimd=where)
                build = WORK / "without xsimd"
                output = configure(build, "all", xsimd=where)
                self.assertIn(fault + "its tables are left out", output)
                self.assertFalse((build / "xsimd_only").exists())

    def test_scalar_needs_neither(self):
        build = WORK / "scalar alone"
        configure(build, "scalar", highway=WORK / "none", xsimd=WORK / "none")
        self.assertNotIn("arch/highway", (build / "compile_commands.json").read_text(encoding="utf-8")
                         if (build / "compile_commands.json").exists() else "")
        self.assertFalse((build / "highway_only").exists())
        self.assertFalse((build / "xsimd_only").exists())


class Chosen(unittest.TestCase):
    """What a build says of itself, and that its default table gives the bits of the standard case."""

    def build(self, targets):
        build = WORK / targets.replace(";", " ")
        configure(build, targets, highway=OPTIONS.highway if "highway" in targets else WORK / "none",
                  xsimd=OPTIONS.xsimd if "xsimd" in targets else WORK / "none")
        run(OPTIONS.cmake, "--build", build, "--parallel", "2")
        include = OPTIONS.source / "lib/include"
        for name in ["probe", "consumer"]:
            # As C++ would be, in which only the name of the language differs: one compiler is enough.
            run(OPTIONS.cxx, "-x", "c++" if name == "probe" else "c", f"-I{include}", HERE / f"c/{name}.c", "-x", "none", build / "libetalon.a",
                "-o", build / name)
        return build

    def check(self, targets):
        with self.subTest(targets=targets):
            build = self.build(targets)
            wanted = ["scalar"] + [name for name in TABLES if name in targets.split(";") and name != "scalar"]
            flags = set(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
            runs = [name for name in wanted if TABLES[name] is None or TABLES[name] in flags]
            lines = [f"{name} {'runs' if name in runs else 'lacks'}" for name in wanted]
            self.assertEqual(run(build / "probe").splitlines(), lines + [f"default {runs[-1]}"])
            expected = (HERE / "expected.txt").read_text(encoding="ascii").splitlines()
            for target in [None, *runs]:
                got = run(build / "consumer", **({"ETALON_TARGET": target} if target else {})).splitlines()
                self.assertEqual([line for line in got if not line.startswith("#")], expected, target)

    def test_scalar(self):
        self.check("scalar")

    def test_each_highway_table(self):   # on a CPU that cannot run it the default is scalar
        for name in HIGHWAY:
            self.check(name)

    def test_xsimd_tables(self):   # the default of a build that has nothing else but scalar
        if XSIMD:
            self.check(";".join(XSIMD))

    def test_several(self):
        if "scalar-fma" in TABLES:
            self.check("highway-avx2;scalar-fma;xsimd-avx2")   # an order of no meaning, no AVX-512


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *OPTIONS.rest])

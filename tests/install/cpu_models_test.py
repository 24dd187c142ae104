"""Runs the installed shared library, and the golden digest, on models of processors that qemu knows:

    cpu_models_test.py OPTIONS --digest FILE CpuModels          (options: prefixes.py)

What a model advertises is asked first, since a test of "AVX2 without OSXSAVE" on one that hides AVX2 as well would show nothing. qemu
stops at AVX2: AVX-512 is emulated by tools/run_emulated.sh.
"""
# case: DSP-1, DSP-3
import os
import platform
import shutil
import sys
import unittest

from prefixes import OPTIONS, PROGRAMS, Prefix, compilers, run
from install_test import HERE, Results

# What the processor says of itself, whether or not it may be used.
ADVERTISED = r"""
#include <cpuid.h>
#include <stdio.h>

int main(void) {
  unsigned a, b, c, d, b7 = 0;
  __get_cpuid(1, &a, &b, &c, &d);
  __get_cpuid_count(7, 0, &a, &b7, &a, &d);
  printf("%s%s%s%s%s\n", c >> 28 & 1 ? "avx " : "", c >> 27 & 1 ? "osxsave " : "", c >> 12 & 1 ? "fma " : "", b7 >> 5 & 1 ? "avx2 " : "",
         b7 >> 16 & 1 ? "avx512f " : "");
  return 0;
}
"""

ALL = {"avx", "osxsave", "fma", "avx2"}
# qemu's name, what it advertises, the tables that may run there in ascending preference.
MODELS = [
    ("Nehalem", set(), ["scalar"]),  # SSE4.2 and no more
    ("SandyBridge", {"avx", "osxsave"}, ["scalar"]),
    ("Haswell,-xsave", {"avx", "fma", "avx2"}, ["scalar"]),  # the system keeps no AVX registers, or hides that it does
    ("Haswell,-fma", {"avx", "osxsave", "avx2"}, ["scalar"]),
    ("max,-avx2", {"avx", "osxsave", "fma"}, ["scalar", "scalar-fma"]),
    ("Haswell", ALL, ["scalar", "xsimd-avx2", "scalar-fma", "highway-avx2"]),
    ("EPYC-Rome", ALL, ["scalar", "xsimd-avx2", "scalar-fma", "highway-avx2"]),
]


def emulator():
    return shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")


def lines_of(output):
    """Without what qemu says of features that it cannot emulate."""
    return [line for line in output.splitlines() if "warning: TCG doesn't support" not in line]


class CpuModels(Results):
    @classmethod
    def setUpClass(cls):
        # A skip is an exit code of its own; where the emulator is expected, its absence is a failure.
        if platform.machine() != "x86_64":
            raise unittest.SkipTest("programs are built for this machine, which is no x86-64")
        if emulator() is None:
            if os.environ.get("ETALON_NO_SKIPS"):
                raise AssertionError("there is no qemu-x86_64")
            raise unittest.SkipTest("there is no qemu-x86_64")
        cls.folder = PROGRAMS / "cpu models"
        shutil.rmtree(cls.folder, ignore_errors=True)
        cls.folder.mkdir(parents=True)
        compiler = compilers()[0][0]
        (cls.folder / "advertised.c").write_text(ADVERTISED, encoding="ascii")
        run(compiler, "-O1", cls.folder / "advertised.c", "-o", cls.folder / "advertised")
        prefix = Prefix("shared")
        for name in ["probe", "consumer"]:
            run(compiler, "-std=c99", f"-I{prefix.include}", HERE / f"c/{name}.c", f"-L{prefix.libdir}", "-letalon", "-o", cls.folder / name)

    def on(self, model, *command, expected=0, **variables):
        return lines_of(run(emulator(), "-cpu", model, *command, expected=expected, LD_LIBRARY_PATH=str(Prefix("shared").libdir), **variables))

    def built(self):
        return [line.split()[0] for line in run(self.folder / "probe", LD_LIBRARY_PATH=str(Prefix("shared").libdir)).splitlines()
                if not line.startswith("default ")]

    def test_what_models_advertise(self):
        for model, advertised, _ in MODELS:
            with self.subTest(model=model):
                self.assertEqual(set(" ".join(self.on(model, self.folder / "advertised")).split()), advertised)

    def test_tables_and_the_default(self):
        for model, _, tables in MODELS:
            with self.subTest(model=model):
                legal = [name for name in tables if name in self.built()]
                expected = [f"{name} {'runs' if name in legal else 'lacks'}" for name in self.built()] + [f"default {legal[-1]}"]
                self.assertEqual(self.on(model, self.folder / "probe"), expected)

    def test_results(self):
        for model, _, tables in MODELS:
            self.assert_results("\n".join(self.on(model, self.folder / "consumer")))
            # Each in turn: those that may run give the same, and the others refuse.
            for name in self.built():
                with self.subTest(model=model, forced=name):
                    if name in tables:
                        self.assert_results("\n".join(self.on(model, self.folder / "consumer", ETALON_TARGET=name)))
                    else:
                        self.assertIn("ETALON_TARGET_UNAVAILABLE", self.on(model, self.folder / "consumer", expected=1, ETALON_TARGET=name)[-1])

    def test_digest(self):
        for model, _, tables in MODELS:
            with self.subTest(model=model):
                lines = self.on(model, OPTIONS.digest, "--check", OPTIONS.source / "tests/golden/digest.txt")
                legal = [name for name in tables if name in self.built()]
                self.assertEqual(lines, [f"{name}: equal (host state default)" for name in legal])


if __name__ == "__main__":
    program = unittest.main(argv=[sys.argv[0], *OPTIONS.rest], exit=False)
    skipped = program.result.wasSuccessful() and program.result.testsRun == 0
    sys.exit(77 if skipped else not program.result.wasSuccessful())

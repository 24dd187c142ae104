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
    "x86_64": {"scalar": None, "scalar-fma": "fma", "highway-avx2": "avx2", "highway-avx3": "avx512vl"},
    "aarch64": {"scalar": None, "highway-neon": "asimd"},
}.get(platform.machine(), {"scalar": None})
FOREIGN = "highway-avx2" if platform.machine() == "aarch64" else "highway-neon"
HIGHWAY = [name for name in TABLES if name.startswith("highway-")]

PROBE = r"""
#include <etalon/etalon.h>
#include <stdio.h>

int main(void) {
  etalon_target target;
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    if (etalon_get_target(i, &target) != ETALON_OK) return 1;
    printf("%s %s\n", target.name, target.missing == 0 ? "runs" : "lacks");
  }
  etalon_attention_desc desc;
  if (etalon_attention_desc_init(&desc, sizeof desc) != ETALON_OK) return 2;
  desc.num_q_heads = desc.num_kv_heads = desc.max_batch = desc.max_q_len = desc.max_kv_len = 1;
  desc.head_dim = desc.value_dim = 8;
  desc.q_dtype = desc.k_dtype = desc.v_dtype = desc.out_dtype = ETALON_F32;
  etalon_plan plan;
  etalon_plan_info info;
  if (etalon_plan_init(&plan, &desc, NULL) != ETALON_OK) return 3;
  if (etalon_plan_info_init(&info, sizeof info) != ETALON_OK) return 4;
  if (etalon_plan_get_info(&plan, NULL, &info, NULL) != ETALON_OK) return 5;
  printf("default %s\n", info.target);
  return 0;
}
"""


def configure(build, targets, expected=0, highway=OPTIONS.highway, **more):
    shutil.rmtree(build, ignore_errors=True)
    options = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_COMPILER": OPTIONS.cxx, "ETALON_BUILD_TESTS": "OFF", "ETALON_BUILD_CLI": "OFF",
               "ETALON_BUILD_THREAD_POOL": "OFF", "ETALON_TARGETS": targets, **more}
    if highway:
        options["ETALON_HIGHWAY_SOURCE_DIR"] = highway
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

    @unittest.skipUnless(HIGHWAY, "no table of Highway here")
    def test_highway_that_is_not_there(self):
        empty = WORK / "empty"
        empty.mkdir(parents=True, exist_ok=True)
        self.assert_refused("all", "Highway 1.2 or newer was not found", "run cmake/deps.sh", "ETALON_TARGETS to scalar tables to do without", highway=empty)
        old = WORK / "old"
        (old / "hwy").mkdir(parents=True, exist_ok=True)
        (old / "hwy/base.h").write_text("#define HWY_MAJOR 1\n#define HWY_MINOR 0\n#define HWY_PATCH 7\n", encoding="ascii")
        self.assert_refused("all", f"Highway in {old} is 1.0, 1.2 or newer is needed: run cmake/deps.sh", highway=old)

    def test_scalar_needs_no_highway(self):
        build = WORK / "scalar alone"
        configure(build, "scalar", highway=WORK / "none")
        self.assertNotIn("arch/highway", (build / "compile_commands.json").read_text(encoding="utf-8")
                         if (build / "compile_commands.json").exists() else "")
        self.assertFalse((build / "highway_only").exists())


class Chosen(unittest.TestCase):
    """What a build says of itself, and that its default table gives the bits of the standard case."""

    def build(self, targets):
        build = WORK / targets.replace(";", " ")
        configure(build, targets, highway=OPTIONS.highway if "highway" in targets else WORK / "none")
        run(OPTIONS.cmake, "--build", build, "--parallel", "2")
        include = OPTIONS.source / "lib/include"
        (build / "probe.c").write_text(PROBE, encoding="ascii")
        for name, source in [("probe", build / "probe.c"), ("consumer", HERE / "c/consumer.c")]:
            # As C++ would be, in which only the name of the language differs: one compiler is enough.
            run(OPTIONS.cxx, "-x", "c++" if name == "probe" else "c", f"-I{include}", source, "-x", "none", build / "libetalon.a", "-o", build / name)
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

    def test_several(self):
        if len(TABLES) > 2:
            self.check("highway-avx2;scalar-fma")   # an order of no meaning, no AVX-512


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *OPTIONS.rest])

"""Installs the library in several layouts, moves each prefix, and builds other people's programs against it:

    install_test.py OPTIONS CLASS          (options: prefixes.py)

The class Prefixes makes the prefixes in the work folder, the other ones use them.
"""
# case: BLD-1, BLD-2, BLD-4, BLD-5
import os
import pathlib
import platform
import re
import shlex
import shutil
import struct
import sys
import unittest

from prefixes import (DISTRIBUTION, DISTRIBUTION_TEXT, LAYOUTS, OPTIONS, PROGRAMS, WITHOUT_POOL, Prefix, abi_version,
                      compilers, configure, major_minor, prefixes, run, version)

HERE = pathlib.Path(__file__).resolve().parent


class Prefixes(unittest.TestCase):
    def test_install(self):
        for folder in ["staged", "moved", PROGRAMS]:
            shutil.rmtree(OPTIONS.work / folder, ignore_errors=True)
        PROGRAMS.mkdir()
        (OPTIONS.work / "moved").mkdir()
        DISTRIBUTION.write_text(DISTRIBUTION_TEXT, encoding="utf-8")
        build = OPTIONS.work / "library"   # one for all: a change of layout compiles nothing anew
        for prefix in prefixes(*LAYOUTS, WITHOUT_POOL):
            options = {"CMAKE_CXX_COMPILER": OPTIONS.cxx, "ETALON_BUILD_TESTS": "OFF", "ETALON_BUILD_CLI": "OFF",
                       "ETALON_HIGHWAY_SOURCE_DIR": OPTIONS.highway, "ETALON_XSIMD_INCLUDE_DIR": OPTIONS.xsimd, "BUILD_SHARED_LIBS": prefix.shared, "ETALON_BUILD_THREAD_POOL": prefix.name != WITHOUT_POOL,
                       "CMAKE_INSTALL_PREFIX": prefix.staged, "CMAKE_INSTALL_LIBDIR": prefix.libdir_option}
            configure(OPTIONS.source, build, *(f"-D{name}={value}" for name, value in options.items()))
            run(OPTIONS.cmake, "--build", build, "--parallel", "2")
            run(OPTIONS.cmake, "--install", build)
            if prefix.moves:
                prefix.staged.rename(prefix.root)


class Results(unittest.TestCase):
    """What consumer.c and consumer.cc print."""

    def setUp(self):
        self.expected = (HERE / "expected.txt").read_text(encoding="ascii").splitlines()

    def assert_results(self, output, fast_math=False):
        lines = output.splitlines()
        self.assertEqual([line for line in lines if not line.startswith("#")], self.expected)
        host = [line for line in lines if line.startswith("#")]
        flushes = fast_math and platform.machine() == "x86_64"
        self.assertEqual(host, [f"# subnormals are {'flushed' if flushes else 'kept'}"] * 2)


class Expected(Results):
    """The golden file itself, against the sums that the field cases state."""

    # case: DSP-4
    def test_standard_case(self):
        words = [word for line in self.expected if line.startswith("standard ") for word in line.split()[1:]]
        values = [struct.unpack(">f", bytes.fromhex(word))[0] for word in words]
        out, lse = values[:4 * 7 * 24], values[4 * 7 * 24:]
        self.assertEqual(len(lse), 4 * 7)

        def near(got, expected, allowed):
            self.assertEqual(len(got), len(expected))
            for g, e in zip(got, expected):
                self.assertLessEqual(abs(g - e), allowed)

        near([sum(out)], [0.0613988], 1e-4)
        near([sum(x * x for x in out)], [0.1851589], 1e-4)
        near(out[(3 * 7 + 6) * 24:][:4], [-0.0022390, -0.0176189, -0.0118085, 0.0176983], 2e-6)
        near(out[:4], [-0.0018237, 0.0072190, -0.0136568, -0.0134841], 2e-6)
        near([lse[0], lse[3 * 7 + 6]], [4.8613115, 4.9067476], 1e-5)


class Programs(Results):
    def build(self, project, prefix, language, compiler):
        build = PROGRAMS / f"{project} {prefix.name} {compiler}"
        configure(HERE / project, build, *prefix.cmake_arguments(), f"-DCMAKE_{language}_COMPILER={compiler}",
                  f"-DETALON_WANTED={major_minor()}")
        self.assertRegex((build / "CMakeCache.txt").read_text(encoding="utf-8"),
                         rf"\netalon_DIR:\w+={re.escape(str(prefix.libdir))}/cmake/etalon\n")
        run(OPTIONS.cmake, "--build", build, "--parallel", "2")
        return build

    def check(self, project, prefix, language, compiler):
        with self.subTest(project=project, prefix=prefix.name, compiler=compiler):
            build = self.build(project, prefix, language, compiler)
            self.assert_results(run(build / "consumer"))
            self.assert_results(run(build / "consumer", ETALON_TARGET="scalar"))
            self.assert_results(run(build / "consumer_fast_math"), fast_math=True)


class Static(Programs):
    def test_compilers(self):
        for c, cxx in compilers():
            self.check("c", Prefix("static"), "C", c)
            self.check("cxx", Prefix("static"), "CXX", cxx)


class Shared(Programs):
    def test_compilers(self):
        for c, cxx in compilers():
            self.check("c", Prefix("shared"), "C", c)
            self.check("cxx", Prefix("shared"), "CXX", cxx)


class Layouts(Programs):
    def test_layouts(self):
        c, cxx = compilers()[0]
        self.check("c", Prefix("static64"), "C", c)
        self.check("c", Prefix("shared multiarch"), "C", c)
        self.check("cxx", Prefix("shared64"), "CXX", cxx)
        self.check("cxx", Prefix("static absolute"), "CXX", cxx)
        self.check("cxx", Prefix(WITHOUT_POOL), "CXX", cxx)


class ThreadPool(Programs):
    def test_programs(self):
        for prefix in prefixes("static", "shared"):
            with self.subTest(prefix=prefix.name):
                self.assert_results(run(self.build("pool", prefix, "C", compilers()[0][0]) / "consumer"))


class PkgConfig(Results):
    def test_versions_and_paths(self):
        for prefix in prefixes():
            for package in ["etalon", "etalon-thread-pool"]:
                with self.subTest(prefix=prefix.name, package=package):
                    def ask(*arguments):
                        return run("pkg-config", *arguments, package, **prefix.environment()).strip()

                    self.assertEqual(ask("--modversion"), "%d.%d.%d" % version())
                    folders = {"prefix": prefix.root, "libdir": prefix.libdir, "includedir": prefix.include}
                    for variable, folder in folders.items():
                        [path] = shlex.split(ask(f"--variable={variable}"))
                        self.assertEqual(os.path.normpath(path), str(folder))

    def flags(self, prefix, package, *arguments):
        output = run("pkg-config", *arguments, "--cflags", "--libs", package, **prefix.environment())
        return [word if word[:2] not in ("-I", "-L") else word[:2] + os.path.normpath(word[2:])
                for word in shlex.split(output)]

    def test_flags(self):
        for prefix in prefixes():
            for static in [[], ["--static"]]:
                with self.subTest(prefix=prefix.name, static=static):
                    folders = [f"-I{prefix.include}", f"-L{prefix.libdir}"]
                    self.assertEqual(self.flags(prefix, "etalon", *static), [*folders, "-letalon"])
                    thread_flags = [] if prefix.shared else ["-pthread"]
                    self.assertEqual(sorted(self.flags(prefix, "etalon-thread-pool", *static)),
                                     sorted([*folders, "-letalon_thread_pool", *thread_flags, "-letalon"]))

    def program(self, prefix, compiler, package, *options):
        program = PROGRAMS / "by hand"
        run(compiler, "-std=c99", HERE / "c/consumer.c", "-o", program, *options, *self.flags(prefix, package))
        return program

    def test_programs(self):
        for prefix in prefixes():
            # Not the C++ compiler: a program in C needs neither the C++ run-time nor libm.
            for compiler in [pair[0] for pair in compilers()]:
                for options in [["-O0"], ["-O3", "-ffast-math"]]:
                    with self.subTest(prefix=prefix.name, compiler=compiler, options=options):
                        program = self.program(prefix, compiler, "etalon", *options)
                        self.assert_results(run(program, **prefix.environment()), fast_math="-ffast-math" in options)

    def test_static_program(self):
        compiler = compilers()[0][0]
        source = PROGRAMS / "empty.c"
        source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
        try:
            run(compiler, "-static", source, "-o", source.with_suffix(""))
        except AssertionError:
            self.skipTest("there is no static C library")
        self.assert_results(run(self.program(Prefix("static"), compiler, "etalon", "-static")))

    def test_thread_pool(self):
        for prefix in prefixes("static64", "shared multiarch"):
            with self.subTest(prefix=prefix.name):
                program = self.program(prefix, compilers()[0][0], "etalon-thread-pool", "-DCONSUMER_HAS_POOL")
                self.assert_results(run(program, **prefix.environment()))


class Headers(unittest.TestCase):
    STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]

    def setUp(self):
        self.prefix = Prefix("static")
        self.c_headers = sorted(f"etalon/{path.name}" for path in (self.prefix.include / "etalon").glob("*.h"))
        self.cxx_headers = sorted(f"etalon/{path.name}" for path in (self.prefix.include / "etalon").glob("*.hpp"))
        self.folder = PROGRAMS / "headers"
        self.folder.mkdir(parents=True, exist_ok=True)

    def compile(self, compiler, name, headers, *options, more=""):
        source = self.folder / name
        source.write_text("".join(f"#include <{header}>\n" for header in headers) + more, encoding="utf-8")
        target = source.with_suffix(".o")
        run(compiler, *self.STRICT, *options, f"-I{self.prefix.include}", "-c", source, "-o", target)
        return target

    def test_all_are_installed(self):
        self.assertEqual([*self.c_headers, *self.cxx_headers],
                         [f"etalon/{path.name}" for pattern in ["*.h", "*.hpp"]
                          for path in sorted((OPTIONS.source / "lib/include/etalon").glob(pattern))])

    def test_each_alone(self):
        for c, cxx in compilers():
            for header in self.c_headers:
                for compiler, standard in [(c, "c99"), (c, "c11"), (cxx, "c++11"), (cxx, "c++17")]:
                    with self.subTest(header=header, compiler=compiler, standard=standard):
                        self.compile(compiler, "alone.c" if compiler == c else "alone.cc", [header], f"-std={standard}",
                                     more="int unused(void);\n")
            for header in self.cxx_headers:
                for options in [["-std=c++17"], ["-std=c++17", "-fno-exceptions", "-fno-rtti"], ["-std=c++20"]]:
                    with self.subTest(header=header, compiler=cxx, options=options):
                        self.compile(cxx, "alone.cc", [header], *options)

    def test_two_sources(self):
        headers = [*self.c_headers, *self.cxx_headers]
        for _, cxx in compilers():
            for options in [["-std=c++17"], ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-O2", "-ffast-math"]]:
                with self.subTest(compiler=cxx, options=options):
                    # The second one in the other order, and each header twice.
                    one = "const char* Version() { return etalon_version(); }\n"
                    two = "const char* Version();\nint main() { return Version() == etalon_version() ? 0 : 1; }\n"
                    objects = [self.compile(cxx, "one.cc", headers + headers, *options, more=one),
                               self.compile(cxx, "two.cc", headers[::-1], *options, more=two)]
                    libraries = [f"-L{self.prefix.libdir}", "-letalon_thread_pool", "-letalon", "-pthread"]
                    run(cxx, *objects, *libraries, "-o", self.folder / "two")
                    run(self.folder / "two")


class Package(unittest.TestCase):
    def test_files(self):
        for prefix in prefixes():
            with self.subTest(prefix=prefix.name):
                for library in ["libetalon", "libetalon_thread_pool"]:
                    self.assertTrue(prefix.library(library).is_file())
                    self.assertFalse(prefix.library(library).with_suffix(".a" if prefix.shared else ".so").exists())
                self.assertTrue((prefix.root / "share/licenses/etalon/LICENSE").is_file())

    def test_no_file_names_where_it_was_made(self):
        for prefix in prefixes():
            if not prefix.moves:
                continue
            for path in sorted(path for path in prefix.root.rglob("*") if path.is_file()):
                text = path.read_bytes()
                for folder in [OPTIONS.source, OPTIONS.work]:
                    with self.subTest(path=str(path), folder=str(folder)):
                        self.assertNotIn(str(folder).encode(), text)

    def test_shared_libraries(self):
        for prefix in prefixes():
            if not prefix.shared:
                continue
            for library in ["libetalon", "libetalon_thread_pool"]:
                with self.subTest(prefix=prefix.name, library=library):
                    link = prefix.library(library)
                    names = [f"{link.name}.{abi_version()}", link.name + ".%d.%d.%d" % version()]
                    self.assertEqual(link.resolve().name, names[1])
                    self.assertEqual((prefix.libdir / names[0]).resolve().name, names[1])
                    dynamic = re.findall(r"\((\w+)\) .*\[(.*)\]", run("readelf", "-d", link))
                    self.assertEqual([value for tag, value in dynamic if tag == "SONAME"], [names[0]])
                    self.assertEqual([value for tag, value in dynamic if tag in ("RPATH", "RUNPATH")], [])
                    needed = [value for tag, value in dynamic if tag == "NEEDED"]
                    for value in needed:   # the C library in its parts, no C++ run-time and no libm
                        self.assertRegex(value, r"^(libc|libpthread|ld-linux.*)\.so\.\d+$")

    def test_exports(self):
        public = OPTIONS.source / "lib/include/etalon"
        pool_header = public / "thread_pool.h"
        for library, listed, headers in [
                ("libetalon", "lib/api/symbols.txt", sorted(set(public.glob("*.h")) - {pool_header})),
                ("libetalon_thread_pool", "lib/thread_pool/symbols.txt", [pool_header])]:
            with self.subTest(library=library):
                libraries = [prefix.library(library) for prefix in prefixes("static", "shared")]
                run(sys.executable, OPTIONS.source / "tools/check_symbols.py", "--nm", OPTIONS.nm,
                    "exports", OPTIONS.source / listed, *libraries, "--headers", *headers)

    def request(self, words, prefix, expected=0, languages="NONE"):
        source = PROGRAMS / "request"
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir(parents=True)
        only_there = "NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH NO_CMAKE_PACKAGE_REGISTRY"
        targets = "etalon::etalon etalon::thread_pool Threads::Threads"
        (source / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.20)\nproject(request LANGUAGES {languages})\n"
            f"find_package(etalon {words} {only_there})\n"
            f'message("found=${{etalon_FOUND}}")\nforeach(target IN ITEMS {targets})\n'
            '  if(TARGET ${target})\n    message("target=${target}")\n  endif()\nendforeach()\n', encoding="utf-8")
        return configure(source, source / "build", *prefix.cmake_arguments(), expected=expected)

    def test_versions(self):
        major, minor, patch = version()
        good = ["", f"{major}.{minor}", f"{major}.{minor}.{patch}", f"{major}.{minor}.{patch} EXACT",
                f"{major}.{minor}...<{major}.{minor + 1}"]
        bad = [f"{major + 1}", f"{major + 1}.0", f"{major}.{minor + 1}", f"{major}.{minor}.{patch + 1}"]
        if major == 0 and minor > 0:
            bad.append(f"0.{minor - 1}")
        for prefix in prefixes("static", "shared multiarch"):
            for request in good:
                with self.subTest(prefix=prefix.name, request=request):
                    output = self.request(f"{request} CONFIG REQUIRED", prefix)
                    self.assertIn("found=1\ntarget=etalon::etalon\n--", output)
            for request in bad:
                with self.subTest(prefix=prefix.name, request=request):
                    output = self.request(f"{request} CONFIG", prefix)
                    self.assertIn("found=0\n--", output)
                    self.assertRegex(output, r"not accepted:\s+%s/cmake/etalon/etalon-config.cmake, version: %d.%d.%d\s"
                                     % (re.escape(str(prefix.libdir)), *version()))
        self.request(f"{major + 1} CONFIG REQUIRED", Prefix("static"), expected=1)

    def test_components(self):
        prefix = Prefix("static")
        pool = "found=1\ntarget=etalon::etalon\ntarget=etalon::thread_pool\ntarget=Threads::Threads\n--"
        for language in ["C", "CXX"]:
            self.assertIn(pool, self.request("CONFIG REQUIRED COMPONENTS thread_pool", prefix, languages=language))
        output = self.request("CONFIG COMPONENTS spectroscope", prefix)
        self.assertIn("found=0\n", output)
        self.assertIn("no component spectroscope", output)
        output = self.request("CONFIG REQUIRED OPTIONAL_COMPONENTS spectroscope", prefix)
        self.assertIn("found=1\ntarget=etalon::etalon\n--", output)
        # The first request does not stand in the way of the second.
        again = ")\nfind_package(etalon CONFIG REQUIRED COMPONENTS thread_pool"
        self.assertIn(pool, self.request("CONFIG REQUIRED" + again, prefix, languages="C"))

    def test_without_the_pool(self):
        prefix = Prefix(WITHOUT_POOL)
        self.assertEqual([str(path) for path in prefix.root.rglob("*thread*")], [])
        self.assertIn("found=1\ntarget=etalon::etalon\n--", self.request("CONFIG REQUIRED", prefix))
        output = self.request("CONFIG COMPONENTS thread_pool", prefix)
        self.assertIn("found=0\n", output)
        self.assertIn("no component thread_pool", output)

    def test_part_of_another_project(self):
        source = PROGRAMS / "parent"
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir(parents=True)
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.20)\nproject(parent VERSION 7.8.9 LANGUAGES CXX)\n"
            f"add_subdirectory([[{OPTIONS.source}]] etalon)\n", encoding="utf-8")
        for option, expected in [([], False), (["-DETALON_INSTALL=ON"], True)]:
            with self.subTest(option=option):
                configure(source, source / "build", f"-DCMAKE_CXX_COMPILER={OPTIONS.cxx}", *option)
                rules = (source / "build/etalon/cmake_install.cmake").read_text(encoding="utf-8")
                self.assertEqual("libetalon" in rules, expected)
        self.assertIn("%d.%d.%d" % version(), (source / "build/etalon/etalon.pc").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *OPTIONS.rest])

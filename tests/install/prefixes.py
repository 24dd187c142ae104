"""The prefixes that the library is installed into for tests, and how to run other people's tools on them."""
import argparse
import functools
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import unittest


def parse_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path, help="the checkout")
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder for all that is made")
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--generator", required=True)
    parser.add_argument("--cxx", required=True, help="builds the library; programs are built by gcc and by clang")
    parser.add_argument("--nm", required=True)
    parser.add_argument("--highway", default="", help="folder of Highway, where it is not the system's")
    parser.add_argument("--xsimd", default="", help="folder of xsimd's headers, likewise")
    parser.add_argument("--digest", type=pathlib.Path, help="etalon_digest, for cpu_models_test.py")
    options, options.rest = parser.parse_known_args()
    options.work.mkdir(parents=True, exist_ok=True)
    options.source, options.work = options.source.resolve(), options.work.resolve()
    return options


OPTIONS = parse_options()

MULTIARCH = platform.machine() + "-linux-gnu"

# Layouts: whether shared, and the library folder; None is an absolute one, and that prefix stays where it is.
LAYOUTS = {
    "static": (False, "lib"),
    "static64": (False, "lib64"),
    "static absolute": (False, None),
    "shared": (True, "lib"),
    "shared64": (True, "lib64"),
    "shared multiarch": (True, "lib/" + MULTIARCH),
}
WITHOUT_POOL = "static without pool"

# Where programs are built.
PROGRAMS = OPTIONS.work / "programs"

# Which library folders CMake looks into depends on the distribution. Projects that include this look into all of them.
DISTRIBUTION = OPTIONS.work / "distribution.cmake"
DISTRIBUTION_TEXT = ("set_property(GLOBAL PROPERTY FIND_LIBRARY_USE_LIB64_PATHS TRUE)\n"
                     f"set(CMAKE_LIBRARY_ARCHITECTURE {MULTIARCH})\n")

# Variables of the environment that help tools to find things.
HELPFUL = re.compile(r"(?:ETALON|CMAKE|PKG_CONFIG|LD)_|(?:CC|CXX|DESTDIR|(?:C|CXX|CPP|LD)FLAGS)$"
                     r"|(?:C|CPLUS|LIBRARY)\w*PATH$")


class Prefix:
    def __init__(self, name):
        self.name = name
        self.shared, libdir = LAYOUTS.get(name, (False, "lib"))
        self.moves = libdir is not None
        self.staged = OPTIONS.work / "staged" / name   # where it is installed
        self.root = OPTIONS.work / "moved" / name if self.moves else self.staged
        self.libdir_option = libdir if self.moves else str(OPTIONS.work / "staged" / "elsewhere")
        self.libdir = self.root / self.libdir_option
        self.include = self.root / "include"

    def library(self, name):
        return self.libdir / (name + (".so" if self.shared else ".a"))

    def cmake_arguments(self):
        """How somebody who uses it tells CMake where it is."""
        if not self.moves:
            return [f"-Detalon_DIR={self.libdir}/cmake/etalon"]
        return [f"-DCMAKE_PREFIX_PATH={self.root}", f"-DCMAKE_PROJECT_INCLUDE={DISTRIBUTION}"]

    def environment(self):
        """What a program needs in order to run, and pkg-config in order to see this prefix alone."""
        return {"LD_LIBRARY_PATH": str(self.libdir), "PKG_CONFIG_LIBDIR": str(self.libdir / "pkgconfig")}


def prefixes(*names):
    return [Prefix(name) for name in names or LAYOUTS]


def run(*command, expected=0, **variables):
    """Output of a command, with nothing in its environment that could help it to find what it should find by itself."""
    env = {name: value for name, value in os.environ.items() if not HELPFUL.match(name)}
    env.update(variables, LC_ALL="C")
    done = subprocess.run([str(word) for word in command], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode != expected:
        line = shlex.join(map(str, command))
        raise AssertionError(f"{line}\nexit code {done.returncode}, not {expected}:\n{done.stdout}")
    return done.stdout


@functools.lru_cache(maxsize=None)
def compilers():
    """[(C, C++)]: those of gcc and of the best clang."""
    suffixes = ["-19", *(f"-{major}" for major in range(40, 15, -1)), ""]
    pairs = [("gcc", "g++"), *((f"clang{suffix}", f"clang++{suffix}") for suffix in suffixes)]
    found = []
    for name in ["gcc", "clang"]:
        pair = next((pair for pair in pairs if pair[0].startswith(name) and all(map(shutil.which, pair))), None)
        if pair is None:
            print(f"SKIPPED programs built with {name}: it is not there")
        else:
            found.append(pair)
    if not found:
        raise unittest.SkipTest("neither gcc nor clang is there")
    return found


@functools.lru_cache(maxsize=None)
def version():
    """(major, minor, patch), from the header."""
    text = (OPTIONS.source / "lib/include/etalon/etalon.h").read_text(encoding="utf-8")
    return tuple(int(re.search(rf"^#define ETALON_VERSION_{part} (\d+)$", text, re.MULTILINE).group(1))
                 for part in ["MAJOR", "MINOR", "PATCH"])


def abi_version():
    return "0.%d" % version()[1] if version()[0] == 0 else str(version()[0])


def major_minor():
    return "%d.%d" % version()[:2]


def configure(source, build, *arguments, expected=0):
    return run(OPTIONS.cmake, "-S", source, "-B", build, "-G", OPTIONS.generator, "-DCMAKE_BUILD_TYPE=Release",
               *arguments, expected=expected)

"""Runs the tool as if nothing in the environment were meant for it."""
import os
import subprocess


def environment(variables):
    return {**{name: value for name, value in os.environ.items() if not name.startswith("ETALON_")}, **variables}


def run(*command, **variables):
    return subprocess.run(command, env=environment(variables), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50)

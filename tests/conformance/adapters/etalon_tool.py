"""Etalon, through `etalon attend`: the options of a case are the tool's."""
import pathlib
import subprocess
import tempfile

from arrays import parse_npy


class Adapter:
    name = "Etalon"
    function = "etalon attend"

    def __init__(self, settings):
        self.command = [settings["tool"], "attend"]
        self.more = ["--target=" + settings["target"]] if settings.get("target") else []
        said = subprocess.run([settings["tool"], "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.version = said.strip().partition(" ")[2]

    def supports(self, case):
        return ""

    def run(self, case):
        options = ["--%s=%s" % (name.replace("_", "-"), ",".join(map(str, value)) if isinstance(value, list) else value)
                   for name, value in case.options.items()]
        with tempfile.TemporaryDirectory() as folder:
            files = {name: pathlib.Path(folder, name + ".npy") for name in ("out", "lse")}
            outputs = ["--%s=%s" % (name, path) for name, path in files.items()]
            done = subprocess.run([*self.command, str(case.path), *options, *self.more, *outputs], capture_output=True, text=True)
            if done.returncode not in (0, 1, 2, 3):  # no refusal
                raise SystemExit(done.returncode)
            if done.returncode > 1:
                raise ValueError(done.stderr.replace(str(case.path), case.path.name).partition("\n")[0])
            # 1: the tool itself finds the result wrong. Which answer it is is for the runner to say.
            return {name: parse_npy(path.read_bytes()) for name, path in files.items()}

"""The tool as `cmake --install` leaves it, moved to another place:  installed_test.py CMAKE BUILD_DIR BINDIR DATADIR"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import layers
import tool

CMAKE = BUILD = BINDIR = DATADIR = None


class Installed(unittest.TestCase):
    def test_the_demo_finds_its_layers(self):
        with tempfile.TemporaryDirectory() as holder:
            staged = pathlib.Path(holder) / "staged"
            subprocess.run([CMAKE, "--install", BUILD, "--prefix", staged, "--component", "etalon_tool"], check=True,
                           stdout=subprocess.DEVNULL)
            prefix = pathlib.Path(holder) / "moved"
            staged.rename(prefix)
            folder = prefix / DATADIR / "etalon" / "layers"
            files = sorted(path.name for path in folder.glob("*.npz"))
            self.assertEqual(files, ["minilm_L0_n512.npz", "whisper_cross2.npz", "whisper_enc1_n1500.npz"])
            self.assertTrue((folder / "README.md").is_file(), "the data's licences go with it")
            # Small stand-ins: that they are found shows that the folder of the source was not read.
            (folder / "index.json").unlink()
            for name in files:
                layers.write(folder / name, layers.small())
            done = tool.run(prefix / BINDIR / "etalon", "demo", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([layer["q"] for layer in json.loads(done.stdout)["layers"]], [[4, 20, 8]] * 3)


if __name__ == "__main__":
    CMAKE, BUILD, BINDIR, DATADIR = (sys.argv.pop(1) for _ in range(4))
    unittest.main()

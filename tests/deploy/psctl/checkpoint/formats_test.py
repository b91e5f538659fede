"""What earlier releases have written is read: their checkpoints, logs and coordinator.state.

Each format_N.tar.gz has the directory of a small run (run.yaml, its data, and checkpoints/),
written by a program of durable format N. To add the one of the present format, run in such a directory

    psctl run run.yaml --run-dir out --set training.epochs=5 --set durability.interval=100ms
    mv out/checkpoints . && rm $(find checkpoints -name LOCK)

and pack it. It stays as it is from then on, as long as kOldestDurableFormat allows.
"""
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import unittest

HERE = pathlib.Path(__file__).absolute().parent
sys.path.append(str(HERE.parents[2] / "support"))
from programs import DEADLINE_S, program, scratch

FORMATS = sorted(HERE.glob("format_*.tar.gz"))


def psctl(*arguments):
    done = subprocess.run([program("deploy/psctl/psctl"), *map(str, arguments)], text=True, check=False,
                          timeout=DEADLINE_S, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout, done.stderr


class FormatsTest(unittest.TestCase):
    def setUp(self):
        directory = scratch()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def unpack(self, archive):
        with tarfile.open(archive) as files:
            files.extractall(self.directory / archive.name)
        return self.directory / archive.name / "checkpoints"

    def test_the_present_format_is_among_them(self):
        version = psctl("--version")[1]
        present = re.search(r"durable format (\d+)", version)[1]
        self.assertIn(f"format_{present}.tar.gz", [archive.name for archive in FORMATS])

    def test_a_log_is_done_again_to_the_bits_of_the_next_checkpoint(self):
        for archive in FORMATS:
            with self.subTest(archive.name):
                code, text, errors = psctl("checkpoint", "verify", self.unpack(archive), "--replay")
                self.assertEqual(code, 0, text + errors)
                self.assertGreaterEqual(text.count(", equal"), 2, text)

    def test_all_that_was_kept_is_listed(self):
        for archive in FORMATS:
            with self.subTest(archive.name):
                code, text, errors = psctl("checkpoint", "ls", self.unpack(archive), "-o", "json")
                self.assertEqual(code, 0, errors)
                found = {(each["shard"], each["generation"], each["version"])
                         for each in json.loads(text)}
                for shard in (0, 1):
                    versions = sorted(version for of, _, version in found if of == shard)
                    self.assertGreaterEqual(len(versions), 2, text)


if __name__ == "__main__":
    unittest.main()

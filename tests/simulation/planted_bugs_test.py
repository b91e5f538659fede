"""Each planted bug is found within 200 seeds."""
import pathlib
import re
import subprocess
import unittest

SEEDS = 200
PROGRAMS = sorted(pathlib.Path("tests/simulation").glob("simulate_*"))


class PlantedBugsTest(unittest.TestCase):
    def test_there_are_some(self):
        self.assertGreaterEqual(len(PROGRAMS), 9)


def test_of(program):
    def is_found(self):
        run = subprocess.run([program, "--seeds", str(SEEDS), "--until-failure"],
                             capture_output=True, text=True, timeout=600, check=False)
        # Exit code 0 means that no bug was found. A failed check that ends the program counts as
        # found.
        self.assertNotEqual(run.returncode, 0, f"the simulator is blind to it:\n{run.stdout}")
        seed = re.search(r"--seed (\d+)", run.stdout + run.stderr)
        self.assertIsNotNone(seed, run.stdout + run.stderr)
        print(f"{program.name}: found by seed {seed[1]}")

    return is_found


for path in PROGRAMS:
    setattr(PlantedBugsTest, f"test_{path.name.removeprefix('simulate_')}_is_found", test_of(path))

if __name__ == "__main__":
    unittest.main()

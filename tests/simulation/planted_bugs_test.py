"""Each planted bug is found within 3,000 seeds."""
import pathlib
import re
import subprocess
import unittest

SEEDS = 3000
PROGRAM = "tests/simulation/simulate_planted"
BUGS = re.findall(r'^    "(\w+)": \(',
                  pathlib.Path("tests/simulation/planted_bugs.bzl").read_text("utf-8"), re.M)


def simulate(bug):
    return subprocess.run([PROGRAM, "--seeds", str(SEEDS), "--until-failure"], capture_output=True,
                          env={"PLANTED_BUG": bug}, text=True, timeout=600, check=False)


class PlantedBugsTest(unittest.TestCase):
    def test_there_are_some(self):
        self.assertGreaterEqual(len(BUGS), 52)

    def test_nothing_is_found_where_no_bug_is_chosen(self):
        run = simulate("")
        self.assertEqual(run.returncode, 0, run.stdout)


def test_of(bug):
    def is_found(self):
        run = simulate(bug)
        # Exit code 0 means that no bug was found. A failed check that ends the program counts as
        # found.
        self.assertNotEqual(run.returncode, 0, f"the simulator is blind to it:\n{run.stdout}")
        seed = re.search(r"--seed (\d+)", run.stdout + run.stderr)
        self.assertIsNotNone(seed, run.stdout + run.stderr)
        print(f"{bug}: found by seed {seed[1]}")

    return is_found


for name in BUGS:
    setattr(PlantedBugsTest, f"test_{name}_is_found", test_of(name))

if __name__ == "__main__":
    unittest.main()

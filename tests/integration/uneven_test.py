"""Tests of workers that run.yaml makes slow, and of comparisons of their runs."""
import json
import pathlib
import unittest
import xml.etree.ElementTree

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
SLOW_S = 0.04
UNEVEN = "[{delay: 2ms}, {delay: 2ms}, {delay: 2ms}, {delay: 40ms}]"
STEPS_OF_ONE = 50  # A quarter of an epoch's 200 steps, as one of four workers.


def pushes_of(run):
    """Returns the number of pushes of each worker, the slow one last."""
    return [worker["pushes"] for worker in run["workers"]]


class UnevenTest(unittest.TestCase):
    def run_with(self, directory, name, **settings):
        settings = {key.replace("__", "."): value for key, value in settings.items()}
        return cluster.run(CONFIG, {"testing.workers": UNEVEN, **settings},
                           run_dir=pathlib.Path(directory) / name)

    def test_the_slow_worker_holds_up_hardsync_and_not_async(self):
        with cluster.scratch() as directory:
            hardsync = self.run_with(directory, "hardsync", consistency__policy="hardsync")
            fast = [self.run_with(directory, f"async-{seed}", consistency__policy="async", seed=seed)
                    for seed in (1, 2)]
            local = self.run_with(directory, "local", consistency__policy="hardsync",
                                  worker__algorithm="local_sgd")
            self.assertGreater(hardsync["seconds"], STEPS_OF_ONE * SLOW_S)
            self.assertGreater(local["seconds"], STEPS_OF_ONE * SLOW_S)
            # Times and ratios would depend on the machine: who does less than a fair share does not.
            self.assertEqual(pushes_of(hardsync), [STEPS_OF_ONE] * 4)
            for run in fast:
                *others, slow = pushes_of(run)
                self.assertLess(slow, min(STEPS_OF_ONE, *others))

            runs = [str(path) for path in sorted(pathlib.Path(directory).iterdir())]
            groups = json.loads(cluster.psctl("compare", *runs, "-o", "json").stdout)["groups"]
            svg = cluster.psctl("plot", *runs).stdout.strip()
            root = xml.etree.ElementTree.parse(svg).getroot()

        self.assertEqual([len(group["runs"]) for group in groups], [2, 1, 1])
        for figure in ("test_accuracy", "test_loss", "seconds", "examples_per_second",
                       "staleness_mean", "staleness_p99", "updates"):
            self.assertEqual(groups[0][figure]["count"], 2, figure)
        self.assertEqual(groups[0]["seconds"]["mean"], sum(run["seconds"] for run in fast) / 2)
        texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn(groups[0]["label"] + " (2 runs)", texts)
        self.assertNotIn("nothing was measured", texts)


if __name__ == "__main__":
    unittest.main()

"""Tests of psctl compare and psctl plot on run directories, as a user calls them."""
import json
import pathlib
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.path.append(str(pathlib.Path(__file__).absolute().parents[3] / "support"))
from programs import DEADLINE_S, program, scratch

SVG = "{http://www.w3.org/2000/svg}"


def psctl(*arguments, cwd):
    return subprocess.run([program("deploy/psctl/psctl"), *arguments], text=True, timeout=DEADLINE_S,
                          check=False, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def leave_run(directory, seed, policy, seconds, **more):
    """Makes a run directory as psctl run leaves it. `more`: figures of the summary."""
    directory.mkdir(parents=True)
    (directory / "run.yaml").write_text(
        f"name: digits\nseed: {seed}\nmodel: {{preset: mlp}}\nconsistency: {{policy: {policy}}}\n")
    (directory / "summary.json").write_text(json.dumps({
        "name": "digits", "ended_by": "target_accuracy", "test_accuracy": 0.95, "test_loss": 0.2,
        "seconds": seconds, "examples_per_second": 1000, "updates": 300,
        "staleness": {"mean": 0.5, "p99": 2, "histogram": [5, 4, 1]}} | more))
    lines = [{"t": 1, "phase": "TRAINING", "examples": 0},
             {"t": 3, "phase": "TRAINING", "examples": 2000, "evaluations": [
                 {"epoch": 1, "test_accuracy": 0.9, "test_loss": 0.3, "seconds": 0.1}]},
             {"t": 4, "phase": "FINISHED", "examples": 2500}]
    (directory / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


class ComparisonTest(unittest.TestCase):
    def setUp(self):
        folder = scratch()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for seed, seconds in ((1, 9), (2, 10), (3, 11)):
            leave_run(self.folder / f"runs/async-{seed}", seed, "async", seconds)
        leave_run(self.folder / "runs/hardsync-1", 1, "hardsync", 40)
        self.runs = sorted(str(run.relative_to(self.folder)) for run in self.folder.glob("runs/*"))

    def test_compares_policies_over_seeds(self):
        table = psctl("compare", *self.runs, cwd=self.folder)
        self.assertEqual((table.returncode, table.stderr), (0, ""))
        async_line, hardsync_line = table.stdout.splitlines()[1:]
        self.assertRegex(async_line, r"^digits +3 +async +target_accuracy +95\.00 ± 0\.00%"
                                     r".* 10\.00 ± 2\.48 ")
        self.assertRegex(hardsync_line, r"^digits +1 +hardsync +target_accuracy +95\.00%.* 40\.00 ")

        groups = json.loads(psctl("compare", *self.runs, "-o", "json", cwd=self.folder).stdout)["groups"]
        self.assertEqual([group["label"] for group in groups], ["digits async", "digits hardsync"])
        self.assertAlmostEqual(groups[0]["seconds"]["interval_95"], 2.4841, places=4)
        self.assertIsNone(groups[1]["seconds"]["interval_95"])

    def test_draws_a_picture_beside_the_first_run(self):
        drawn = psctl("plot", self.runs[0] + "/", *self.runs[1:], cwd=self.folder)
        self.assertEqual((drawn.returncode, drawn.stdout, drawn.stderr),
                         (0, "runs/async-1.svg\n", ""))

        root = xml.etree.ElementTree.parse(self.folder / "runs/async-1.svg").getroot()
        self.assertEqual(root.tag, SVG + "svg")
        texts = [text.text for text in root.iter(SVG + "text")]
        self.assertIn("digits async (3 runs)", texts)
        self.assertIn("digits hardsync", texts)
        self.assertIn("Test accuracy over time", texts)
        self.assertTrue(any("prefers-color-scheme: dark" in style.text
                            for style in root.iter(SVG + "style")))
        width, height = float(root.get("width")), float(root.get("height"))
        for dot in root.iter(SVG + "circle"):
            self.assertTrue(0 < float(dot.get("cx")) < width and 0 < float(dot.get("cy")) < height)

        chosen = psctl("plot", self.runs[0], "--output", "here.svg", cwd=self.folder)
        self.assertEqual(chosen.stdout, "here.svg\n")
        xml.etree.ElementTree.parse(self.folder / "here.svg")

    def test_shows_a_run_that_diverged_as_a_result(self):
        leave_run(self.folder / "runs/wild", 1, "async", 3, ended_by="diverged", test_accuracy=None,
                  divergence={"epoch": 2, "updates": 41})
        table = psctl("compare", "runs/wild", cwd=self.folder)
        self.assertEqual((table.returncode, table.stderr), (0, ""))
        self.assertRegex(table.stdout, r"\ndigits +1 +async +diverged in epoch 2 +10\.00% ")

        drawn = psctl("plot", "runs/wild", cwd=self.folder)
        self.assertEqual((drawn.returncode, drawn.stderr), (0, ""))
        root = xml.etree.ElementTree.parse(self.folder / "runs/wild.svg").getroot()
        texts = [text.text for text in root.iter(SVG + "text")]
        self.assertIn("digits: diverged in epoch 2", texts)
        crosses = [line for line in root.iter(SVG + "line") if "stroke-" in line.get("class")]
        self.assertEqual(len(crosses), 4, "two lines in each of two charts")

    def test_names_everything_that_is_no_finished_run(self):
        (self.folder / "runs/hardsync-1/summary.json").unlink()
        for command in ("compare", "plot"):
            with self.subTest(command):
                done = psctl(command, self.runs[0], self.runs[0], "runs/gone", "runs/hardsync-1",
                             "runs/async-2/summary.json", cwd=self.folder)
                self.assertEqual((done.returncode, done.stdout), (74, ""))
                self.assertEqual(done.stderr.splitlines(), [
                    "psctl: error: runs/async-1 is named twice; name each run once",
                    "psctl: error: runs/gone: there is no such run directory",
                    "psctl: error: runs/hardsync-1 has no summary.json, so its run has not finished:"
                    " it still goes on, or was ended in phase FINISHED; runs/hardsync-1/logs may say"
                    " more",
                    "psctl: error: runs/async-2/summary.json is a file; name a run directory, as"
                    " runs/async-2"])

    def test_names_the_run_directory_of_a_file_in_it(self):
        done = psctl("compare", "summary.json", cwd=self.folder / self.runs[0])
        self.assertEqual(done.stderr,
                         "psctl: error: summary.json is a file; name a run directory, as .\n")

    def test_names_the_line_of_metrics_that_is_wrong(self):
        with open(self.folder / "runs/async-1/metrics.jsonl", "a", encoding="utf-8") as metrics:
            metrics.write('{"t": 5')
        drawn = psctl("plot", "runs/async-1", cwd=self.folder)
        self.assertEqual(drawn.returncode, 74)
        self.assertEqual(drawn.stderr, "psctl: error: runs/async-1/metrics.jsonl:4: no JSON object with"
                                       ' a time "t"\n')


if __name__ == "__main__":
    unittest.main()

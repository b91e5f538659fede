"""Tests of psctl lab, as a user calls it, with a script in place of ps_lab, and with real processes."""
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.path.append(str(pathlib.Path(__file__).absolute().parents[3] / "support"))
from programs import DEADLINE_S, program, scratch, wait_until

FAKE = pathlib.Path(__file__).absolute().parent / "fake_ps_lab.py"
EXAMPLES = pathlib.Path("deploy/examples").absolute()
PSCTL = program("deploy/psctl/psctl")

GRID = """
name: tiny
run:
  model: {preset: mlp}
  data: {format: synthetic, train_examples: 200, test_examples: 100}
  training: {epochs: 2}
  cluster: {servers: ["localhost:7070"], workers: 2}
zip: {n: [1, 2, 1], batch_size: [8, 16, 32]}
seeds: 2
budget: {cores: 1}
"""

# What a cell costs is measured.
MEASURED = ("cpu_seconds", "peak_bytes")


class LabTest(unittest.TestCase):
    def setUp(self):
        folder = scratch()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        shutil.copy(FAKE, self.folder / "bin/ps_lab")
        self.environment = dict(os.environ, FAKE_DIR=str(self.folder))
        self.write_grid(GRID)

    def write_grid(self, text):
        (self.folder / "grid.yaml").write_text(text)

    def arguments(self, command, *more, grid="grid.yaml", directory="lab"):
        return [PSCTL, "lab", command, str(grid), "--dir", directory, "--bin-dir", "bin", *more]

    def lab(self, command, *more, code=0, **kwargs):
        done = subprocess.run(self.arguments(command, *more, **kwargs), text=True, timeout=DEADLINE_S,
                              check=False, cwd=self.folder, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def start(self):
        return subprocess.Popen(self.arguments("run"), cwd=self.folder, env=self.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def starts(self):
        path = self.folder / "starts"
        return path.read_text().splitlines() if path.exists() else []

    def results(self, directory="lab"):
        with (self.folder / directory / "results.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        return [{key: value for key, value in row.items() if key not in MEASURED} for row in rows]

    def test_runs_each_cell_once(self):
        first = self.lab("run")
        self.assertIn("[6/6]", first.stderr)
        self.assertEqual(len(self.starts()), 6)
        cells = sorted(path.name for path in (self.folder / "lab/cells").iterdir())
        self.assertEqual(len(cells), 6)
        summary = json.loads((self.folder / "lab/cells" / cells[0] / "summary.json").read_text())
        self.assertEqual(summary["run_dir"], f"lab/cells/{cells[0]}")

        self.lab("run")
        self.assertEqual(len(self.starts()), 6)

        # A grid that grows keeps the cells that it had.
        self.write_grid(GRID.replace("[1, 2, 1]", "[1, 2, 1, 2]").replace("32]", "32, 64]"))
        self.lab("run")
        self.assertEqual(len(self.starts()), 8)

    def test_results_of_another_build_are_not_taken_for_this_ones(self):
        self.lab("run")
        old = {row["program"] for row in self.results()}
        with (self.folder / "bin/ps_lab").open("a") as fake:
            fake.write("# Another build.\n")
        self.assertIn("6 cells of another build left unused", self.lab("status").stdout)
        self.write_grid(GRID.replace("[1, 2, 1]", "[1]").replace("[8, 16, 32]", "[8]"))
        self.assertRegex(self.lab("run").stderr,
                         "2 cells: 0 done before, 2 to run.*; 2 cells of another build left unused")
        self.assertEqual(len(self.starts()), 8)
        new = {row["program"] for row in self.results()}
        self.assertEqual(len(old | new), 2)

        self.write_grid(GRID)
        self.lab("run", "--any-build")
        self.assertEqual(len(self.starts()), 8)
        self.assertEqual({row["program"] for row in self.results()}, old | new)
        self.assertRegex((self.folder / "lab/report.md").read_text(),
                         r"of 2 builds of ps_lab: [24] cells of")

    def test_no_cell_is_run_by_a_program_that_was_replaced(self):
        (self.folder / "replace").touch()
        self.assertRegex(self.lab("run", code=75).stderr,
                         "the program bin/ps_lab was replaced while the grid was run, .*; start psctl lab run")
        self.assertEqual(len(self.starts()), 1)

    def test_pins_cells_and_shares_nothing(self):
        self.lab("run")
        self.assertEqual(len(set(self.starts())), 1)
        self.assertEqual(len(json.loads(self.starts()[0])), 1)

        self.write_grid(GRID.replace("cores: 1", "cores: 100000"))
        self.assertIn("budget.cores", self.lab("run", code=78).stderr)
        self.write_grid(GRID.replace("cores: 1", "memory: 1KiB"))
        self.lab("run")  # Nothing is left to be run.
        self.write_grid(GRID.replace("cores: 1", "memory: 1KiB").replace("seeds: 2", "seeds: 3"))
        self.assertRegex(self.lab("run", code=78).stderr,
                         r"^grid\.yaml:\d+:\d+: error: the cell n=1, batch_size=8 takes about ")

    def test_survives_kill_at_any_moment(self):
        self.lab("run", directory="undisturbed")
        undisturbed = self.results("undisturbed")
        (self.folder / "starts").unlink()
        for kills in range(3):
            (self.folder / "hold").touch()
            running = self.start()
            wait_until((self.folder / "held").exists, "a cell is under way")
            if kills == 0:
                self.assertIn("another psctl lab run", self.lab("run", code=75).stderr)
                self.assertIn("running", self.lab("status").stdout)
            running.send_signal(signal.SIGKILL)
            running.wait()
            (self.folder / "held").unlink()
            self.assertNotIn("running", self.lab("status").stdout)
        (self.folder / "hold").unlink()
        self.lab("run")
        self.assertEqual(self.results(), undisturbed)
        self.assertEqual(len(self.starts()), 3 + 6)
        self.assertEqual(list((self.folder / "lab/cells").glob("*.unfinished")), [])

    def test_an_interrupt_ends_the_cell_under_way(self):
        (self.folder / "hold").touch()
        running = self.start()
        wait_until((self.folder / "held").exists, "a cell is under way")
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(), 130)
        self.assertEqual(list((self.folder / "lab/cells").iterdir()), [])

    def test_failed_cells_are_run_again(self):
        (self.folder / "fail").touch()
        failed = self.lab("run", code=80)
        self.assertIn("error: told to fail", failed.stderr)
        self.assertEqual(self.results()[0]["status"], "failed")
        (self.folder / "fail").unlink()
        self.lab("run", "--only", "failed")
        self.assertEqual(len(self.starts()), 12)
        self.assertEqual({row["status"] for row in self.results()}, {"done"})
        report = (self.folder / "lab/report.md").read_text()
        self.write_grid(GRID.replace("seeds: 2", "seeds: [7]"))
        self.assertIn("no cell has failed in lab; nothing to run",
                      self.lab("run", "--only", "failed").stderr)
        self.assertIn("no cell of grid.yaml has a result in lab, so that there is nothing to report",
                      self.lab("report", code=74).stderr)
        self.assertEqual((self.folder / "lab/report.md").read_text(), report)

    def test_settings_that_are_refused_end_the_grid(self):
        (self.folder / "refuse").touch()
        self.assertIn("world.yaml:1:1: error: unknown key", self.lab("run", code=78).stderr)
        self.assertEqual(len(self.starts()), 1)

    def test_missing_data_are_reported_once(self):
        data = GRID.replace("format: synthetic, train_examples: 200, test_examples: 100",
                            "format: idx, path: nowhere")
        self.write_grid(data)
        error = self.lab("run", code=74).stderr
        self.assertIn(f"there are no data in {self.folder}/nowhere, which is data.path of 6 cells",
                      error)
        self.assertIn("--set data.path=DIR", error)
        self.assertEqual(self.starts(), [])

        # What only the program knows ends the grid with the first cell.
        (self.folder / "nowhere").mkdir()
        (self.folder / "nowhere/other").touch()
        (self.folder / "unreadable").touch()
        self.assertIn("data/x: cannot be opened", self.lab("run", code=74).stderr)
        self.assertEqual(len(self.starts()), 1)

    def test_a_cell_that_diverged_is_a_result(self):
        (self.folder / "diverge").touch()
        self.lab("run")
        row = self.results()[0]
        self.assertEqual((row["status"], row["error"], row["diverged_in_epoch"]),
                         ("diverged", "0.9", "2"))
        self.write_grid(GRID + "on_divergence: fail\n")
        self.lab("report", code=81)
        self.assertEqual(len(self.starts()), 6)

    def test_says_what_cells_cost(self):
        table = self.lab("run", "--dry-run").stdout
        self.assertRegex(table, r"(?m)^cell +values +seed +status +core minutes +memory$")
        self.assertIn("6 cells (0 left out, 0 mean the same as others)", table)
        self.assertIn("the multiplications of the nets", table)
        self.assertEqual(self.starts(), [])

    def test_leaves_tables_that_python_reads(self):
        self.lab("run")
        rows = self.results()
        self.assertEqual([(row["n"], row["batch_size"], row["seed"]) for row in rows],
                         [("1", "8", "1"), ("1", "8", "2"), ("2", "16", "1"), ("2", "16", "2"),
                          ("1", "32", "1"), ("1", "32", "2")])
        for row in rows:
            directory = self.folder / "lab" / row["directory"]
            summary = json.loads((directory / "summary.json").read_text())
            self.assertAlmostEqual(float(row["error"]), 1 - summary["test_accuracy"])
            self.assertEqual(float(row["virtual_seconds"]), 20.5)
            self.assertNotIn("seconds", row)
        self.assertEqual([float(row["sigma_beyond_2n"]) for row in rows], [0.125, 0.125, 0, 0, 0.125,
                                                                         0.125])
        lines = (self.folder / "lab/results.jsonl").read_text().splitlines()
        self.assertEqual(json.loads(lines[2])["batch_size"], 16)
        with (self.folder / "lab/curves.csv").open(newline="") as file:
            curves = list(csv.DictReader(file))
        self.assertEqual([(row["epoch"], row["virtual_seconds"]) for row in curves[:2]],
                         [("1", "10"), ("2", "20")])
        with (self.folder / "lab/sigma.csv").open(newline="") as file:
            sigma = list(csv.DictReader(file))
        self.assertEqual([(row["sigma"], row["gradients"], row["cumulative"]) for row in sigma[:4]],
                         [("0", "10", "0.25"), ("1", "15", "0.625"), ("2", "10", "0.875"),
                          ("3", "5", "1.0")])

    def test_leaves_one_page_with_all_plots(self):
        self.lab("run")
        page = (self.folder / "lab/report.html").read_text()
        pictures = re.findall(r"<svg.*?</svg>", page, re.S)
        titles = []
        for picture in pictures:
            root = xml.etree.ElementTree.fromstring(picture)
            titles.append(root.find("{http://www.w3.org/2000/svg}title").text)
            for text in root.iter("{http://www.w3.org/2000/svg}text"):
                self.assertNotIn("nan", text.text or "")
        self.assertEqual(titles, ["Test error over epochs", "Test error over time",
                                  "(σ, μ, λ): test error against time",
                                  "μλ = const: test error by μλ",
                                  "Staleness of n=1, batch_size=8", "Staleness of n=2, batch_size=16",
                                  "Staleness of n=1, batch_size=32"])
        intervals = re.findall(r'class="interval ', pictures[0])
        self.assertEqual(len(intervals), 3 * 3 * 2, "three lines, at three points, in two epochs")
        # A mean is of the same epoch, where some seeds have not measured another one.
        (self.folder / "skip").touch()
        self.lab("run", directory="skipped")
        picture = re.search(r"<svg.*?</svg>", (self.folder / "skipped/report.html").read_text(), re.S)[0]
        places = [{float(x) for line in re.findall(r'<line [^>]*class="interval [^>]*>', text)
                   for x in re.findall(r'x1="([\d.]+)"', line)} for text in (pictures[0], picture)]
        self.assertEqual(len(re.findall(r'class="interval ', picture)), 3 * 3)
        self.assertEqual(max(places[0]), max(places[1]))
        self.assertIn("prefers-color-scheme: dark", page)
        self.assertNotRegex(page, r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)")
        # Virtual seconds are never called seconds.
        self.assertNotRegex(re.sub("virtual seconds?", "", page), r"\bseconds?\b")
        self.assertNotRegex(re.sub("virtual seconds?", "",
                                   (self.folder / "lab/report.md").read_text()), r"\bseconds?\b")

    def test_reports_say_how_cells_were_set_up(self):
        self.write_grid(GRID + """
set: {learning_rate: "=0.08 / workers"}
world:
  compute: {fixed_ms: 2, spread: pareto, alpha: 2.5, slow_share: 0.1, slower: 4}
  network: {latency_ms: 0.05, worker_gbits: 1}
  workers: [{worker: 1, slower: 10, leaves_ms: 60000}]
""")
        self.lab("run")
        text = (self.folder / "lab/report.md").read_text()
        setup = text[text.index("## Setup"):text.index("## Points")]
        for fact in ("Engine: virtual time", "Build of ps_lab: ", "base settings: those in the grid",
                     'optimizer.learning_rate: "=0.08 / workers"',
                     "takes μ · 1ms + 2ms, times a Pareto factor of mean 1 (alpha 2.5)",
                     "The last 10 % of the machines take 4 times as long",
                     "those of workers carry 1 Gbit/s each way, those of servers take no time; latency 50us",
                     "A server takes no time for an update", "Worker 1 takes 10 times as long, leaves at 1m",
                     "training: {epochs: 2}"):
            self.assertIn(fact, setup)
        page = (self.folder / "lab/report.html").read_text()
        self.assertIn("<li>World: A server takes no time for an update.</li>", page)
        self.assertRegex(page, r"(?s)<details>.*model: \{preset: mlp\}\n.*</details>")

    def test_compares_with_published_values(self):
        (self.folder / "published.csv").write_text(
            "sigma,mu,test_error_percent,training_time_s\n1,8,20,100\n2,16,99,50\n")
        self.write_grid(GRID + "reference: {file: published.csv, tolerance: 40}\n")
        ran = self.lab("run", code=82)
        self.assertIn("1 of 2 published errors are within 40 percentage points of ours: does not "
                      "reproduce", ran.stdout)
        self.write_grid(GRID + "reference: {file: published.csv, tolerance: 100}\n")
        self.assertIn("reproduced", self.lab("report").stdout)
        self.write_grid(GRID + "reference: published.csv\n")
        self.assertIn("2 of 2 published errors have one of ours", self.lab("report").stdout)

    def test_names_the_place_of_an_error(self):
        self.write_grid(GRID + "product: {learning_rate: [fast]}\n")
        self.assertRegex(self.lab("run", code=78).stderr,
                         r"^grid\.yaml:11:27: error: optimizer\.learning_rate must be a number")
        self.assertIn("missing.yaml: error: cannot open the file",
                      self.lab("run", grid="missing.yaml", code=74).stderr)

    def test_the_examples_are_grids(self):
        table = self.lab("run", "--dry-run", grid=EXAMPLES / "rudra/table.yaml").stdout
        self.assertIn("22 cells (0 left out, 0 mean the same as others)", table)
        self.assertIn("n=1, batch_size=128, workers=10", table)
        small = self.lab("run", "--dry-run", grid=EXAMPLES / "lab.yaml").stdout
        self.assertIn("21 cells", small)

    def test_runs_real_processes(self):
        self.write_grid(GRID.replace("name: tiny", "name: tiny\nengine: processes")
                        .replace("seeds: 2", "seeds: 1").replace("[1, 2, 1]", "[1]")
                        .replace("[8, 16, 32]", "[16]"))
        words = [word for word in self.arguments("run") if word not in ("--bin-dir", "bin")]
        # The programs that variables name are those whose build counts, and those that are run.
        server = self.folder / "server"
        server.write_text(f'#!/bin/sh\n: > {self.folder}/used\nexec {program("server/ps_server")} "$@"\n')
        server.chmod(0o755)
        done = subprocess.run(words, cwd=self.folder, timeout=DEADLINE_S, check=False, text=True,
                              env=dict(self.environment, PS_SERVER_BINARY=str(server)),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "used").exists())
        row = self.results()[0]
        self.assertEqual((row["status"], row["ended_by"]), ("done", "epochs"))
        self.assertGreater(float(row["seconds"]), 0)
        self.assertNotIn("virtual_seconds", row)
        self.assertTrue((self.folder / "lab" / row["directory"] / "model.safetensors").exists())
        self.assertNotIn("virtual", (self.folder / "lab/report.html").read_text())


if __name__ == "__main__":
    unittest.main()

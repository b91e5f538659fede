"""Tests the report with programs that only print the output of the real ones."""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import bundle
import checks
import main
import report
import steps

GPU = {"name": "A GPU", "driver": "580.1", "memory": "81559 MiB", "count": 1}

CASES = """#!/bin/sh
for argument in "$@"; do case "$argument" in --gtest_output=json:*) out=${{argument#*json:}} ;; esac; done
echo 'what the program says'
echo '{}' >"$out"
exit {}
"""
CHECKER = """#!/bin/sh
until case "$1" in */bin/*_test) true ;; *) false ;; esac; do shift; done
exec "$@"
"""
PSCTL = """#!/bin/sh
case "$*" in *device=cuda*) accuracy={} ;; *) accuracy=0.881 ;; esac
echo 'a line of progress'
echo '{{'
echo '"test_accuracy": '$accuracy', "examples_per_second": 1000.4, "run_dir": "{}",'
echo '"workers": [{{"communication_hidden": 0.5, "overlap": 0.9}}, {{"communication_hidden": 1.0, "overlap": 0.8}}]}}'
"""
SERVED = """#!/bin/sh
while read -r line; do
  case "$line" in versions) echo 'PyTorch 2' ;; *) echo "images_per_s={}" ;; esac
done
"""
SILENT = "#!/bin/sh\nread -r line\nexit 1\n"
HANGING = "#!/bin/sh\necho '[       OK ] Suite.Case (1 ms)'\nsleep 600 &\nwait\n"


def cases(*results):
    return json.dumps({"testsuites": [{"name": "Suite", "testsuite": [
        {"name": f"Case{i}", "result": "SKIPPED" if result == "skipped" else "COMPLETED",
         **({"failures": [{}]} if result == "failed" else {})}
        for i, result in enumerate(results)]}]})


class ReportTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        self.root = self.folder / "slipstream-1"
        (self.root / "bin").mkdir(parents=True)
        (self.root / "COMMIT").write_text("abc123\n", encoding="utf-8")
        self.out = self.folder / "report"
        for name in ("kernel_parity_test", "plan_parity_test", "large_parity_test"):
            self.write(name, CASES.format(cases("passed", "passed"), 0))
        self.write("group_parity_test", CASES.format(cases("passed", "skipped"), 0))
        (self.root / "metrics.jsonl").write_text(json.dumps({"lanes": [
            {"backward": [10.0, 10.25], "push": [[10.2, 10.3], [10.125, 10.2]],
             "pull": [[10.5, 10.6], [10.625, 10.8]]}]}) + "\n", encoding="utf-8")
        self.write("psctl", self.psctl("0.880"))
        self.write("compute_benchmark", SERVED.format(6400))
        self.torch = self.write("torch", SERVED.format(3200))
        self.checker = self.write("checker", CHECKER)

    def write(self, name, text):
        path = self.root / "bin" / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def psctl(self, accuracy):
        return PSCTL.format(accuracy, self.root)

    def run_main(self, *parts, gpu=GPU, options=()):
        argv = [str(self.root), "--out", str(self.out), "--rounds", "1", *options]
        for part in parts:
            argv += ["--only", part]
        with mock.patch.object(bundle, "gpu_facts", lambda: gpu), \
                mock.patch.object(steps, "TORCH", [str(self.torch)]), \
                mock.patch.object(checks, "checker", lambda: str(self.checker)), \
                contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = main.main(argv)
        page = self.out / "RESULTS.md"
        return status, page.read_text(encoding="utf-8") if page.exists() else ""

    def log(self):
        return (self.out / "log.txt").read_text(encoding="utf-8")

    def test_all_well(self):
        status, text = self.run_main()
        self.assertEqual(status, 0, text)
        self.assertIn("| kernel_parity_test | 2 | 0 | 0 |", text)
        self.assertIn("| group_parity_test | 1 | 0 | 1 |", text, "there are not always several GPUs")
        self.assertIn("| hardsync | 3 | 88.00 | 88.10 | 1000 | 1000 | 75.00 % |", text)
        self.assertIn("| mlp | fp32 | 64 | 100 |  | 6400 | 50 | 50 | 50 | 2.00 | 2.00 | 1.5 x eager | 1.88 |", text)
        self.assertIn("| lenet5 | bf16 | 4 | 1600 | 1600 | 6400 | 800 | 800 | 800 | 2.00 | 2.00 |  |", text)
        self.assertIn("| cifar_quick | 64 | 1 | 16 | 1000 | 75.00 % | 85.00 % | 250.00 | 500.00 |", text)
        for title in ("memcheck", "racecheck", "synccheck"):
            self.assertIn(f"## compute-sanitizer, {title}\n", text)
        for fact in ("A GPU", "580.1", "abc123", "tests/gpu/run.sh", "PyTorch 2", " cores of "):
            self.assertIn(fact, text)
        self.assertNotIn("FAILED", text)
        self.assertNotIn("not finished", text)

    def test_a_worker_of_two_gpus_is_trained_where_there_are_two(self):
        status, text = self.run_main("training", gpu={**GPU, "count": 2})
        self.assertEqual(status, 0, text)
        self.assertIn("| hardsync, one worker, two GPUs | 3 | 88.00 | 88.10 |", text)

    def test_parts_of_several_calls_are_one_page(self):
        self.run_main("parity")
        _, text = self.run_main("steps", options=("--net", "mlp", "--batch", "64"))
        self.assertIn("| kernel_parity_test | 2 |", text)
        self.assertIn("| mlp | bf16 | 64 |", text)
        self.assertNotIn("lenet5", text)
        printed = subprocess.run([sys.executable, HERE / "report.py", self.out], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(printed, text)
        self.assertLess(text.index("## Parity"), text.index("## Steps"))

    def test_a_failed_case_is_named(self):
        self.write("plan_parity_test", CASES.format(cases("passed", "failed"), 1))
        status, text = self.run_main("parity")
        self.assertEqual(status, 1)
        self.assertIn("- plan_parity_test: Suite.Case1", text)
        self.assertIn("## Parity with the processor: FAILED", text)
        self.assertIn("what the program says", self.log())

    def test_skipped_cases_are_no_parity(self):
        self.write("plan_parity_test", CASES.format(cases("passed", "skipped", "skipped"), 0))
        status, text = self.run_main("parity")
        self.assertEqual(status, 1)
        self.assertIn("plan_parity_test: 2 cases were skipped", text)

    def test_where_no_case_ran_nothing_is_shown(self):
        for name in checks.TESTS:
            self.write(name, CASES.format(cases("skipped", "skipped"), 0))
        for part in ("parity", *checks.OPTIONS):
            with self.subTest(part):
                status, text = self.run_main(part)
                self.assertEqual(status, 1)
                self.assertIn("group_parity_test: no case ran", text)

    def test_a_program_that_dies_fails(self):
        self.write("plan_parity_test", "#!/bin/sh\nexit 134\n")
        status, text = self.run_main("parity")
        self.assertEqual(status, 1)
        self.assertIn("the program itself (status 134)", text)

    def test_what_hangs_is_ended_with_its_children(self):
        self.write("plan_parity_test", HANGING)
        begin = time.monotonic()
        status, text = self.run_main("parity", "steps", options=("--deadline", "3"))
        self.assertEqual(status, 1)
        self.assertLess(time.monotonic() - begin, 300, "the children hold the pipe for longer")
        self.assertIn("| kernel_parity_test | 2 | 0 | 0 |", text, "what came before is kept")
        self.assertIn("| plan_parity_test | 1 | 1 | 0 |", text, "what it said before")
        self.assertIn("the program itself (status 124)", text)
        self.assertIn("## Steps per second: FAILED", text)
        self.assertIn("the 3 seconds were over", text)

    def test_a_contender_without_a_figure_is_asked_anew_for_the_next_row(self):
        self.torch.write_text(SILENT, encoding="utf-8")
        status, text = self.run_main("steps", options=("--net", "mlp", "--precision", "fp32"))
        self.assertEqual(status, 1)
        self.assertIn("| mlp | fp32 | 4 | 1600 |  | 6400 | failed | failed |", text)
        self.assertIn("mlp fp32 1024: no figure of graphs", text)

    def test_a_ratio_below_what_is_to_be_reached_fails(self):
        self.torch.write_text(SERVED.format(6000), encoding="utf-8")
        status, text = self.run_main("steps", options=("--net", "mlp", "--precision", "fp32"))
        self.assertEqual(status, 1)
        self.assertIn("mlp fp32 64: 1.07 times eager, not 1.5", text)
        self.assertNotIn("mlp fp32 1024: ", text)

    def test_an_accuracy_too_far_off_fails(self):
        self.write("psctl", self.psctl("0.874"))
        status, text = self.run_main("training")
        self.assertEqual(status, 1)
        self.assertIn("## Training: FAILED", text)

    def test_figures_that_are_not_there_fail(self):
        self.write("psctl", self.psctl("null"))
        status, text = self.run_main("training")
        self.assertEqual(status, 1)
        self.assertIn("did not end well", text)

    def test_a_run_that_fails_is_told_and_the_next_part_runs(self):
        logs = self.folder / "runs"
        (logs / "logs").mkdir(parents=True)
        (logs / "logs" / "worker-0.log").write_text("why it failed\n", encoding="utf-8")
        self.write("psctl", f"#!/bin/sh\necho '{{'\necho '\"run_dir\": \"{logs}\"}}'\nexit 75\n")
        status, text = self.run_main("cluster", "training", options=("--net", "mlp"))
        self.assertEqual(status, 1)
        self.assertIn("mlp 4: the run did not end well", text)
        self.assertIn("hardsync: a run did not end well", text)
        self.assertIn("why it failed", self.log())

    def test_without_a_gpu_nothing_is_written(self):
        status, text = self.run_main(gpu=None)
        self.assertEqual(status, 78)
        self.assertEqual(text, "")
        self.assertFalse(self.out.exists())

    def test_a_part_that_was_cut_off_says_so(self):
        self.out.mkdir()
        section = report.Section(self.out, "parity", "Parity", ("program",), ["A GPU"])
        with contextlib.redirect_stdout(io.StringIO()):
            section.add("kernel_parity_test")
        text = (self.out / "RESULTS.md").read_text(encoding="utf-8")
        self.assertIn("## Parity: not finished", text)
        self.assertIn("| kernel_parity_test |", text)


if __name__ == "__main__":
    unittest.main()

"""The report of a machine with a GPU, made from programs that only say what the real ones do."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bundle
import main
import steps

GPU = {"name": "A GPU", "driver": "580.1", "memory": "81559 MiB", "count": 1}

PARITY = """#!/bin/sh
for argument in "$@"; do case "$argument" in --gtest_output=json:*) out=${{argument#*json:}} ;; esac; done
echo '{}' >"$out"
exit {}
"""
PSCTL = """#!/bin/sh
case "$*" in *device=cuda*) accuracy={} ;; *) accuracy=0.881 ;; esac
echo 'a line of progress'
echo '{{'
echo '"test_accuracy": '$accuracy', "examples_per_second": 1000.4, "run_dir": "{}",'
echo '"workers": [{{"communication_hidden": 0.5}}, {{"communication_hidden": 1.0}}]}}'
"""
STEP = "#!/bin/sh\necho net=$1 images_per_s=6400\n"


def cases(*results):
    return json.dumps({"testsuites": [{"name": "Suite", "testsuite": [
        {"name": f"Case{i}", "result": "SKIPPED" if result == "skipped" else "COMPLETED",
         **({"failures": [{}]} if result == "failed" else {})}
        for i, result in enumerate(results)]}]})


class FakeTorch:
    def rate(self, *_):
        return 3200.0

    def close(self):
        pass


class ReportTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name) / "slipstream-1"
        (self.root / "bin").mkdir(parents=True)
        (self.root / "COMMIT").write_text("abc123\n", encoding="utf-8")
        self.report = pathlib.Path(directory.name) / "report.md"
        for name in ("kernel_parity_test", "plan_parity_test"):
            self.write(name, PARITY.format(cases("passed", "passed"), 0))
        self.write("group_parity_test", PARITY.format(cases("passed", "skipped"), 0))
        (self.root / "metrics.jsonl").write_text(json.dumps({"lanes": [
            {"backward": [10.0, 10.25], "pull": [[10.5, 10.6], [10.75, 10.8]]}]}) + "\n",
            encoding="utf-8")
        self.write("psctl", self.psctl("0.880"))
        self.write("compute_benchmark", STEP)

    def write(self, name, text):
        path = self.root / "bin" / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def psctl(self, accuracy):
        return PSCTL.format(accuracy, self.root)

    def run_main(self, *parts, gpu=GPU):
        argv = [str(self.root), "--report", str(self.report), "--rounds", "1"]
        for part in parts:
            argv += ["--only", part]
        with mock.patch.object(bundle, "gpu_facts", lambda: gpu), \
                mock.patch.object(steps, "Torch", FakeTorch), \
                contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = main.main(argv)
        return status, self.report.read_text(encoding="utf-8") if self.report.exists() else ""

    def test_all_well(self):
        status, text = self.run_main("parity", "training", "steps")
        self.assertEqual(status, 0, text)
        self.assertIn("| kernel_parity_test | 2 | 0 | 0 |", text)
        self.assertIn("| group_parity_test | 1 | 0 | 1 |", text, "there are not always several GPUs")
        self.assertIn("| hardsync | 1 | 88.00 | 88.10 | 1000 | 1000 | 75.0 % | 750.0 ms |", text)
        self.assertIn("| mlp | fp32 | 64 | 100 | 50 | 50 | 2.00 | 2.00 | 2.08 |", text)
        for fact in ("A GPU", "580.1", "abc123", "tests/gpu/run.sh"):
            self.assertIn(fact, text)
        self.assertNotIn("FAILED", text)

    def test_a_worker_of_two_gpus_is_trained_where_there_are_two(self):
        status, text = self.run_main("training", gpu={**GPU, "count": 2})
        self.assertEqual(status, 0, text)
        self.assertIn("| hardsync, one worker, two GPUs | 1 | 88.00 | 88.10 |", text)

    def test_a_failed_case_is_named(self):
        self.write("plan_parity_test", PARITY.format(cases("passed", "failed"), 1))
        status, text = self.run_main("parity")
        self.assertEqual(status, 1)
        self.assertIn("- Suite.Case1", text)
        self.assertIn("## Parity with the processor: FAILED", text)

    def test_skipped_cases_are_no_parity(self):
        self.write("plan_parity_test", PARITY.format(cases("skipped", "skipped"), 0))
        status, text = self.run_main("parity")
        self.assertEqual(status, 1)
        self.assertIn("2 cases of plan_parity_test were skipped", text)

    def test_a_group_of_which_all_cases_are_skipped_is_none(self):
        self.write("group_parity_test", PARITY.format(cases("skipped", "skipped"), 0))
        status, text = self.run_main("parity")
        self.assertEqual(status, 1)
        self.assertIn("2 cases of group_parity_test were skipped", text)

    def test_a_program_that_dies_fails(self):
        self.write("plan_parity_test", "#!/bin/sh\nexit 134\n")
        status, text = self.run_main("parity")
        self.assertEqual(status, 1)
        self.assertIn("the program itself (status 134)", text)

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
        self.write("psctl", "#!/bin/sh\nexit 75\n")
        status, text = self.run_main("training", "steps")
        self.assertEqual(status, 1)
        self.assertIn("did not end well", text)
        self.assertIn("## Steps per second\n", text)

    def test_without_a_gpu_nothing_is_written(self):
        status, text = self.run_main(gpu=None)
        self.assertEqual(status, 78)
        self.assertEqual(text, "")


if __name__ == "__main__":
    unittest.main()

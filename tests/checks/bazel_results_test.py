#!/usr/bin/env python3
"""Tests bazel_results.py, and how it reads Python tests: python3
tests/checks/bazel_results_test.py"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import bazel_results

RUNNER = pathlib.Path(__file__).resolve().parent.parent / "support" / "run_python_test.py"

GOOGLETEST_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" name="AllTests"><testsuite name="S" tests="4">
<testcase name="A" status="run" result="completed" classname="S" />
<testcase name="B" status="run" result="skipped" classname="S"><skipped message="no data"/></testcase>
<testcase name="C" status="run" result="completed" classname="S"><failure message="1 != 2"/></testcase>
<testcase name="D" status="notrun" result="suppressed" classname="S" />
</testsuite></testsuites>"""
BAZEL_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="a/b" tests="1" failures="0" errors="1">
<testcase name="a/b" status="run"><error message="exited with error code 1"></error></testcase>
</testsuite></testsuites>"""
PYTHON_TEST = """import unittest
class SampleTest(unittest.TestCase):
    def test_passes(self): pass
    def test_passes_too(self): pass
    def test_fails(self): self.fail("\\x1b is not for XML")
    def test_breaks(self): raise OSError
    @unittest.skip("no data")
    def test_is_skipped(self): pass
    def test_skips_two_of_three(self):
        for shell in ("sh", "zsh", "fish"):
            with self.subTest(shell):
                if shell != "sh": self.skipTest("not installed")
    def test_skips_all(self):
        with self.subTest("zsh"): self.skipTest("not installed")
    def test_fails_twice(self):
        for n in (1, 2, 3):
            with self.subTest(n=n): self.assertEqual(n, 3)
"""
DEAD_LOG = """[==========] Running 9 tests from 1 test suite.
[ RUN      ] S.A
[       OK ] S.A (0 ms)
[ RUN      ] S.B
[  SKIPPED ] S.B (0 ms)
[ RUN      ] I/S.C/0
[  FAILED  ] I/S.C/0, where GetParam() = "a b" (12 ms)
[ RUN      ] S.D
check failed: x == y
"""
PASSING_XML = GOOGLETEST_XML.replace('<failure message="1 != 2"/>', "")


class ReadResultsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def read(self, events, exit_code):
        path = self.directory / "events.json"
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
        return bazel_results.read_results(path, exit_code)

    def result(self, status, xml, attempt=1, shard=1, log=""):
        outputs = []
        for name, text in (("test.xml", xml), ("test.log", log)):
            path = self.directory / f"{attempt} {shard} {name}"
            path.write_text(text)
            outputs.append({"name": name, "uri": "file://" + str(path).replace(" ", "%20")})
        return {"id": {"testResult": {"label": "//a:b", "attempt": attempt, "shard": shard}},
                "testResult": {"status": status, "testActionOutput": outputs}}

    def test_counts_cases_and_leaves_out_disabled_ones(self):
        results = self.read([self.result("FAILED", GOOGLETEST_XML)], 3)
        self.assertEqual((results.passed, results.skipped), (1, 1))
        self.assertEqual(results.failures, [("//a:b", "S.C")])

    def test_a_program_that_fails_after_its_cases_passed_is_a_failure(self):
        results = self.read([self.result("FAILED", PASSING_XML)], 3)
        self.assertEqual((results.passed, results.skipped), (2, 1))
        self.assertEqual(results.failures, [("//a:b", "")])

    def test_a_broken_xml_file_is_a_failure(self):
        self.assertEqual(self.read([self.result("FAILED", "<testsuites><te")], 3).failures,
                         [("//a:b", "")])

    def test_of_a_program_that_wrote_no_cases_no_case_is_named(self):
        self.assertEqual(self.read([self.result("FAILED", BAZEL_XML)], 3).failures, [("//a:b", "")])

    def test_of_a_program_that_died_the_log_names_the_case_and_those_before(self):
        for xml in ("<testsuites><te", BAZEL_XML):
            results = self.read([self.result("FAILED", xml, log=DEAD_LOG)], 3)
            self.assertEqual((results.passed, results.skipped), (1, 1))
            self.assertEqual(results.failures, [("//a:b", "I/S.C/0"), ("//a:b", "S.D")])

    def test_all_shards_count(self):
        results = self.read([self.result("PASSED", PASSING_XML, shard=1),
                             self.result("FAILED", GOOGLETEST_XML, shard=2)], 3)
        self.assertEqual((results.passed, results.failures), (3, [("//a:b", "S.C")]))

    def test_only_the_last_attempt_counts(self):
        results = self.read([self.result("FAILED", GOOGLETEST_XML, 1),
                             self.result("PASSED", PASSING_XML, 2)], 0)
        self.assertEqual((results.passed, results.failures), (2, []))

    def test_a_target_that_does_not_build_is_a_failure(self):
        events = [{"id": {"targetCompleted": {"label": "//a:b"}}, "completed": {}},
                  {"id": {"targetCompleted": {"label": "//a:c"}}, "completed": {"success": True}}]
        self.assertEqual(self.read(events, 1).failures, [("//a:b", "")])

    def test_a_command_that_fails_without_saying_why_is_a_failure(self):
        self.assertEqual(self.read([], 2).failures, [("", "")])
        self.assertEqual(self.read([], 0).failures, [])


class RunPythonTestTest(unittest.TestCase):
    def run_sample(self, **environment):
        """Runs the sample. Returns the finished process, and the outcome of each test."""
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "sample_test.py"
            path.write_text(PYTHON_TEST)
            xml = pathlib.Path(directory) / "test.xml"
            done = subprocess.run([RUNNER, path], check=False, text=True, stderr=subprocess.PIPE, timeout=60,
                                  env={**os.environ, "XML_OUTPUT_FILE": str(xml), **environment})
            return done, dict(bazel_results.case_outcomes(xml))

    def test_each_method_is_a_case_and_each_skipped_subtest(self):
        done, cases = self.run_sample()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(cases, {
            "SampleTest.test_passes": "passed", "SampleTest.test_passes_too": "passed",
            "SampleTest.test_fails": "failed", "SampleTest.test_breaks": "failed",
            "SampleTest.test_fails_twice": "failed", "SampleTest.test_is_skipped": "skipped",
            "SampleTest.test_skips_two_of_three": "passed",
            "SampleTest.test_skips_two_of_three [zsh]": "skipped",
            "SampleTest.test_skips_two_of_three [fish]": "skipped",
            "SampleTest.test_skips_all [zsh]": "skipped"})

    def test_says_how_to_repeat_each_failure(self):
        done, _ = self.run_sample(TEST_TARGET="//a:sample_test")
        for name in ("test_fails", "test_breaks", "test_fails_twice"):
            self.assertEqual(done.stderr.count(
                f"bazel test //a:sample_test --test_filter=SampleTest.{name}\n"), 1, done.stderr)

    def test_runs_what_the_filter_names(self):
        done, cases = self.run_sample(TESTBRIDGE_TEST_ONLY="SampleTest.test_passes")
        self.assertEqual((done.returncode, list(cases)), (0, ["SampleTest.test_passes"]))
        _, cases = self.run_sample(TESTBRIDGE_TEST_ONLY="SampleTest.test_passes*:*.test_fails")
        self.assertEqual(len(cases), 3)


if __name__ == "__main__":
    unittest.main()

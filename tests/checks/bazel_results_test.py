#!/usr/bin/env python3
"""Tests bazel_results.py: python3 tests/checks/bazel_results_test.py"""
import json
import pathlib
import tempfile
import unittest

import bazel_results

GOOGLETEST_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" name="AllTests"><testsuite name="S" tests="4">
<testcase name="A" status="run" result="completed" classname="S" />
<testcase name="B" status="run" result="skipped" classname="S"><skipped message="no data"/></testcase>
<testcase name="C" status="run" result="completed" classname="S"><failure message="1 != 2"/></testcase>
<testcase name="D" status="notrun" result="suppressed" classname="S" />
</testsuite></testsuites>"""
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

    def result(self, status, xml, attempt=1):
        path = self.directory / f"test {attempt}.xml"
        path.write_text(xml)
        uri = "file://" + str(path).replace(" ", "%20")
        return {"id": {"testResult": {"label": "//a:b", "attempt": attempt}},
                "testResult": {"status": status, "testActionOutput": [{"name": "test.xml", "uri": uri}]}}

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


if __name__ == "__main__":
    unittest.main()

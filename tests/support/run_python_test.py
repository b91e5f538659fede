#!/usr/bin/python3
"""Runs one Python test file for Bazel: run_python_test.py FILE [ARGUMENTS OF unittest]

Bazel knows only whether a program passed. So this writes every test method to $XML_OUTPUT_FILE as a
case of its own, as GoogleTest does, and every subtest that was skipped. With `bazel test
--test_filter=Class.method`, where `*` stands for anything, only the matching methods are run.

The interpreter is the system's, because Bazel 4's own Python rules look for `python`, or the one that
$SLIPSTREAM_PYTHON names: tests/run.sh has tests that use PyTorch run with a current one as well.
"""
import importlib.util
import os
import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree

NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Result(unittest.TextTestResult):
    """Extends unittest's result, which does not keep the tests that passed."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.passed = set()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.add(test.id())

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is None:
            self.passed.add(test.id())  # A skipped subtest may follow: then it is no success.


class Runner(unittest.TextTestRunner):
    resultclass = Result


def load(path):
    sys.path.insert(0, str(path.absolute().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def filters():
    """Returns the arguments of unittest for Bazel's --test_filter. unittest compares patterns with
    module.Class.method."""
    patterns = os.environ.get("TESTBRIDGE_TEST_ONLY", "")
    return [f"-k=*.{pattern}" for pattern in patterns.split(":") if pattern]


def failures_by_id(result):
    """Returns the last trace of each method that failed. A failure outside of methods is not
    included: it fails the program, which Bazel sees."""
    methods = [(getattr(test, "test_case", test), trace) for test, trace in
               result.failures + result.errors]
    return {method.id(): trace for method, trace in methods if isinstance(method, unittest.TestCase)}


def write_cases(result, failures, path):
    suite = xml.etree.ElementTree.Element("testsuite")

    def add(test_id, outcome=None, text=""):
        class_name, _, name = test_id.partition(".")[2].partition(".")
        case = xml.etree.ElementTree.SubElement(suite, "testcase", classname=class_name, name=name)
        if outcome:
            xml.etree.ElementTree.SubElement(case, outcome).text = NOT_IN_XML.sub("?", text)

    for test_id in sorted(result.passed - set(failures)):
        add(test_id)
    for test_id, trace in failures.items():
        add(test_id, "failure", trace)
    for test, reason in result.skipped:
        add(test.id(), "skipped", reason)
    xml.etree.ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def main():
    if interpreter := os.environ.pop("SLIPSTREAM_PYTHON", None):
        os.execv(interpreter, [interpreter, *sys.argv])
    path = pathlib.Path(sys.argv[1])
    result = unittest.main(load(path), argv=[str(path), *filters(), *sys.argv[2:]], testRunner=Runner,
                           exit=False).result
    failures = failures_by_id(result)
    target = os.environ.get("TEST_TARGET")
    for test_id in failures:
        name = test_id.partition(".")[2]
        print("Repeat it: " + (f"bazel test {target} --test_filter={name}" if target else
                               f"python3 {path} {name}"), file=sys.stderr)
    if "XML_OUTPUT_FILE" in os.environ:
        write_cases(result, failures, os.environ["XML_OUTPUT_FILE"])
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

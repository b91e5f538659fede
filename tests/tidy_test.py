#!/usr/bin/env python3
"""Tests tidy.py: python3 tests/tidy_test.py"""
import pathlib
import tempfile
import unittest

import tidy


def messages(path, text):
    return [f"{line}: {message}" for line, message in tidy.offences(path, text)]


def guarded(guard, body):
    return f"#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"


class IncludeTest(unittest.TestCase):
    def assert_refused(self, path, include):
        self.assertEqual(len(messages(path, f"#include {include}\n")), 1, f"{path} {include}")

    def assert_accepted(self, path, include):
        self.assertEqual(messages(path, f"#include {include}\n"), [], f"{path} {include}")

    def test_server_and_worker_never_include_each_other(self):
        self.assert_refused("server/service/a.cc", '"worker/core/b.h"')
        self.assert_refused("worker/client/a.cc", '"server/core/b.h"')
        self.assert_refused("server/ps_server.cc", '"worker/core/b.h"')

    def test_common_includes_neither(self):
        self.assert_refused("common/config/a.cc", '"server/core/b.h"')
        self.assert_refused("common/base/a.cc", '"common/layout/b.h"')

    def test_a_core_includes_no_shell(self):
        self.assert_refused("server/core/a.cc", '"server/service/b.h"')
        self.assert_refused("worker/core/a.cc", '"worker/data/b.h"')
        self.assert_accepted("server/service/a.cc", '"server/core/b.h"')
        self.assert_accepted("worker/client/a.cc", '"worker/data/b.h"')

    def test_nothing_includes_tests(self):
        self.assert_refused("server/service/a.cc", '"tests/support/b.h"')
        self.assert_accepted("tests/server/a_test.cc", '"tests/support/b.h"')
        self.assert_accepted("tests/server/a_test.cc", '"worker/core/b.h"')

    def test_pure_code_includes_no_part_of_the_world(self):
        for header in ("<thread>", "<mutex>", "<chrono>", "<random>", "<fstream>", "<zlib.h>",
                       "<sys/stat.h>", "<spdlog/spdlog.h>", "<grpcpp/grpcpp.h>",
                       '"proto/types.pb.h"', '"common/rpc/b.h"', '"absl/time/clock.h"'):
            self.assert_refused("server/core/a.cc", header)
        for header in ("<map>", '"common/layout/b.h"', '"absl/time/time.h"', "<fmt/format.h>"):
            self.assert_accepted("server/core/a.cc", header)

    def test_only_the_shells_know_protobuf_and_grpc(self):
        self.assert_refused("common/config/a.cc", '"proto/types.pb.h"')
        self.assert_refused("worker/data/a.cc", "<grpcpp/grpcpp.h>")
        self.assert_refused("common/rpc/a.cc", '"proto/types.pb.h"')
        self.assert_accepted("common/rpc/a.cc", "<grpcpp/grpcpp.h>")
        self.assert_accepted("common/wire/a.cc", '"proto/types.pb.h"')
        self.assert_accepted("deploy/psctl/a.cc", '"proto/types.pb.h"')
        self.assert_accepted("server/ps_server.cc", "<grpcpp/grpcpp.h>")


class CallTest(unittest.TestCase):
    def test_pure_code_asks_for_no_time_or_chance(self):
        for call in ("absl::Now();", "Clock::now();", "std::random_device d;", 'getenv("A");'):
            self.assertEqual(len(messages("common/policy/a.cc", f"auto x = {call}\n")), 1, call)
            self.assertEqual(messages("common/process/a.cc", f"auto x = {call}\n"), [], call)

    def test_comments_and_strings_are_not_code(self):
        text = '// absl::Now() would be wrong\nauto a = "absl::Now()";\n/* getenv( */\n'
        self.assertEqual(messages("common/policy/a.cc", text), [])

    def test_nothing_but_a_test_sleeps(self):
        for call in ("std::this_thread::sleep_for(x);", "absl::SleepFor(x);", "usleep(3);"):
            self.assertEqual(len(messages("server/service/a.cc", call + "\n")), 1, call)
            self.assertEqual(messages("tests/server/a_test.cc", call + "\n"), [], call)

    def test_names_say_what_a_class_is(self):
        self.assertEqual(len(messages("server/service/a.cc", "class PushManager {};\n")), 1)
        self.assertEqual(messages("server/service/a.cc", "class PushQueue {};\n"), [])


class GuardTest(unittest.TestCase):
    def test_the_guard_follows_the_path(self):
        self.assertEqual(
            messages("common/base/ids.h", guarded("SLIPSTREAM_COMMON_BASE_IDS_H_", "")), [])
        self.assertEqual(messages("common/base/id.h", guarded("SLIPSTREAM_COMMON_BASE_IDS_H_", "")),
                         ["1: the include guard is not SLIPSTREAM_COMMON_BASE_ID_H_"])
        self.assertEqual(messages("common/base/ids.h", "#pragma once\n"),
                         ["1: the include guard is not SLIPSTREAM_COMMON_BASE_IDS_H_"])


class SizeTest(unittest.TestCase):
    def test_a_file_has_at_most_500_lines(self):
        self.assertEqual(messages("common/base/a.cc", "int a;\n" * 500), [])
        self.assertEqual(messages("common/base/a.cc", "int a;\n" * 501),
                         ["1: file has 501 lines, at most 500"])

    def test_a_folders_readme_has_at_most_40_lines(self):
        self.assertEqual(messages("common/base/README.md", "text\n" * 40), [])
        self.assertEqual(len(messages("common/base/README.md", "text\n" * 41)), 1)
        self.assertEqual(messages("tests/README.md", "text\n" * 60), [])

    def test_a_function_has_at_most_70_lines(self):
        for head in ("int F(int a) {", "int F(\n    int a) {", "C::C(int a)\n    : a_(a), b_{1} {",
                     "TEST(ATest, B) {"):
            lines = head.count("\n") + 2
            body = "  a();\n" * (70 - lines)
            self.assertEqual(messages("common/base/a.cc", f"{head}\n{body}}}\n"), [], head)
            self.assertEqual(messages("common/base/a.cc", f"int b;\n\n{head}\n{body}  a();\n}}\n"),
                             ["3: function has 71 lines, at most 70"], head)

    def test_a_member_function_and_one_with_branches_count_whole(self):
        branches = "    if (a) {\n      b();\n    }\n" * 24
        text = f"class C {{\n public:\n  void F() {{\n{branches}  }}\n}};\n"
        self.assertEqual(messages("common/base/a.cc", text), ["3: function has 74 lines, at most 70"])

    def test_classes_namespaces_and_tables_may_be_long(self):
        members = "  int a = 0;\n" * 100
        self.assertEqual(messages("common/base/a.cc", f"namespace n {{\nclass C {{\n{members}}};\n}}\n"), [])
        rows = "    {1, F(2)},\n" * 100
        self.assertEqual(messages("common/base/a.cc", f"const Row kRows[] = {{\n{rows}}};\n"), [])


class TextTest(unittest.TestCase):
    def test_markers_are_found_in_every_kind_of_file(self):
        marker = "TO" + "DO"
        for path in ("common/base/a.cc", "deploy/setup.sh", "common/base/README.md", "proto/BUILD"):
            self.assertEqual(messages(path, f"a\n# {marker}: b\n"), [f"2: leftover {marker}"])

    def test_a_build_file_lists_its_files(self):
        self.assertEqual(len(messages("common/base/BUILD", 'srcs = glob(["*.cc"])\n')), 1)

    def test_tests_that_no_build_file_names_are_found(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            (root / "tests" / "golden").mkdir(parents=True)
            (root / "tests" / "BUILD").write_text('CASES = ["named"]\nsrcs = ["a_test.cc"]\n',
                                                  encoding="utf-8")
            for name, is_unlisted in (("a_test.cc", False), ("b_test.cc", True), ("c_test.py", True),
                                      ("support.cc", False), ("golden/named.yaml", False),
                                      ("golden/lost.errors", True)):
                self.assertEqual(tidy.is_unlisted(root, root / "tests" / name), is_unlisted, name)
            self.assertFalse(tidy.is_unlisted(root, root / "d_test.py"), "is in no package")


if __name__ == "__main__":
    unittest.main()

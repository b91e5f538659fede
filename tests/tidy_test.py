#!/usr/bin/env python3
"""Tests tidy.py: python3 tests/tidy_test.py"""
import pathlib
import tempfile
import unittest

import tidy
from checks import build_deps, layering, readme_lists, type_names


def messages(path, text):
    return [f"{line}: {message}" for line, message in tidy.offences(path, text)]


def guarded(guard, body):
    return f"#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"


class IncludeTest(unittest.TestCase):
    def assert_refused(self, path, include):
        self.assertEqual(len(messages(path, f"#include {include}\n")), 1, f"{path} {include}")

    def assert_accepted(self, path, include):
        self.assertEqual(messages(path, f"#include {include}\n"), [], f"{path} {include}")

    def test_a_folder_includes_itself_and_those_of_its_line(self):
        for path, include, is_allowed in (
                ("server/service/a.cc", '"server/service/b.h"', True),
                ("server/service/a.cc", '"server/core/b.h"', True),
                ("server/service/a.cc", '"worker/core/b.h"', False),
                ("server/core/a.cc", '"server/service/b.h"', False),
                ("server/storage/a.cc", '"server/core/b.h"', False),
                ("server/ps_server.cc", '"server/service/b.h"', True),
                ("server/ps_server.cc", '"worker/core/b.h"', False),
                ("worker/client/a.cc", '"worker/core/b.h"', True),
                ("worker/client/a.cc", '"worker/data/b.h"', False),
                ("worker/client/a.cc", '"worker/training/b.h"', False),
                ("worker/core/a.cc", '"worker/data/b.h"', False),
                ("worker/training/a.cc", '"worker/data/b.h"', True),
                ("common/layout/a.cc", '"common/base/b.h"', True),
                ("common/base/a.cc", '"common/layout/b.h"', False),
                ("common/kernels/a.cc", '"common/layout/b.h"', False),
                ("common/config/a.cc", '"server/core/b.h"', False),
                ("deploy/psctl/a.cc", '"server/core/b.h"', False),
                ("server/service/a.cc", '"tests/support/b.h"', False),
                ("tests/server/a_test.cc", '"tests/support/b.h"', True),
                ("tests/server/a_test.cc", '"worker/core/b.h"', True)):
            (self.assert_accepted if is_allowed else self.assert_refused)(path, include)

    def test_a_new_folder_says_what_it_includes(self):
        self.assertIn("layering.py", messages("common/new/a.cc", '#include "common/files/b.h"\n')[0])

    def test_pure_folders_may_include_pure_ones_only(self):
        for folder in layering.PURE:
            self.assertLessEqual(set(layering.MAY_INCLUDE[folder]), set(layering.PURE), folder)

    def test_includes_have_no_cycles(self):
        # A device is opened by those who share what devices have in common: one folder in three.
        folders = {folder: {t for t in below if not folder.startswith(t + "/")}
                   for folder, below in layering.MAY_INCLUDE.items()}
        while folders:
            lowest = {folder for folder, below in folders.items() if not below & set(folders)}
            self.assertTrue(lowest, f"in a cycle: {sorted(folders)}")
            folders = {folder: below for folder, below in folders.items() if folder not in lowest}

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


class RepositoryTest(unittest.TestCase):
    """A small repository, written file by file."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")


class BuildDepsTest(RepositoryTest):
    def setUp(self):
        super().setUp()
        self.write("common/a/BUILD", '''
cc_library(name = "a", hdrs = ["a.h"])
cc_library(name = "b", hdrs = ["b.h"], deps = [":a"])
''')
        self.write("common/a/a.h", "")
        self.write("common/a/b.h", '#include "common/a/a.h"\n')

    def messages(self, build, source):
        self.write("server/c/BUILD", build)
        self.write("server/c/c.cc", source)
        return [f"{path}:{line}: {message}" for path, line, message in build_deps.offences(self.root)]

    def test_what_is_included_is_depended_on(self):
        build = 'cc_library(name = "c", srcs = ["c.cc"], deps = ["//common/a", "//common/a:b"])'
        source = '#include <map>\n#include "absl/c.h"\n#include "common/a/a.h"\n#include "common/a/b.h"\n'
        self.assertEqual(self.messages(build, source), [])

        indirect = '\ncc_library(name = "c", srcs = ["c.cc"], deps = ["//common/a:b", "@absl"])'
        self.assertEqual(self.messages(indirect, source), [
            "server/c/BUILD:2: //server/c:c includes common/a/a.h in server/c/c.cc "
            "without depending on //common/a:a"])

    def test_what_is_depended_on_is_included(self):
        self.assertEqual(
            self.messages('cc_library(name = "c", srcs = ["c.cc"], deps = ["//common/a"])', ""),
            ["server/c/BUILD:1: //server/c:c depends on //common/a:a and includes nothing of it"])

    def test_targets_may_be_made_by_lists_choices_and_macros(self):
        source = '#include "common/a/a.h"\n'
        self.assertEqual(self.messages(
            '[cuda_library(name = n, srcs = [n + ".cc"], deps = [":d"] + select({"x": [], '
            '"y": ["//common/a"]})) for n in ["c"]]', source), [])
        self.assertEqual(len(self.messages('[made_library(name = n, srcs = [n + ".cc"]) for n in ["c"]]',
                                           source)), 1)

    def test_generated_files_may_need_any_dependency(self):
        self.assertEqual(self.messages(
            'cc_library(name = "c", srcs = ["c.cc", "made.cc"], deps = ["//common/a"])', ""), [])

    def test_headers_of_messages_come_from_their_own_target(self):
        self.write("proto/BUILD", '''
proto_library(name = "m_proto", srcs = ["m.proto"])
cc_proto_library(name = "m_cc_proto", deps = [":m_proto"])
cc_grpc_library(name = "m_cc_grpc", proto = ":m_proto", deps = [":m_cc_proto"])
''')
        build = 'cc_library(name = "c", srcs = ["c.cc"], deps = ["//proto:m_cc_{}"])'
        for kind, header in (("proto", "m.pb.h"), ("grpc", "m.grpc.pb.h")):
            self.assertEqual(self.messages(build.format(kind), f'#include "proto/{header}"\n'), [], kind)
        self.assertEqual(len(self.messages(build.format("proto"), '#include "proto/m.grpc.pb.h"\n')), 2)


class ReadmeListsTest(RepositoryTest):
    def messages(self):
        return [f"{path}: {message}" for path, _, message in readme_lists.offences(self.root)]

    def test_a_readme_names_each_header(self):
        for name in ("a.h", "b.h", "b_kernels.h", "c.cuh", "d.cc"):
            self.write(f"common/x/{name}", "")
        self.write("common/x/README.md", "`a.h`, `common/x/b`, `*_kernels.h` and c.\n\n```sh\nc.cuh\n```\n")
        self.assertEqual(self.messages(), ["common/x/README.md: does not name common/x/c.cuh"])

    def test_a_folder_without_readme_is_told_by_the_one_above(self):
        self.write("common/x/a.h", "")
        self.assertEqual(self.messages(), ["common/x/README.md: does not name common/x/a.h"])
        self.write("common/README.md", "`x/`")
        self.assertEqual(self.messages(), ["common/README.md: does not name common/x/a.h"])
        self.write("common/README.md", "`x/a.h`")
        self.assertEqual(self.messages(), [])

    def test_tests_need_no_readme(self):
        self.write("tests/x/a.h", "")
        self.assertEqual(self.messages(), [])
        self.write("tests/x/README.md", "")
        self.assertEqual(self.messages(), ["tests/x/README.md: does not name tests/x/a.h"])


class TypeNamesTest(unittest.TestCase):
    def types(self, text):
        return [name for _, name in type_names.types_of(text)]

    def test_types_are_known_by_namespace_and_name(self):
        self.assertEqual(self.types(
            "namespace s {\nclass Declared;\nenum class E { kA };\ntemplate <class T>\nstruct A : B<T> {\n"
            "  struct Inner {};\n};\nclass ABSL_LOCKABLE C final {};\nstruct alignas(64) D {};\n"
            "struct A::Later {};\nstruct E F() { return {}; }\nnamespace n::m {\nclass G {};\n}\n}\n"),
            ["s::A", "s::C", "s::D", "s::A::Later", "s::n::m::G"])

    def test_two_headers_do_not_define_one_name(self):
        first, second = "namespace s {\nclass A {};\n}\n", "namespace s {\n\nstruct A {};\n}\n"
        self.assertEqual(list(type_names.offences([("x.h", first), ("y.h", second)])),
                         [("y.h", 3, "x.h defines another s::A")])
        self.assertEqual(list(type_names.offences([("x.h", first), ("y.h", "namespace t {\nclass A {};\n}\n")])),
                         [])


if __name__ == "__main__":
    unittest.main()

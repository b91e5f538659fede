#!/usr/bin/env python3
"""Tests tidy.py: python3 tests/tidy_test.py"""
import pathlib
import tempfile
import unittest

import tidy
from checks import build_files, layering, pages, together, type_names


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
                ("server/data_plane/a.cc", '"server/data_plane/b.h"', True),
                ("server/data_plane/a.cc", '"server/core/b.h"', True),
                ("server/data_plane/a.cc", '"worker/core/b.h"', False),
                ("server/core/a.cc", '"server/data_plane/b.h"', False),
                ("server/storage/a.cc", '"server/core/b.h"', True),
                ("server/storage/a.cc", '"server/data_plane/b.h"', False),
                ("server/ps_server.cc", '"server/data_plane/b.h"', True),
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
                ("deploy/psctl/checkpoint/a.cc", '"server/data_plane/b.h"', True),
                ("deploy/psctl/operate/a.cc", '"worker/core/b.h"', False),
                ("server/data_plane/a.cc", '"tests/support/b.h"', False),
                ("tests/server/a_test.cc", '"tests/support/b.h"', True),
                ("tests/server/a_test.cc", '"worker/core/b.h"', True)):
            (self.assert_accepted if is_allowed else self.assert_refused)(path, include)

    def test_a_new_folder_says_what_it_includes(self):
        self.assertIn("layering.py", messages("common/new/a.cc", '#include "common/files/b.h"\n')[0])

    def test_pure_folders_may_include_pure_ones_only(self):
        for folder in layering.PURE:
            included = set(layering.MAY_INCLUDE[folder])
            messages_of = layering.PURE_WITH_MESSAGES.get(folder, ())
            self.assertLessEqual(included - set(messages_of), set(layering.PURE), folder)

    def test_includes_have_no_cycles(self):
        # A folder and its subfolders count as one: worker/compute holds the code that its devices
        # share, and also opens them.
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
            self.assertEqual(len(messages("server/data_plane/a.cc", call + "\n")), 1, call)
            self.assertEqual(messages("tests/server/a_test.cc", call + "\n"), [], call)

    def test_names_say_what_a_class_is(self):
        self.assertEqual(len(messages("server/data_plane/a.cc", "class PushManager {};\n")), 1)
        self.assertEqual(messages("server/data_plane/a.cc", "class PushQueue {};\n"), [])


class GuardTest(unittest.TestCase):
    def test_the_guard_follows_the_path(self):
        self.assertEqual(
            messages("common/base/ids.h", guarded("SLIPSTREAM_COMMON_BASE_IDS_H_", "")), [])
        self.assertEqual(messages("common/base/id.h", guarded("SLIPSTREAM_COMMON_BASE_IDS_H_", "")),
                         ["1: the include guard is not SLIPSTREAM_COMMON_BASE_ID_H_"])
        self.assertEqual(messages("common/base/ids.h", "#pragma once\n"),
                         ["1: the include guard is not SLIPSTREAM_COMMON_BASE_IDS_H_"])


class PagesTest(unittest.TestCase):
    def offences(self, text, name="README.md"):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs" / "other.md").write_text("# Other\n\n## The `first` part, again\n")
            (root / name).write_text(text)
            return [f"{line}: {message}" for line, message in pages.offences(root, root / name)]

    def test_a_page_has_at_most_250_lines_but_results_may_go_on(self):
        self.assertEqual(self.offences("text\n" * 250), [])
        self.assertEqual(self.offences("text\n" * 251),
                         ["1: page has 251 lines, at most 250: split it"])
        self.assertEqual(self.offences("text\n" * 251, name="RESULTS.md"), [])

    def test_links_lead_to_pages_and_headings(self):
        self.assertEqual(self.offences("# Top\n[a](docs/other.md) [b](docs/other.md#the-first-part-again)\n"
                                       "[c](#top) [d](https://example.org/#x) ![e](docs/other.md)\n"), [])
        self.assertEqual(self.offences("text\n[a](docs/none.md)\n[b](docs/other.md#second) [c](#none)\n"),
                         ["2: the link leads nowhere: docs/none.md",
                          "3: docs/other.md has no heading #second",
                          "3: README.md has no heading #none"])

    def test_code_has_no_links_or_headings(self):
        self.assertEqual(self.offences("```\n# Not a heading\n[a](none.md)\n```\n[b](#not-a-heading)\n"),
                         ["5: README.md has no heading #not-a-heading"])


class SizeTest(unittest.TestCase):
    def test_a_file_has_at_most_500_lines(self):
        self.assertEqual(messages("common/base/a.cc", "int a;\n" * 500), [])
        self.assertEqual(messages("common/base/a.cc", "int a;\n" * 501),
                         ["1: file has 501 lines, at most 500"])

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
        self.assertEqual(messages("tests/fuzz/BUILD", 'CORPUS = glob(["corpus/**"])\n'), [])

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
    """A small repository, which the tests write file by file."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")


class WrittenBuildFilesTest(RepositoryTest):
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
        return [f"{path}:{line}: {message}" for path, line, message in build_files.offences(self.root)]

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


class GeneratedBuildFilesTest(RepositoryTest):
    def setUp(self):
        super().setUp()
        self.write("common/base/BUILD", build_files.GENERATED)
        self.write("common/base/ids.h", "")
        self.write("server/core/BUILD", build_files.GENERATED)
        self.write("server/core/a.h", '#include "common/base/ids.h"\n')
        self.write("server/core/a.cc", '#include "server/core/a.h"\n#include "absl/b.h"\n')

    def fixed(self, folder):
        """Returns the rules generated for a folder."""
        list(build_files.fix(self.root))
        self.assertEqual(self.messages(), [])
        return (self.root / folder / "BUILD").read_text(encoding="utf-8").split(
            build_files.GENERATED + "\n")[1]

    def messages(self):
        return [f"{path}:{line}: {message}" for path, line, message in build_files.offences(self.root)]

    def test_a_folder_is_one_library_that_depends_on_what_it_includes(self):
        self.assertEqual(self.fixed("server/core"), """
cc_library(
    name = "core",
    srcs = ["a.cc"],
    hdrs = ["a.h"],
    deps = [
        "//common/base",
        "@absl",
    ],
)
""")

    def test_the_layering_says_to_whom_a_folder_is_visible(self):
        self.fixed("server/core")
        self.assertTrue((self.root / "server/core/BUILD").read_text(encoding="utf-8").startswith("""\
package(default_visibility = [
    "//deploy/lab:__pkg__",
    "//deploy/psctl/checkpoint:__pkg__",
    "//server/aggregator:__pkg__",
    "//server/control_plane:__pkg__",
    "//server/core/coordinator:__pkg__",
    "//server/core/shard:__pkg__",
    "//server/data_plane:__pkg__",
    "//server/status:__pkg__",
    "//server/storage:__pkg__",
    "//server:__pkg__",
    "//tests:__subpackages__",
])
"""))

    def test_a_list_splits_a_folder_and_names_further_attributes(self):
        self.write("server/core/b.cc", '#include "server/core/a.h"\n')
        self.write("server/core/main.cc", '#include "server/core/a.h"\n')
        self.write("server/core/BUILD", """
LIBRARIES = {"low": ["a"], "high": []}
PROGRAMS = {"p": ["main"]}
ATTRIBUTES = {"high": dict(copts = ["-O3"], deps = ["@more"])}
""" + build_files.GENERATED)
        high, _, program = self.fixed("server/core").strip().split("\n\n")
        self.assertEqual(high, """\
cc_library(
    name = "high",
    srcs = ["b.cc"],
    copts = ATTRIBUTES["high"]["copts"],
    deps = [":low"] + ATTRIBUTES["high"]["deps"],
)""")
        self.assertEqual(program, """\
cc_binary(
    name = "p",
    srcs = ["main.cc"],
    deps = [":low"],
)""")

    def test_tests_of_a_folder_are_one_program_and_what_they_share_is_a_library(self):
        self.write("tests/server/core/BUILD", build_files.GENERATED)
        for name in ("a_test.cc", "b_test.cc"):
            self.write(f"tests/server/core/{name}", '#include "tests/server/core/c.h"\n')
        self.write("tests/server/core/c.h", '#include "server/core/a.h"\n#include <gtest/gtest.h>\n')
        self.assertEqual(self.fixed("tests/server/core"), """
load("//common/bazel:together.bzl", "together_cc_test")

cc_library(
    name = "support",
    testonly = True,
    hdrs = ["c.h"],
    deps = [
        "//server/core",
        "@googletest",
    ],
)

together_cc_test(
    name = "core",
    together = [
        [
            "a_test.cc",
            "b_test.cc",
        ],
    ],
    deps = [":support"],
)
""")

    def test_sources_of_a_target_that_the_head_calls_alone_are_compiled_by_themselves(self):
        self.write("server/core/b.cc", "")
        self.assertIn("together = [", self.fixed("server/core"))
        self.write("server/core/BUILD", 'ALONE = ["core"]\n' + build_files.GENERATED)
        self.assertIn('srcs = [\n        "a.cc",\n        "b.cc",', self.fixed("server/core"))

    def test_files_of_a_rule_in_the_head_are_left_to_it(self):
        self.write("server/core/made.cc", "")
        self.write("server/core/BUILD", 'made_library(name = "m", srcs = ["made.cc"])\n'
                   + build_files.GENERATED)
        self.assertNotIn("made.cc", self.fixed("server/core"))

    def test_a_file_that_came_or_went_is_told_of(self):
        self.fixed("server/core")
        self.write("server/core/new.cc", "")
        self.assertEqual(self.messages(), [
            "server/core/BUILD:1: is not what the files include; run tests/tidy.py --fix"])

    def test_a_list_that_cannot_be_is_told_of_and_nothing_is_written(self):
        for head, message in (
                ('LIBRARIES = {"x": ["lost"]}', "LIBRARIES names lost, and no file"),
                ('LIBRARIES = {"x": ["a"], "y": ["a"]}', "a is named twice"),
                ('LIBRARIES = {"x": [], "y": []}', "x and y ask"),
                ('LIBRARIES = {"x": ["a"], "y": []}', "no file is left for y"),
                ('PROGRAMS = {"x": ["a"]}', "which others cannot include"),
                ('ATTRIBUTES = {"x": dict(copts = [])}', "there is no target x"),
                ('ALONE = ["x"]', "there is no target x"),
                ('LIBRARIES = {', "was never closed")):
            text = f"{head}\n{build_files.GENERATED}"
            self.write("server/core/BUILD", text)
            self.assertEqual(list(build_files.fix(self.root)), [])
            self.assertEqual(len(self.messages()), 1, head)
            self.assertIn(message, self.messages()[0])
            self.assertEqual((self.root / "server/core/BUILD").read_text(encoding="utf-8"), text)

    def test_libraries_that_need_each_other_are_told_of(self):
        self.write("server/core/a.h", '#include "server/core/b.h"\n')
        self.write("server/core/b.h", '#include "server/core/a.h"\n')
        self.write("server/core/BUILD", 'LIBRARIES = {"x": ["b"]}\n' + build_files.GENERATED)
        list(build_files.fix(self.root))
        self.assertEqual(len(self.messages()), 1)
        self.assertIn("//server/core:core -> //server/core:x -> //server/core:core",
                      self.messages()[0])


class TogetherTest(unittest.TestCase):
    def groups(self, lines_max=1000, **texts):
        """Returns the groups of sources that are compiled as one, as names."""
        return ["".join(group) for group in together.groups(texts, lines_max)]

    def test_sources_are_kept_apart_if_one_uses_a_local_name_of_the_other(self):
        def source(line):
            return f"namespace s {{\nnamespace {{\n\n{line}\n\n}}  // namespace\n}}\n"

        self.assertEqual(self.groups(
            a=source("constexpr int kOne = 1;"), b=source("int Two(int a) {\n  return b.kOne();\n}"),
            c=source("class Three final : public A {};"), d=source("using One = int;"),
            e=source("TEST(T, Is) {"), f=source("TEST(T, Was) {  // kOne"), g="x = S::kOne;"),
            ["abcdefg"])
        for line in ("constexpr int kOne[] = {1};", "int kOne(int a) {", "struct kOne final {",
                     "enum class kOne { kA };", "template <class T>\nT kOne(T t) {",
                     "int Two(int a) {\n  return kOne;\n}", "vector<kOne> Two(int a) {"):
            for names in ("ab", "ba"):
                texts = zip(names, (source("const int kOne = 1;"), source(line)))
                self.assertEqual(self.groups(**dict(texts)), list(names), line)

    def test_sources_with_what_lasts_to_the_end_are_compiled_alone(self):
        for line in ('#include "x.inc"', "#define A", "#undef A", "#pragma GCC optimize"):
            self.assertEqual(self.groups(a="", b=f"{line}\n", c=""), ["ac", "b"], line)

    def test_groups_are_bounded_and_a_longer_source_is_one_of_its_own(self):
        self.assertEqual(self.groups(5, a="\n" * 3, b="\n" * 3, c="\n" * 2, d="\n" * 9),
                         ["ac", "b", "d"])


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

"""Writes the second half of each BUILD file from the includes of the folder's files.

A BUILD file has a head that people write and, below the line GENERATED, rules that
`tests/tidy.py --fix` writes. The head may define these names, all of them optional:

  LIBRARIES   a dictionary from a library's name to its files, named without their endings. The
              library whose list is empty gets all files that nothing else names. Without such an
              entry, the library of these files is named after the folder, and `support` below
              tests/. So a folder with one library needs no list.
  TESTS       the same for test programs, which are made of the files *_test.cc. The program of
              the files left over is named after the folder.
  PROGRAMS    the same for programs; here each file is named.
  ATTRIBUTES  a dictionary from a target's name to further attributes of its rule. `deps` and `srcs`
              are added to those found from the includes.
  ALONE       the targets whose sources are never compiled together, such as kernels whose speed
              depends on where the compiler places their loops.

A rule lists its sources under `together`, in groups that common/bazel/together.bzl compiles as one;
together.py decides on the groups. A source that is in none of them stands under `srcs`.

Rules in the head stay as they are: they are for targets that are not ordinary libraries, tests or
programs. Their files belong to them, and their dependencies are compared with the includes of their
files.

Visibility follows from layering.py, which lists the folders that each folder may include.
"""
import ast
import builtins
import dataclasses
import pathlib

from checks import layering, together

GENERATED = "# Written by tests/tidy.py --fix, from here to the end."
RULES = {"LIBRARIES": "cc_library", "TESTS": "cc_test", "PROGRAMS": "cc_binary"}
# More lines in a group save time in the first build, and cost time after each change of a source.
GROUP_LINES_MAX = 4000
SOURCE_SUFFIXES = (".cc",)
HEADER_SUFFIXES = (".h", ".cuh")
TEXTUAL_SUFFIXES = (".inc",)
SUFFIXES = SOURCE_SUFFIXES + HEADER_SUFFIXES + TEXTUAL_SUFFIXES

# The system's libraries, by the beginning of their headers' names.
SYSTEM_LIBRARIES = {
    "CLI/": "@cli11", "absl/": "@absl", "benchmark/": "@benchmark", "fmt/": "@spdlog",
    "gloo/": "@gloo", "gmock/": "@googletest", "google/protobuf/": "@com_google_protobuf//:protobuf",
    "grpc/": "@grpc", "grpcpp/": "@grpc", "gtest/": "@googletest", "nlohmann/": "@nlohmann_json",
    "oneapi/": "@dnnl", "openssl/": "@crypto", "httplib.h": "@httplib",
    "prometheus/": "@prometheus", "pybind11/": "@pybind11", "spdlog/": "@spdlog", "utf8cpp/": "@utfcpp",
    "xxhash.h": "@xxhash", "yaml-cpp/": "@yaml_cpp", "zlib.h": "@zlib",
    "cublasLt.h": "@cuda//:headers", "cuda": "@cuda//:headers", "cudnn": "@cuda//:headers",
    "nccl.h": "@cuda//:headers",
}

# All other calls in a head, including our own macros, are targets with files and dependencies.
NOT_TARGETS = {"package", "load", "exports_files", "config_setting", "constraint_setting",
               "constraint_value", "filegroup", "genrule", "package_group", "test_suite"}


@dataclasses.dataclass
class Target:
    """A rule of a BUILD file. Paths are relative to the repository."""
    label: str
    rule: str
    files: list          # all of srcs, hdrs and textual_hdrs
    headers: list        # the files that other targets may include
    deps: list = dataclasses.field(default_factory=list)  # labels
    together: list = dataclasses.field(default_factory=list)  # lists of files that compile as one
    attributes: dict = dataclasses.field(default_factory=dict)  # from ATTRIBUTES
    line: int = 0        # the line in the head; 0 for a generated rule


@dataclasses.dataclass
class Package:
    """A folder with a BUILD file."""
    path: str
    head: str
    is_generated: bool
    targets: list


class Malformed(Exception):
    """A head is inconsistent: the text says how. Reported at line 1."""


def absolute(label, package):
    """Returns a label in full, as //package:target."""
    if label.startswith("@"):
        return label
    if label.startswith("//"):
        return label if ":" in label else f"{label}:{label.split('/')[-1]}"
    return f"//{package}:{label.removeprefix(':')}"


def written(label, package):
    """Returns a label in its shortest form, as it is written in a package's BUILD file."""
    folder, _, name = label.partition(":")
    if folder == f"//{package}":
        return f":{name}"
    return folder if name == folder.split("/")[-1] else label


def path_of(label):
    return label[len("//"):].replace(":", "/")


class Scope(dict):
    """The names of a head. A head is enough like Python to be run; this records its calls of
    rules."""

    def __init__(self, calls):
        # Collect the values of every branch of a select().
        super().__init__(glob=lambda *_, **__: [],
                         select=lambda choices: [v for branch in choices.values() for v in branch])
        self.calls = calls

    def __missing__(self, name):
        if hasattr(builtins, name):
            raise KeyError(name)  # A Python builtin, such as len.
        return lambda *_, **arguments: self.calls.append((name, arguments))


def run_head(package, head):
    """Runs the head. Returns its names, and its calls as (line, rule, arguments)."""
    calls, lines = [], []
    scope = Scope(calls)
    # Run one statement at a time, so that the line of each call is known.
    for statement in ast.parse(head).body:
        exec(compile(ast.Module([statement], []), f"{package}/BUILD", "exec"), scope)
        lines += [statement.lineno] * (len(calls) - len(lines))
    return scope, [(line, *call) for line, call in zip(lines, calls)]


def written_targets(package, calls):
    """Yields the targets of the head's rules."""
    for line, rule, arguments in calls:
        if rule in NOT_TARGETS:
            continue
        listed = {key: [absolute(label, package) for label in arguments.get(key) or []]
                  for key in ("srcs", "hdrs", "textual_hdrs", "deps")}
        headers = [path_of(label) for label in listed["hdrs"] + listed["textual_hdrs"]]
        files = [path_of(label) for label in listed["srcs"]] + headers
        if "proto" in arguments:  # Its sources are made from the proto_library.
            listed["deps"].append(absolute(arguments["proto"], package))
        yield Target(f"//{package}:{arguments['name']}", rule, files, headers, listed["deps"],
                     line=line)


def share_out(package, lists, stems):
    """Assigns the files of a folder (without endings) to targets. Yields (rule, name, stems)."""
    owner = {}
    for kind, targets in lists.items():
        for name, names in targets.items():
            for stem in names:
                if stem not in stems:
                    raise Malformed(f"{kind} names {stem}, and no file of that name is left to it")
                if owner.setdefault(stem, (kind, name)) != (kind, name):
                    raise Malformed(f"{stem} is named twice")
    folder = package.split("/")[-1]
    is_test = layering.is_test(package + "/")
    rest = {"LIBRARIES": "support" if is_test else folder, "TESTS": folder}
    for kind in rest:
        without_files = [name for name, names in lists[kind].items() if not names]
        if len(without_files) > 1:
            raise Malformed(f"{kind}: {' and '.join(without_files)} ask for the files left over")
        rest[kind] = without_files[0] if without_files else rest[kind]
    for stem in stems:
        kind = "TESTS" if is_test and stem.endswith("_test") else "LIBRARIES"
        owner.setdefault(stem, (kind, rest[kind]))
    listed = {(kind, name) for kind, targets in lists.items() for name in targets}
    for kind, name in sorted(listed.union(owner.values())):
        mine = [stem for stem in stems if owner[stem] == (kind, name)]
        if not mine:
            raise Malformed(f"{kind}: no file is left for {name}")
        yield RULES[kind], name, mine


def generated_targets(root, package, names, taken):
    """Yields the targets for the folder's files that no rule of the head has."""
    files = sorted(path.name for path in (root / package).iterdir()
                   if path.suffix in SUFFIXES and f"{package}/{path.name}" not in taken)
    stems = list(dict.fromkeys(pathlib.PurePath(name).stem for name in files))
    lists = {kind: dict.get(names, kind, {}) for kind in RULES}
    attributes = dict(dict.get(names, "ATTRIBUTES", {}))
    alone = set(dict.get(names, "ALONE", ()))
    for rule, name, mine in share_out(package, lists, stems):
        paths = [f"{package}/{file}" for file in files if pathlib.PurePath(file).stem in mine]
        headers = [path for path in paths if not path.endswith(SOURCE_SUFFIXES)]
        if rule != "cc_library" and headers:
            raise Malformed(f"{headers[0]} belongs to a {rule}, which others cannot include")
        sources = {path: (root / path).read_text(encoding="utf-8") for path in paths
                   if path.endswith(SOURCE_SUFFIXES) and name not in alone}
        yield Target(f"//{package}:{name}", rule, paths, headers,
                     together=[group for group in together.groups(sources, GROUP_LINES_MAX)
                               if len(group) > 1],
                     attributes=attributes.pop(name, {}))
        alone.discard(name)
    for kind, unknown in (("ATTRIBUTES", attributes), ("ALONE", sorted(alone))):
        for name in unknown:
            raise Malformed(f"{kind}: there is no target {name}")


def read_package(root, path, text):
    head, line, _ = text.partition(GENERATED)
    names, calls = run_head(path, head)
    targets = list(written_targets(path, calls))
    if line:
        taken = {file for target in targets for file in target.files}
        targets += generated_targets(root, path, names, taken)
    return Package(path, head, bool(line), targets)


def made_headers(target, targets):
    """Yields the headers that the C++ rules for messages and services make from a .proto file."""
    for label in target.deps if target.label.endswith(("_cc_proto", "_cc_grpc")) else ():
        ending = ".grpc.pb.h" if target.label.endswith("_cc_grpc") else ".pb.h"
        for source in targets[label].files if label in targets else ():
            if source.endswith(".proto"):
                yield source[:-len(".proto")] + ending


def system_library(header):
    return next((library for beginning, library in SYSTEM_LIBRARIES.items()
                 if header.startswith(beginning)), None)


class Repository:
    """All packages, and which target provides each header."""

    def __init__(self, root):
        self.root = root
        self.packages, self.malformed = [], []  # malformed: (path, line, message)
        for build in sorted(root.glob("*/**/BUILD")):
            path = build.parent.relative_to(root).as_posix()
            if path.split("/")[0] in layering.PROJECT and "node_modules" not in path:
                text = build.read_text(encoding="utf-8")
                try:
                    self.packages.append(read_package(root, path, text))
                except Exception as error:  # Running the head may raise anything.
                    self.malformed.append((f"{path}/BUILD", 1, f"{type(error).__name__}: {error}"))
        self.targets = {target.label: target for package in self.packages
                        for target in package.targets}
        self.provided = {label: set(target.headers) | set(made_headers(target, self.targets))
                         for label, target in self.targets.items()}
        self.provider = {}  # The first target with the header in its hdrs.
        for label, headers in self.provided.items():
            for header in headers:
                self.provider.setdefault(header, label)
        self.included = {}  # By path of an existing file: header -> line.
        for path in {path for target in self.targets.values() for path in target.files}:
            if (root / path).is_file():
                lines = (root / path).read_text(encoding="utf-8").splitlines()
                self.included[path] = {header: line for line, header in layering.includes(lines)}
        for target in self.targets.values():
            if not target.line:
                target.deps = self.needed(target)

    def needed(self, target):
        """Returns the labels of all other targets whose headers the target's files include."""
        headers = {header for path in target.files for header in self.included.get(path, ())}
        outside = headers - self.provided[target.label] - set(target.files)
        return sorted({label for header in outside
                       if (label := self.provider.get(header) or system_library(header))})


def item_list(key, values, more=""):
    """Returns the lines of one attribute whose value is a list, on one line if it has at most one
    item."""
    if not values:
        return [f"    {key} = {more.removeprefix(' + ')},"] if more else []
    if len(values) == 1:
        return [f'    {key} = ["{values[0]}"]{more},']
    return [f"    {key} = [", *(f'        "{value}",' for value in values), f"    ]{more},"]


def label_order(label):
    """Returns a sort key for Buildifier's order: this package, other packages, other
    repositories."""
    return (label.startswith("@"), label.startswith("//"), label.replace(":", "!"))


def group_lists(groups):
    """Returns the lines of the attribute `together`."""
    lines = [line for group in groups
             for line in ("        [", *(f'            "{name}",' for name in group), "        ],")]
    return ["    together = [", *lines, "    ],"] if groups else []


def generated_rule(target):
    """Returns the name of the rule in BUILD files."""
    return f"together_{target.rule}" if target.together else target.rule


def rule_text(target, package):
    grouped = {path for group in target.together for path in group}

    def names(endings):
        return [path.split("/")[-1] for path in target.files
                if path.endswith(endings) and path not in grouped]

    def reference(key):
        return f'ATTRIBUTES["{name}"]["{key}"]'

    def added(key):
        return f" + {reference(key)}" if key in target.attributes else ""

    name = target.label.split(":")[1]
    deps = sorted((written(label, package) for label in target.deps), key=label_order)
    lines = [f"{generated_rule(target)}(", f'    name = "{name}",']
    is_for_tests = layering.is_test(package + "/") and target.rule != "cc_test"
    if is_for_tests and "testonly" not in target.attributes:
        lines.append("    testonly = True,")
    lines += item_list("srcs", names(SOURCE_SUFFIXES), added("srcs"))
    lines += group_lists([[path.split("/")[-1] for path in group] for group in target.together])
    lines += item_list("hdrs", names(HEADER_SUFFIXES))
    lines += item_list("textual_hdrs", names(TEXTUAL_SUFFIXES))
    lines += [f"    {key} = {reference(key)}," for key in sorted(target.attributes)
              if key not in ("srcs", "deps")]
    return "\n".join([*lines, *item_list("deps", deps, added("deps")), ")", ""])


def visibility(package):
    """Returns who may include a folder according to layering.py, or None if it does not list the
    folder."""
    if package == layering.FOR_ALL:
        return ["//visibility:public"]
    if package not in layering.MAY_INCLUDE:
        return None
    above = [folder for folder, below in layering.MAY_INCLUDE.items() if package in below]
    return sorted([*(f"//{folder}:__pkg__" for folder in above), "//tests:__subpackages__"])


def visible_head(package):
    """Returns the head with the visibility that layering.py gives the folder."""
    labels = visibility(package.path)
    if labels is None:
        return package.head
    call = f'package(default_visibility = ["{labels[0]}"])'
    if len(labels) > 1:
        call = "\n".join(["package(default_visibility = [",
                          *(f'    "{label}",' for label in labels), "])"])
    lines = package.head.splitlines()
    for statement in ast.parse(package.head).body:
        if isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("package("):
            lines[statement.lineno - 1:statement.end_lineno] = [call]
            return "\n".join(lines)
    return f"{call}\n\n{package.head}"


def text_of(package):
    """Returns the whole BUILD file of a package whose rules are generated."""
    generated = [target for target in package.targets if not target.line]
    loaded = sorted({generated_rule(target) for target in generated if target.together})
    load = [f'load("//common/bazel:together.bzl", {", ".join(map(repr, loaded))})'.replace("'", '"'),
            ""] if loaded else []
    head = visible_head(package).strip()
    rules = "\n".join(rule_text(target, package.path) for target in generated)
    return "\n".join([*([head, ""] if head else []), GENERATED, "", *load, rules])


def cycle(repository):
    """Returns labels that depend on each other in a ring, or an empty list if there are none."""
    done, path = set(), []

    def visit(label):
        if label in path:
            return path[path.index(label):] + [label]
        if label in done or label not in repository.targets:
            return []
        path.append(label)
        for dep in repository.targets[label].deps:
            if found := visit(dep):
                return found
        done.add(path.pop())
        return []

    return next((found for label in repository.targets if (found := visit(label))), [])


def offences_of(target, repository):
    """Yields errors in the deps of a hand-written rule."""
    provided, included = repository.provided, repository.included
    own = set(target.files) | provided[target.label]
    headers = {header: path for path in target.files for header in included.get(path, ())}
    deps = [dep for dep in target.deps if dep in provided]
    reachable = own.union(*(provided[dep] for dep in deps))
    for header, path in sorted(headers.items()):
        if header in repository.provider and header not in reachable:
            yield (f"{target.label} includes {header} in {path} without depending on "
                   f"{repository.provider[header]}")
    # The includes of a generated file are not known here.
    is_known = target.files and all(path in included for path in target.files)
    for dep in deps if is_known else ():
        is_for_the_linker = repository.targets[dep].attributes.get("alwayslink")
        if provided[dep] and not is_for_the_linker and not provided[dep] & (set(headers) | own):
            yield f"{target.label} depends on {dep} and includes nothing of it"


def offences(root):
    """Yields all offences in a repository, as (path of the BUILD file, line, message)."""
    repository = Repository(root)
    yield from repository.malformed
    if repository.malformed:
        return  # All further offences would follow from these.
    ring = cycle(repository)
    if ring:
        yield (f"{path_of(ring[0]).rsplit('/', 1)[0]}/BUILD", 1,
               f"targets depend on each other: {' -> '.join(ring)}; name some of their files as a "
               "library of their own in LIBRARIES")
    for package in repository.packages:
        build = f"{package.path}/BUILD"
        for target in package.targets:
            for message in offences_of(target, repository) if target.line else ():
                yield build, target.line, message
        if package.is_generated and text_of(package) != (root / build).read_text(encoding="utf-8"):
            yield build, 1, "is not what the files include; run tests/tidy.py --fix"


def fix(root):
    """Writes the BUILD files that are out of date. Yields the paths of those that changed."""
    repository = Repository(root)
    for package in repository.packages if not repository.malformed else ():
        build = root / package.path / "BUILD"
        text = text_of(package)
        if package.is_generated and text != build.read_text(encoding="utf-8"):
            build.write_text(text, encoding="utf-8")
            yield build.relative_to(root).as_posix()

"""Compares what a target's files include with what its BUILD file says it depends on.

Bazel 4 lets a file include the headers of whatever its target depends on indirectly, and never
misses a dependency that nothing is included of. Libraries from outside the repository are left out:
most are one target for many headers.
"""
import ast
import builtins
import collections

from checks import layering

# Whatever else a BUILD file calls, macros of our own among it, is a target with deps.
NOT_TARGETS = {"package", "load", "exports_files", "config_setting", "constraint_setting",
               "constraint_value", "filegroup", "genrule", "package_group", "test_suite"}
HEADER_LISTS = ("hdrs", "textual_hdrs")

Target = collections.namedtuple("Target", "label line files headers deps")


def absolute(label, package):
    if label.startswith(":"):
        return f"//{package}{label}"
    if label.startswith("//") and ":" not in label:
        return f"{label}:{label.split('/')[-1]}"
    return label if label.startswith(("//", "@")) else f"//{package}:{label}"


def path_of(label):
    return label[len("//"):].replace(":", "/")


def either(choices):
    """A select(), of which every branch counts."""
    return [value for branch in choices.values() for value in branch]


class Scope(dict):
    """The names of a BUILD file, which is Python enough to be run: calls of rules are noted."""

    def __init__(self, calls):
        super().__init__(select=either, glob=lambda *_, **__: [])
        self.calls = calls

    def __missing__(self, name):
        if hasattr(builtins, name):
            raise KeyError(name)  # Python's own, as len.
        return lambda *_, **arguments: self.calls.append((name, arguments))


def parse_build(package, text):
    """The targets of a package that have files."""
    calls, lines = [], []
    scope = Scope(calls)
    # A statement at a time, so that each call is known by its line.
    for statement in ast.parse(text).body:
        exec(compile(ast.Module([statement], []), f"{package}/BUILD", "exec"), scope)
        lines += [statement.lineno] * (len(calls) - len(lines))
    for (rule, arguments), line in zip(calls, lines):
        if rule in NOT_TARGETS:
            continue
        listed = {key: [absolute(label, package) for label in arguments.get(key) or []]
                  for key in ("srcs", "deps", *HEADER_LISTS)}
        headers = [path_of(label) for key in HEADER_LISTS for label in listed[key]]
        files = [path_of(label) for label in listed["srcs"]] + headers
        if "proto" in arguments:  # Its sources are made of those of the proto_library.
            listed["deps"].append(absolute(arguments["proto"], package))
        yield Target(f"//{package}:{arguments['name']}", line, files, headers, listed["deps"])


def generated_headers(target, targets):
    """The headers that the C++ rules for messages and services make of a .proto file."""
    for label in target.deps if target.label.endswith(("_cc_proto", "_cc_grpc")) else ():
        ending = ".grpc.pb.h" if target.label.endswith("_cc_grpc") else ".pb.h"
        for source in targets[label].files if label in targets else ():
            if source.endswith(".proto"):
                yield source[:-len(".proto")] + ending


def offences_of(target, provided, includes):
    """What is wrong with one target; `provided` are the headers of each, `includes` those that each
    file that is there includes."""
    own = set(target.files) | provided[target.label]
    included = {header: path for path in target.files for header in includes.get(path, ())}
    deps = [dep for dep in target.deps if dep in provided]
    reachable = own.union(*(provided[dep] for dep in deps))
    for header, path in sorted(included.items()):
        owners = [label for label, headers in provided.items() if header in headers]
        if owners and header not in reachable:
            yield f"{target.label} includes {header} in {path} without depending on {min(owners)}"
    # What a generated file includes is not known here.
    is_known = target.files and all(path in includes for path in target.files)
    for dep in deps if is_known else ():
        if provided[dep] and not provided[dep] & (set(included) | own):
            yield f"{target.label} depends on {dep} and includes nothing of it"


def files_and_includes(root, targets):
    """What the files of the targets include, by path; without those that Bazel generates."""
    for path in {path for target in targets for path in target.files}:
        if (root / path).is_file():
            text = (root / path).read_text(encoding="utf-8")
            yield path, {header for _, header in layering.includes(text.splitlines())}


def offences(root):
    """All offences in a repository, as (path of the BUILD file, line, message)."""
    targets = {}
    for build in sorted(root.glob("*/**/BUILD")):
        package = build.parent.relative_to(root).as_posix()
        if package.split("/")[0] in layering.PROJECT and "node_modules" not in package:
            for target in parse_build(package, build.read_text(encoding="utf-8")):
                targets[target.label] = target
    provided = {label: set(target.headers) | set(generated_headers(target, targets))
                for label, target in targets.items()}
    includes = dict(files_and_includes(root, targets.values()))
    for label, target in targets.items():
        package = label[len("//"):label.index(":")]
        for message in offences_of(target, provided, includes):
            yield f"{package}/BUILD", target.line, message

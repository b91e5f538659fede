#!/usr/bin/env python3
"""Checks what no compiler checks: the layering, sizes, include guards, markers left in the text.

Run from anywhere; prints one `path:line: message` for each offence and exits 1 if there is any.
"""
import os
import pathlib
import re
import sys

FOLDERS = ("proto", "server", "worker", "common", "deploy", "tests", ".ci")
CODE_SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
TEXT_SUFFIXES = CODE_SUFFIXES | {".py", ".sh", ".bzl", ".proto", ".yaml", ".errors", ".md", ".ts", ""}
SKIPPED_FOLDERS = {"node_modules", "__pycache__", "dist"}

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
README_LINES_MAX = {"tests/README.md": 60}
README_LINES_MAX_ELSEWHERE = 40

# Code that only decides: whatever it needs from the world is an argument.
PURE = ("common/base", "common/policy", "common/kernels", "common/layout", "common/model",
        "common/run", "common/protocol", "server/core", "worker/core",
        "worker/model")

# Folder, and the project's folders that its files must not include. The first entry that is the
# folder or lies above it counts; `main` stands for the files directly in server/ and worker/.
FORBIDDEN = (
    ("common/base", ("common", "server", "worker", "deploy", "tests", "proto")),
    ("common", ("server", "worker", "deploy", "tests")),
    ("server/core", ("server/service", "server/storage", "worker", "deploy", "tests")),
    ("server/storage", ("server/service", "worker", "deploy", "tests")),
    ("server", ("worker", "deploy", "tests")),
    ("worker/core", ("worker/client", "worker/compute", "worker/data", "server", "deploy", "tests")),
    ("worker/model", ("worker/client", "worker/compute", "worker/data", "server", "deploy", "tests")),
    ("worker/compute", ("worker/client", "worker/data", "server", "deploy", "tests")),
    ("worker/data", ("worker/client", "worker/compute", "server", "deploy", "tests")),
    ("worker", ("server", "deploy", "tests")),
    ("deploy", ("server", "worker", "tests")),
)

# The shells that speak protobuf and gRPC; a main in server/ or worker/ wires them.
KNOW_PROTO = ("common/wire", "server/service", "worker/client", "deploy/psctl", "tests", "main")
KNOW_GRPC = KNOW_PROTO + ("common/rpc",)

IMPURE_HEADER = re.compile(
    r"(thread|future|condition_variable|mutex|shared_mutex|semaphore|latch|barrier|chrono|random"
    r"|iostream|fstream|filesystem|stdio\.h|unistd\.h|pthread\.h|poll\.h|signal\.h|sys/.*|csignal"
    r"|spdlog/.*|grpc/.*|grpcpp/.*|google/protobuf/.*|proto/.*|zlib\.h|CLI/.*|yaml-cpp/.*"
    r"|nlohmann/.*|oneapi/.*|openssl/.*|absl/time/clock\.h|absl/synchronization/.*)$")
IMPURE_CALL = re.compile(
    r"::now\(|\babsl::Now\(|\brandom_device\b|\bgetenv\(|\bfopen\(|\bstd::(cout|cerr|clog|rand)\b"
    r"|\b(time|clock)\((nullptr|NULL|0)?\)")
# What the pure base is made of: the annotated lock and the check that ends the process.
PURE_EXCEPT = {"common/base/mutex.h", "common/base/check.h"}

SLEEP = re.compile(r"\bsleep_(for|until)\b|\bSleepFor\b|\bu?sleep\(|\bnanosleep\(")
VAGUE_NAME = re.compile(r"\b(?:class|struct)\s+(\w*(?:Manager|Helper|Util|Utils))\b")
# In two pieces, or this file would offend.
MARKER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')
NOT_A_FUNCTION = re.compile(r"\b(class|struct|union|enum|namespace|extern)\b(?![^(]*\))")


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def folder_of(path):
    folder = str(pathlib.PurePosixPath(path).parent)
    return "main" if folder in ("server", "worker") else folder


def without_comments_and_strings(text):
    """The text with comments and the contents of literals blanked; line numbers stay."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'',
        re.S)

    def blank(match):
        piece = match.group(0)
        newlines = "\n" * piece.count("\n")
        return newlines if piece.startswith("/") else '""' + newlines

    return pattern.sub(blank, text)


def include_offences(path, lines):
    folder = folder_of(path)
    pure = path not in PURE_EXCEPT and any(is_below(folder, p) for p in PURE)
    forbidden = next((down for owner, down in FORBIDDEN if is_below(path, owner)), ())
    for number, line in enumerate(lines, start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(2)
        in_project = header.split("/")[0] in FOLDERS
        target = str(pathlib.PurePosixPath(header).parent)
        if pure and IMPURE_HEADER.match(header):
            yield number, f"pure code takes time, chance, threads and I/O from its caller, not from {header}"
        elif pure and is_below(target, "common") and not any(is_below(target, p) for p in PURE):
            yield number, f"pure code may not include {header}, which is not pure"
        elif is_below(header, "proto") and not any(is_below(folder, f) for f in KNOW_PROTO):
            yield number, f"{header}: only {', '.join(KNOW_PROTO[:4])} know the protobuf messages"
        elif re.match(r"(grpcpp|grpc)/", header) and not any(is_below(folder, f) for f in KNOW_GRPC):
            yield number, f"{header}: only common/rpc and {', '.join(KNOW_PROTO[:4])} know gRPC"
        if in_project and target != folder and any(is_below(target, f) for f in forbidden):
            yield number, f"{folder} may not include {header}: includes point down only"


def call_offences(path, lines):
    pure = path not in PURE_EXCEPT and any(is_below(path, p) for p in PURE)
    for number, line in enumerate(lines, start=1):
        if pure and IMPURE_CALL.search(line):
            yield number, "pure code takes time, chance and I/O from its caller: " + line.strip()
        if not path.startswith("tests/") and SLEEP.search(line):
            yield number, "wait for what is to happen, with a deadline, instead of sleeping"
        match = VAGUE_NAME.search(line)
        if match:
            yield number, f"{match.group(1)}: name it for what it is"


def guard_offences(path, lines):
    if not path.endswith((".h", ".cuh")):
        return
    guard = "SLIPSTREAM_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"
    directives = [(n, line.split()) for n, line in enumerate(lines, start=1)
                  if re.match(r"#(ifndef|define)\b", line)][:2]
    if [d[:2] for _, d in directives] != [["#ifndef", guard], ["#define", guard]]:
        yield (directives[0][0] if directives else 1), f"the include guard is not {guard}"


def opens_function(head):
    """Whether a brace after `head`, the code since the last statement, opens a function's body."""
    return "(" in head and not NOT_A_FUNCTION.search(head.split("(")[0]) and "=" not in head.split("(")[0]


def function_offences(text):
    text = re.sub(r"\b(public|private|protected)\s*:", lambda m: " " * len(m.group(0)), text)
    stack = []  # For each open brace: the line where its function starts or None, the code before.
    head, head_line, line = "", 1, 1
    for place, character in enumerate(text):
        if character == "\n":
            line += 1
        if not head.strip():
            head_line = line
        if character == "{":
            inside = any(start is not None for start, _ in stack)
            stack.append((head_line if not inside and opens_function(head) else None, head))
            head = ""
        elif character == "}":
            start, before = stack.pop() if stack else (None, "")
            head = ""
            if start is not None and re.match(r"\s*[,{]", text[place + 1:place + 200]):
                head, head_line = before, start  # It was a member's initialiser; the body follows.
            elif start is not None and line - start + 1 > FUNCTION_LINES_MAX:
                yield start, f"function has {line - start + 1} lines, at most {FUNCTION_LINES_MAX}"
        elif character == ";":
            head = ""
        else:
            head += character


def text_offences(path, lines):
    name = pathlib.PurePosixPath(path).name
    limit = FILE_LINES_MAX
    if name == "README.md":
        limit = README_LINES_MAX.get(path, README_LINES_MAX_ELSEWHERE)
    if len(lines) > limit:
        yield 1, f"file has {len(lines)} lines, at most {limit}"
    for number, line in enumerate(lines, start=1):
        match = MARKER.search(line)
        if match:
            yield number, f"leftover {match.group(1)}"
        if name == "BUILD" and re.search(r"\bglob\(", line) and not path.startswith("deploy/"):
            yield number, "a BUILD file lists its files, without glob"


def offences(path, text):
    """All offences of one file, as (line, message); `path` is relative to the repository."""
    yield from text_offences(path, text.splitlines())
    if pathlib.PurePosixPath(path).suffix not in CODE_SUFFIXES:
        return
    # Preprocessor lines go, for a macro's braces need not match.
    code = without_comments_and_strings(text)
    plain = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group(0).count("\n"), code,
                   flags=re.M)
    yield from include_offences(path, text.splitlines())
    yield from call_offences(path, code.splitlines())
    yield from guard_offences(path, text.splitlines())
    yield from function_offences(plain)


def is_unlisted(root, path):
    """Whether it is a test, or a case of one, that its package's BUILD does not name: it would never
    run. Those outside packages are run by tests/checks."""
    is_test = path.stem.endswith("_test") and path.suffix in (".cc", ".py")
    if not is_test and path.parent.name != "golden":
        return False
    package = next((folder for folder in path.parents if (folder / "BUILD").exists()), root)
    if package == root:
        return False
    build = (package / "BUILD").read_text(encoding="utf-8")
    return re.search(rf'["/]{re.escape(path.stem)}(\.\w+)?"', build) is None


def files(root):
    for folder in FOLDERS:
        for directory, subfolders, names in os.walk(root / folder):
            subfolders[:] = sorted(set(subfolders) - SKIPPED_FOLDERS)
            for name in sorted(names):
                path = pathlib.Path(directory) / name
                if path.suffix in TEXT_SUFFIXES and path.is_file():
                    yield path


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    found = []
    for path in files(root):
        name = path.relative_to(root).as_posix()
        if is_unlisted(root, path):
            found.append(f"{name}:1: no BUILD file names it, so it is never run")
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # Data, not text.
        found += [f"{name}:{line}: {message}" for line, message in sorted(offences(name, text))]
    for offence in found:
        print(offence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

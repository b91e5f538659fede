#!/usr/bin/env python3
"""Checks what no compiler checks: layering, sizes, include guards, and markers left in the text; that
BUILD files agree with what files include, that no two types have the same name, and that links in
pages lead somewhere.

Usage, from anywhere:  tests/tidy.py [--fix]

Prints one `path:line: message` for each offence and exits 1 if there is any. With --fix it first
corrects what it can: the rules in BUILD files, as checks/build_files.py explains.
"""
import argparse
import os
import pathlib
import re
import sys

from checks import build_files, cpp_text, layering, pages, type_names

FOLDERS = ("proto", "server", "worker", "common", "deploy", "tests", ".ci")
HEADER_SUFFIXES = (".h", ".cuh")
CODE_SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
TEXT_SUFFIXES = CODE_SUFFIXES | {".py", ".sh", ".bzl", ".proto", ".yaml", ".errors", ".md", ".ts", ""}
SKIPPED_FOLDERS = {"node_modules", "__pycache__", "dist"}

# Files in these folders are data that BUILD files may list with glob().
GLOB_FOLDERS = ("deploy/", "tests/fuzz/")

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70

IMPURE_CALL = re.compile(
    r"::now\(|\babsl::Now\(|\brandom_device\b|\bgetenv\(|\bfopen\(|\bstd::(cout|cerr|clog|rand)\b"
    r"|\b(time|clock)\((nullptr|NULL|0)?\)")
SLEEP = re.compile(r"\bsleep_(for|until)\b|\bSleepFor\b|\bu?sleep\(|\bnanosleep\(")
VAGUE_NAME = re.compile(r"\b(?:class|struct)\s+(\w*(?:Manager|Helper|Util|Utils))\b")
# The markers are split in two, or this file would contain them.
MARKER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
NOT_A_FUNCTION = re.compile(r"\b(class|struct|union|enum|namespace|extern)\b(?![^(]*\))")


def call_offences(path, lines):
    pure = layering.is_pure(path)
    for number, line in enumerate(lines, start=1):
        if pure and IMPURE_CALL.search(line):
            yield number, "pure code takes time, chance and I/O from its caller: " + line.strip()
        if not path.startswith("tests/") and SLEEP.search(line):
            yield number, "wait for what is to happen, with a deadline, instead of sleeping"
        match = VAGUE_NAME.search(line)
        if match:
            yield number, f"{match.group(1)}: name it for what it is"


def guard_offences(path, lines):
    if not path.endswith(HEADER_SUFFIXES):
        return
    guard = "SLIPSTREAM_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"
    directives = [(n, line.split()) for n, line in enumerate(lines, start=1)
                  if re.match(r"#(ifndef|define)\b", line)][:2]
    if [d[:2] for _, d in directives] != [["#ifndef", guard], ["#define", guard]]:
        yield (directives[0][0] if directives else 1), f"the include guard is not {guard}"


def opens_function(head):
    """Returns whether a brace after `head`, the code since the last statement, opens a function's
    body."""
    return "(" in head and not NOT_A_FUNCTION.search(head.split("(")[0]) and "=" not in head.split("(")[0]


def function_offences(text):
    text = re.sub(r"\b(public|private|protected)\s*:", lambda m: " " * len(m.group(0)), text)
    stack = []  # Per open brace: the line where its function starts or None, the code before.
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
                head, head_line = before, start  # A member's initialiser: the body follows.
            elif start is not None and line - start + 1 > FUNCTION_LINES_MAX:
                yield start, f"function has {line - start + 1} lines, at most {FUNCTION_LINES_MAX}"
        elif character == ";":
            head = ""
        else:
            head += character


def text_offences(path, lines):
    name = pathlib.PurePosixPath(path).name
    is_made = any("wrote this file" in line for line in lines[:12])  # By a program; nobody edits it.
    if len(lines) > FILE_LINES_MAX and not name.endswith(".md") and not is_made:
        yield 1, f"file has {len(lines)} lines, at most {FILE_LINES_MAX}"
    for number, line in enumerate(lines, start=1):
        match = MARKER.search(line)
        if match:
            yield number, f"leftover {match.group(1)}"
        if name == "BUILD" and re.search(r"\bglob\(", line) and not path.startswith(GLOB_FOLDERS):
            yield number, "a BUILD file lists its files, without glob"


def offences(path, text):
    """Yields all offences of one file, as (line, message). `path` is relative to the repository."""
    yield from text_offences(path, text.splitlines())
    if pathlib.PurePosixPath(path).suffix not in CODE_SUFFIXES:
        return
    code = cpp_text.without_comments_and_strings(text)
    yield from layering.offences(path, text.splitlines())
    yield from call_offences(path, code.splitlines())
    yield from guard_offences(path, text.splitlines())
    yield from function_offences(cpp_text.without_directives(code))


def is_unlisted(root, path):
    """Returns whether the file is a test, or a case of one, that its package's BUILD does not name:
    such a test would never run. tests/checks runs the tests outside packages."""
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


def repository_offences(root):
    """Yields the offences that concern several files, as (path, line, message)."""
    yield from build_files.offences(root)
    yield from type_names.offences(
        (path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        for path in files(root) if path.suffix in HEADER_SUFFIXES)
    for path in [root / "README.md", *files(root)]:
        if path.suffix == ".md":
            for line, message in pages.offences(root, path):
                yield path.relative_to(root).as_posix(), line, message


def main():
    parser = argparse.ArgumentParser(description="Checks what no compiler checks.")
    parser.add_argument("--fix", action="store_true", help="write the rules in BUILD files anew")
    root = pathlib.Path(__file__).resolve().parent.parent
    if parser.parse_args().fix:
        for path in build_files.fix(root):
            print(f"{path}: written")
    found = [f"{path}:{line}: {message}" for path, line, message in repository_offences(root)]
    for path in files(root):
        name = path.relative_to(root).as_posix()
        if is_unlisted(root, path):
            found.append(f"{name}:1: no BUILD file names it, so it is never run")
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # The file is data, not text.
        found += [f"{name}:{line}: {message}" for line, message in sorted(offences(name, text))]
    for offence in found:
        print(offence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

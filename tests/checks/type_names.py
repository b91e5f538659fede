"""Finds two classes of one name. The project is one flat namespace, and a program that links both
has undefined behaviour, which the linker does not report.

Only headers are checked: classes of a source file are in an unnamed namespace.
"""
import re

from checks import cpp_text

# A class-head before its brace: attributes in capitals, then the name, then the base classes.
CLASS = re.compile(r"\b(?:class|struct)(?:\s+[A-Z_]{4,}\b(?:\([^)]*\))?|\s+alignas\([^)]*\)"
                   r"|\s*\[\[[^\]]*\]\])*"
                   r"\s+([\w:]+)\s*(?:final\s*)?(?::[^:].*)?$", re.S)
NAMESPACE = re.compile(r"\bnamespace\s+([\w:]*)\s*$")


def types_of(text):
    """Yields the classes and structs that a header defines directly in a namespace, as (line,
    name)."""
    code = cpp_text.without_directives(cpp_text.without_comments_and_strings(text))
    scopes, begin = [], 0  # For each open brace its namespace; None if it opens something else.
    for match in re.finditer("[{};]", code):
        head = code[begin:match.start()]
        begin = match.end()
        if match.group(0) == "{":
            defined, namespace = CLASS.search(head), NAMESPACE.search(head)
            if defined and None not in scopes and not re.search(r"\benum\b", head):
                yield code.count("\n", 0, match.start()) + 1, "::".join([*scopes, defined.group(1)])
            scopes.append(namespace.group(1) if namespace else None)
        elif match.group(0) == "}":
            scopes = scopes[:-1]


def offences(headers):
    """Yields all offences in `headers`, which are pairs of path and text, as (path, line,
    message)."""
    first = {}
    for path, text in headers:
        for line, name in types_of(text):
            if name in first:
                yield path, line, f"{first[name]} defines another {name}"
            first.setdefault(name, path)

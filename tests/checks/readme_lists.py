"""Compares the headers of each folder with those that its README names.

A README tells in which order to read a folder; a header that it does not name is found by nobody.
A folder without a README of its own is told by that of the folder above.
"""
import fnmatch
import re

from checks import layering

# Every `word` counts by its last part without its ending; `*_kernels.h` names all of that form.
NAMED = re.compile(r"`([^`]+)`")
ENDING = re.compile(r"\.(h|cc|cu|cuh|proto)$")


def names(readme):
    text = re.sub(r"^```.*?^```", "", readme, flags=re.S | re.M)
    words = {word.split("/")[-1] for quoted in NAMED.findall(text)
             for word in re.split(r"[\s,]+", quoted)}
    return {ENDING.sub("", word) for word in words} - {"", "*"}


def unnamed(readme, headers):
    """Those of the headers that the text of a README does not name."""
    patterns = names(readme)
    return [header for header in headers
            if not any(fnmatch.fnmatchcase(ENDING.sub("", header), pattern) for pattern in patterns)]


def readme_of(root, folder):
    """The README that tells of a folder; None for folders of tests, which mirror those of the
    sources, and have one only where they are more than tests."""
    candidates = [folder] if layering.is_test(f"{folder}/") else [folder, folder.parent]
    return next((place / "README.md" for place in candidates
                 if (root / place / "README.md").is_file()), None)


def offences(root):
    """All offences in a repository, as (path of the README, line, message)."""
    folders = {}
    for top in layering.PROJECT:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cuh", ".proto") and "node_modules" not in path.parts:
                relative = path.relative_to(root)
                folders.setdefault(relative.parent, []).append(relative.name)
    for folder, headers in folders.items():
        readme = readme_of(root, folder)
        text = (root / readme).read_text(encoding="utf-8") if readme else ""
        if readme or not layering.is_test(f"{folder}/"):
            for header in unnamed(text, headers):
                yield (readme or folder / "README.md").as_posix(), 1, f"does not name {folder}/{header}"

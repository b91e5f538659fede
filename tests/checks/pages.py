"""Checks pages for people (Markdown): their length, and that their links lead somewhere."""
import re

# Pages that are read from top to bottom. Lists of results may be as long as they need.
LINES_MAX = 250
UNLIMITED = ("RESULTS.md",)

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"#+\s+(.+)$")
FENCE = re.compile(r"\s*```")


def outside_code(text):
    """Yields the lines outside code blocks, as (number, line)."""
    is_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield number, line


def anchor(heading):
    """Returns the name by which a link reaches a heading, as GitHub makes it."""
    plain = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return plain.replace(" ", "-")


def anchors(text):
    return {anchor(match.group(1)) for _, line in outside_code(text)
            if (match := HEADING.match(line))}


def offences(root, page):
    """Yields (line, message) for each offence in `page`, a path below `root`."""
    text = page.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    if lines > LINES_MAX and page.name not in UNLIMITED:
        yield 1, f"page has {lines} lines, at most {LINES_MAX}: split it"
    for number, line in outside_code(text):
        for target in LINK.findall(line):
            if re.match(r"\w+:", target):
                continue  # The link leads elsewhere on the web.
            path, _, fragment = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            if not there.exists() or not there.is_relative_to(root.resolve()):
                yield number, f"the link leads nowhere: {target}"
            elif fragment and fragment not in anchors(there.read_text(encoding="utf-8")):
                yield number, f"{path or page.name} has no heading #{fragment}"

"""The report: one Markdown file."""
import dataclasses
import datetime
import shlex


@dataclasses.dataclass
class Section:
    """What one part found, in lines of Markdown."""
    title: str
    lines: list
    failed: bool = False


def table(head, rows):
    """Lines of a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def text(programs, gpu, argv, sections):
    now = datetime.datetime.now(datetime.timezone.utc)
    head = ["# Slipstream on a GPU", "",
            "Written by `tests/gpu/run.sh`; figures are of this one run.", ""]
    facts = table(["", ""], [
        ("GPU", f"{gpu['name']}, {gpu['count']} of them"), ("driver", gpu["driver"]), ("memory", gpu["memory"]),
        ("date", f"{now:%Y-%m-%d %H:%M} UTC"), ("commit", programs.commit),
        ("command", "`tests/gpu/run.sh " + shlex.join(argv) + "`")])
    body = []
    for section in sections:
        verdict = ": FAILED" if section.failed else ""
        body += ["", f"## {section.title}{verdict}", "", *section.lines]
    return "\n".join(head + facts + body) + "\n"

"""Says which sources can be compiled as one, since most of the time that a source takes to compile goes
into its headers.

Two sources cannot if one uses a local name (one in an unnamed namespace) of the other, for something
of its own or of a header: the compiler would find it defined twice, or might silently take what the
other source means by it.
"""
import dataclasses
import re

from checks import cpp_text

UNNAMED_NAMESPACE = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.M | re.S)
LOCAL_NAME = re.compile(r"^(?!using |namespace |static_assert|[}\s]).*?(\w+)\s*(?:[(={;\[]|final\b|: )",
                        re.M)
ALIAS = re.compile(r"^(?:using|namespace) (?:[\w:]+::)?(\w+)(?: = [^;]+)?;", re.M)
# What follows a dot, an arrow or a scope is looked up there.
WORD = re.compile(r"(?<![\w.:>])[A-Za-z_]\w+|(?<=[^-]>)[A-Za-z_]\w+")
MACRO = re.compile(r"[A-Z][A-Z0-9_]+")  # Such as TEST: its arguments, not itself, make a name.
# A macro, a pragma and an .inc file, which may hold either, last until the end of what is compiled.
LASTS_TO_THE_END = re.compile(r'^\s*#\s*(define|undef|pragma)\b|^\s*#\s*include\s*"[^"]+\.inc"', re.M)


def code_of(text):
    return cpp_text.without_directives(cpp_text.without_comments_and_strings(text))


def local_names(path, text):
    """Returns the names in the unnamed namespaces of a source, each with what it means there: the
    whole alias, as those that are equal may be repeated, and for anything else the path."""
    names = {}
    for region in UNNAMED_NAMESPACE.findall(text):
        code = code_of(region)
        names |= {name: path for name in LOCAL_NAME.findall(code) if not MACRO.fullmatch(name)}
        names |= {match[1]: match[0] for match in ALIAS.finditer(code)}
    return names


def headers_first(texts):
    """Returns the lines that include all headers of some sources, as common/bazel/together.bzl puts them
    before these: so no header meets a local name."""
    return dict.fromkeys(line + "\n" for text in texts for line in re.findall("^#include.*", text, re.M))


@dataclasses.dataclass
class Group:
    """Sources that are compiled as one: their local names, all words in them, and their lines."""
    kind: object
    names: dict = dataclasses.field(default_factory=dict)
    words: set = dataclasses.field(default_factory=set)
    lines: int = 0
    paths: list = dataclasses.field(default_factory=list)

    def agrees(self, other):
        """Returns whether each name means the same in both."""
        return all(self.names.get(name) == other.names.get(name)
                   for name in (self.names.keys() & other.words) | (other.names.keys() & self.words))

    def add(self, other):
        self.names |= other.names
        self.words |= other.words
        self.lines += other.lines
        self.paths += other.paths


def groups(texts, lines_max, kind=lambda path: None):
    """Divides sources into lists that compile as one: each source joins the first list that has room
    for it, sources of the same `kind`, and none that uses its local names or has some that it uses.

    Args:
      texts: a dictionary from the sources' paths to their texts.
      lines_max: how many lines a list of more than one source may have.
    """
    made = []
    for path, text in texts.items():
        one = Group(kind(path), local_names(path, text), set(WORD.findall(code_of(text))),
                    text.count("\n"), [path])
        if LASTS_TO_THE_END.search(text):
            one.lines = lines_max + 1  # There is no room beside it.
        fits = (group for group in made if group.kind == one.kind
                and group.lines + one.lines <= lines_max and group.agrees(one))
        group = next(fits, None)
        if group is None:
            made.append(one)
        else:
            group.add(one)
    return [group.paths for group in made]

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
# Names of aliases are left out, as aliases may be repeated.
LOCAL_NAME = re.compile(r"^(?!using |namespace |static_assert|[}\s]).*?(\w+)\s*(?:[(={;\[]|final\b|: )",
                        re.M)
# What follows a dot, an arrow or a scope is looked up there.
WORD = re.compile(r"(?<![\w.:>])[A-Za-z_]\w+|(?<=[^-]>)[A-Za-z_]\w+")
MACRO = re.compile(r"[A-Z][A-Z0-9_]+")  # Such as TEST: its arguments, not itself, make a name.
# A macro, a pragma and an .inc file, which may hold either, last until the end of what is compiled.
LASTS_TO_THE_END = re.compile(r'^\s*#\s*(define|undef|pragma)\b|^\s*#\s*include\s*"[^"]+\.inc"', re.M)


def code_of(text):
    return cpp_text.without_directives(cpp_text.without_comments_and_strings(text))


def local_names(text):
    """Returns the names in the unnamed namespaces of a source."""
    return {name for region in UNNAMED_NAMESPACE.findall(text)
            for name in LOCAL_NAME.findall(code_of(region)) if not MACRO.fullmatch(name)}


@dataclasses.dataclass
class Group:
    """Sources that are compiled as one: their local names, all words in them, and their lines."""
    kind: object
    names: set = dataclasses.field(default_factory=set)
    words: set = dataclasses.field(default_factory=set)
    lines: int = 0
    paths: list = dataclasses.field(default_factory=list)


def groups(texts, lines_max, kind=lambda path: None):
    """Divides sources into lists that compile as one: each source joins the first list that has room
    for it, sources of the same `kind`, and none that uses its local names or has some that it uses.

    Args:
      texts: a dictionary from the sources' paths to their texts.
      lines_max: how many lines a list of more than one source may have.
    """
    made = []
    for path, text in texts.items():
        names, words = local_names(text), set(WORD.findall(code_of(text)))
        is_alone = LASTS_TO_THE_END.search(text) is not None
        fits = (group for group in made
                if not is_alone and group.kind == (kind(path),)
                and group.lines + text.count("\n") <= lines_max
                and not group.names & words and not names & group.words)
        group = next(fits, None)
        if group is None:
            group = Group(None if is_alone else (kind(path),))
            made.append(group)
        group.names |= names
        group.words |= words
        group.lines += text.count("\n")
        group.paths.append(path)
    return [group.paths for group in made]

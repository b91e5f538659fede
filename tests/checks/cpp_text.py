"""C++ as text, without what would be taken for code; line numbers stay."""
import re


def without_comments_and_strings(text):
    """The text with comments and the contents of literals blanked."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'',
        re.S)

    def blank(match):
        piece = match.group(0)
        newlines = "\n" * piece.count("\n")
        return newlines if piece.startswith("/") else '""' + newlines

    return pattern.sub(blank, text)


def without_directives(code):
    """The code without the preprocessor's lines, for a macro's braces need not match."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group(0).count("\n"), code,
                  flags=re.M)

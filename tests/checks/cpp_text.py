"""Blanks the parts of C++ text that could be mistaken for code; line numbers stay the same."""
import re


def without_comments_and_strings(text):
    """Returns the text with comments and the contents of literals blanked."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'',
        re.S)

    def blank(match):
        piece = match.group(0)
        newlines = "\n" * piece.count("\n")
        return newlines if piece.startswith("/") else '""' + newlines

    return pattern.sub(blank, text)


def without_directives(code):
    """Returns the code without preprocessor lines, since the braces of a macro need not match."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group(0).count("\n"), code,
                  flags=re.M)

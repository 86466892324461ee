"""The words of a command line as a shell would split it, in time linear in its length.

`shlex` builds each word by adding one character at a time, which for a word of a megabyte takes minutes.
"""

import re

_WORD = re.compile(r"""(?:[^\s"'\\]++|\\.|"(?:[^"\\]|\\.)*+"|'[^']*+')++""", re.DOTALL)
_PART = re.compile(r"""([^\s"'\\]++)|\\(.)|"((?:[^"\\]|\\.)*+)"|'([^']*+)'""", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\(["\\])')


def command_words(text: str) -> list[str] | None:
    """Return the words of a command line; None where a quote is left open, as by a path that holds one."""
    if '"' not in text and "'" not in text and "\\" not in text:
        return text.split()
    words: list[str] = []
    at = 0
    for found in _WORD.finditer(text):
        if text[at : found.start()].strip():
            return None
        at = found.end()
        words.append("".join(map(_unquoted, _PART.findall(found[0]))))
    return None if text[at:].strip() else words


def _unquoted(part: tuple[str, str, str, str]) -> str:
    bare, escaped, in_double, in_single = part
    return bare or escaped or in_single or _ESCAPED_IN_QUOTES.sub(r"\1", in_double)

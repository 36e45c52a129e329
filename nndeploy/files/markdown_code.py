# SPDX-License-Identifier: Apache-2.0
"""A text of anybody's in Markdown: no reader of Markdown, HTML or a table takes a character of it for its own."""

import re

from nndeploy.errors import one_line

MAX_TEXT = 1000
_RISKY = re.compile(r"""[^\w ,=/+\-.'"():;?!%\u0080-\U0010ffff]|://|www\.|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])""")
"""What may mean something: an underscore inside of a word does not, nor do brackets that follow no others."""


def markdown_code(text: str) -> str:
    """Returns a text as an element of code, in one line of at most `MAX_TEXT` characters, each risky one an entity."""
    line = one_line(text)
    line = line if len(line) <= MAX_TEXT else line[:MAX_TEXT] + "..."
    return f"<code>{_RISKY.sub(_entities, line)}</code>"


def _entities(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(char)};" for char in found[0])

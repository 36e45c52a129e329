# SPDX-License-Identifier: Apache-2.0
"""What globs do not have that people take for a part of them."""

import re

_BRACES = re.compile(r"\{[^{}]*,[^{}]*\}")


def brace_hint(glob: str) -> str:
    """Returns what to write instead of `{a,b}`, which a shell expands and no glob does; "" where there is none."""
    return "braces are no part of globs: write one glob for each" if _BRACES.search(glob) else ""

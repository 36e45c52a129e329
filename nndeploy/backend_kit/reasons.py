# SPDX-License-Identifier: Apache-2.0
"""What a library says, as a line that people can read; without onnx, for processes that only run a library."""

from nndeploy.errors import one_line

MAX_REASON = 160


def one_line_reason(text: str) -> str:
    """Returns a library's message as one line of at most `MAX_REASON` characters."""
    text = one_line(text).strip(" .:;")
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 3] + "..."

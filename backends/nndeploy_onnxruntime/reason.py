# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's error messages -> the one line in them that tells a user something.

"[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Add(6) node with name ''"
    -> "Could not find an implementation for Add(6)"
"... Exception during initialization: /onnxruntime_src/x.h:53 T::T(const Info&) layout_ == 0 was false. Batchwise ..."
    -> "Batchwise ..."
"... Non-zero status code returned while running Pad node. Name:'/Pad' Status Message: Pad reflect: pre-pad ..."
    -> "Pad '/Pad': Pad reflect: pre-pad ..."
"""

import re

from nndeploy.backend_kit.reasons import one_line_reason
from nndeploy.errors import one_line

_NOISE = tuple(
    re.compile(pattern)
    for pattern in (
        r"^\[ONNXRuntimeError\] : \d+ : \w+ : ",
        r"^(?:Load model from \S* failed:|This is an invalid model\. |Exception during \w+: |Fatal error: )+",
        r"^In Node, \(.*\) , Error ",
        r" node with name ''",
        r"^<lambda\(\)> ",
        r"\(-1\)",
        r" in node \(\)",
        r" \(node:'' ep:'\w+'\)\..*$",
    )
)
_RUNNING = re.compile(r"^Non-zero status code returned while running (\S+) node\. Name:'(.*?)' Status Message: ")
_SOURCE = re.compile(r"^\S+\.(?:cc|h|cpp):\d+ ")
_CONDITION = re.compile(r"^.*? was false\.\s*")


def reason_of(error: Exception) -> str:
    """Returns a library's exception as one short line."""
    text = one_line(str(error))
    for noise in _NOISE:
        text = noise.sub("", text)
    node = _RUNNING.match(text)
    text = _RUNNING.sub("", text)
    if _SOURCE.match(text):
        text = _CONDITION.sub("", _after_signature(_SOURCE.sub("", text)))
    said = one_line_reason(text) or type(error).__name__
    if node is None:
        return said
    return f"{node[1]} {node[2]!r}: {said}" if node[2] else f"{node[1]}: {said}"


def _after_signature(text: str) -> str:
    """Returns what follows the C++ signature at the start of `text`."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == ")" and depth == 0:
            rest = text[at + 1 :].removeprefix(" const").strip()
            return re.sub(r"^\[with [^\]]*\]\s*", "", rest)
    return text

# SPDX-License-Identifier: Apache-2.0
"""What TensorRT's parser and builder say -> the one line in it that tells a user something.

(antialias == 0) && "Antialiasing is not supported currently."
    -> Antialiasing is not supported currently
Invalid Node - b | ITensor::getDimensions: Error Code 4: API Usage Error (b: input has type Int32 but ... In f at c.cpp)
    -> input has type Int32 but ...
"""

import re

from nndeploy.backend_kit.reasons import one_line_reason

_QUOTED = re.compile(r'^.*&&\s*"(?P<said>[^"]+)"\s*$', re.DOTALL)
_ASSERTION = re.compile(r"^(?:Assertion failed: )?(?P<condition>[^:]+|.+?)(?:: (?P<said>[A-Z].*))?$", re.DOTALL)
_API = re.compile(r"Error Code \d+: [\w ]+? \((?P<said>.*)\)\s*$", re.DOTALL)
_WHERE = re.compile(r"\s*\bIn \S+ at \S+\.(?:cpp|h|cu):\d+.*$", re.DOTALL)
_SOURCE = re.compile(r"^(?:\[[^\]\n]*\]\s*|MyelinCheckException:\s*|\w+\.(?:cpp|h):\d+:\s*)+")
_NO_DRIVER = re.compile(r"\[checkMacros[^\n]*|[^\n]*CUDA driver version is insufficient[^\n]*")
_INVALID_NODE = re.compile(r"^Invalid Node - [^\n]*\n")
_NO_IMPORTER = re.compile(r"Plugin not found|getPluginCreatorVersion|^(?:false)?$")


def parser_reason(text: str, operator: str, node: str) -> str:
    """Returns the parser's description of an error at `node`, an `operator`, as one short line."""
    text = _NO_DRIVER.sub("", _INVALID_NODE.sub("", text)).strip()
    if _NO_IMPORTER.search(text):
        return one_line_reason(f"TensorRT has no {operator}" if operator else "TensorRT cannot parse it")
    return one_line_reason(_said(text).removeprefix(f"{node}: "))


def library_reason(text: str) -> str:
    """Returns an error of the builder or the runtime as one short line."""
    return one_line_reason(_said(_NO_DRIVER.sub("", text).strip() or text.strip()) or "it gave no reason")


def _said(text: str) -> str:
    if match := _API.search(text):
        text = match["said"]
    text = _SOURCE.sub("", _WHERE.sub("", text).strip())
    if match := _QUOTED.match(text):
        return match["said"].strip()
    if text.startswith("Assertion failed: ") and (match := _ASSERTION.match(text)):
        return match["said"] or match["condition"]
    return text

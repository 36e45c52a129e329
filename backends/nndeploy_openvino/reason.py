# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's error messages -> the one line in them that tells a user something.

A message is a pile of places in OpenVINO's source, conditions, and somewhere the sentence that matters:

    Exception from src/core/...: / Check 'false' failed at src/...: / FrontEnd API failed with OpConversionFailure: /
    Model wasn't fully converted. Summary: / -- No conversion rule found for operations: com.microsoft.QLinearAdd
        -> "No conversion rule found for operations: com.microsoft.QLinearAdd"
"""

import re

from nndeploy.backend_kit.reasons import one_line_reason

_NOISE = tuple(
    re.compile(pattern)
    for pattern in (
        r"Exception from src/",
        r"While validating ",
        r"Check '.*' failed at src/",
        r"FrontEnd API failed with \w+$",
        r"(?:Summary|Model wasn't fully converted|To facilitate the conversion)",
        r"-- Conversion is failed for: ",
        r"-- .* with a message$",
        r"(?:Loading|Converting) input model$",
    )
)
_PREFIX = re.compile(
    r"^(?:FrontEnd API failed with \w+:|--|\[CPU\]|\[ERROR\]|Unexpected:|(?:Loading|Converting) input model)\s*"
)
_OPERATION = re.compile(r"\.? Operation name: \S+$|^\w+ node with name '[^']*' ")
_CONDITION = re.compile(r"Check '(.*?)' failed at src/(\S+?):?\s", re.DOTALL)


def reason_of(error: Exception) -> str:
    """Returns a library's exception as one short line."""
    lines = [text for line in str(error).splitlines() if (text := _bare(line.strip()))]
    if lines:
        return one_line_reason(lines[0])
    if conditions := _CONDITION.findall(str(error) + " "):
        condition, place = conditions[-1]
        return one_line_reason(f"the check {condition!r} failed in {place}")
    return one_line_reason(str(error)) or type(error).__name__


def _bare(line: str) -> str:
    """Returns a line without the parts that say nothing to a user, or "" where that is all of it."""
    if any(noise.match(line.rstrip(":. ")) for noise in _NOISE):
        return ""
    return _OPERATION.sub("", _PREFIX.sub("", line))

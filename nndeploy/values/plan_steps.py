# SPDX-License-Identifier: Apache-2.0
"""The form of a step of an artifact, by which its backend tells what it does: for whoever inspects a bundle.

A backend tells by a file `plan.json` whose `steps` is a list of flat objects, in the order in which they run: texts and
whole numbers by name. `kernel` and `what` say what a step is; `window` (rows x columns x channels), `buffer_bytes` and
`layout` say how a fused one works. Of this machine it may tell more: `shape`, the sizes of what a step writes,
`window_pixels` of a step that takes so many pixels at a time, `scratch_bytes` of each thread, `kept_bytes` of what a
fused step makes between its operators that never leave the cache, and `how` in words.
"""

from collections.abc import Mapping
from typing import TypeAlias

STEPS_FILE = "plan.json"
MAX_NUMBER = 1 << 63

PlanStep: TypeAlias = Mapping[str, int | str]


def step_name(step: PlanStep) -> str:
    """Returns what people call a step: what it is and, where it tells that, the value that it makes."""
    words = (step.get("what", step.get("kernel", "")), step.get("value", ""))
    return " ".join(str(word) for word in words if word)


def is_fused(step: PlanStep) -> bool:
    """Returns whether a step computes several operators window by window."""
    return "window" in step


def is_flat(step: object) -> bool:
    """Returns whether a step is texts and whole numbers by name."""
    return isinstance(step, dict) and all(_is_plain(value) for value in step.values())


def _is_plain(value: object) -> bool:
    return isinstance(value, str) or (type(value) is int and abs(value) < MAX_NUMBER)

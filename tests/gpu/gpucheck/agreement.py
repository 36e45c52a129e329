# SPDX-License-Identifier: Apache-2.0
"""Is a result the reference's? By nndeploy's own tolerances and comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nndeploy.checking.check import compare_outputs, describe_failure, tolerances
from nndeploy.values.types import type_of_value


@dataclass(frozen=True, slots=True)
class Agreement:
    """The outcome: `reason` says what is wrong, "" when nothing is; `max_abs` is over all outputs."""

    ok: bool
    max_abs: float | None
    reason: str = ""


def agreement(got: Mapping[str, Any], want: Mapping[str, Any], quantised: bool = False) -> Agreement:
    """Returns how the outputs `got` compare with the reference `want`."""
    types = {name: type_of_value(value) for name, value in want.items()}
    checks = compare_outputs("whole", "", [got], [want], types, tolerances(None, None, quantised), {})
    errors = [check.max_abs for check in checks if check.max_abs is not None]
    wrong = next((check for check in checks if not check.ok), None)
    return Agreement(wrong is None, max(errors, default=None), describe_failure(wrong) if wrong else "")


def on_host(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the outputs with arrays of a GPU copied to the host."""
    return {name: value.numpy() if hasattr(value, "__dlpack_device__") and hasattr(value, "ptr") else value
            for name, value in outputs.items()}  # fmt: skip

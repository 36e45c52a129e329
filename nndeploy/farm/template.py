# SPDX-License-Identifier: Apache-2.0
"""Texts with {model}, {target} and {variant} in them: where bundles go, and what lies apart for each model."""

import re
from collections.abc import Mapping

from nndeploy.errors import DataError, did_you_mean

PLACEHOLDERS = ("model", "target", "variant")
ONLY_VARIANT = "default"
"""What {variant} says in a batch without a matrix."""
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def check_template(text: str) -> None:
    """Checks what stands in braces.

    Raises:
        DataError: it is none of the placeholders, or a brace stands alone.
    """
    for name in _PLACEHOLDER.findall(text):
        if name not in PLACEHOLDERS:
            raise DataError(f"{{{name}}} means nothing in {text!r:.120}", hint=did_you_mean(name, PLACEHOLDERS))
    if re.search(r"[{}]", _PLACEHOLDER.sub("", text)):
        raise DataError(
            f"a brace stands alone in {text!r:.120}", hint="{model}, {target} and {variant} may stand there"
        )


def filled(text: str, names: Mapping[str, str]) -> str:
    """Returns a checked template with the names of a job in place of their placeholders."""
    return _PLACEHOLDER.sub(lambda found: names[found[1]] or ONLY_VARIANT, text)

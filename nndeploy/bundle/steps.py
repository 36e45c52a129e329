# SPDX-License-Identifier: Apache-2.0
"""What a variant of a bundle does, step by step, where its backend tells (`nndeploy.values.plan_steps`).

What is not of that form, from a bundle of anybody, is passed over; nothing is run by it.
"""

import json

from nndeploy.bundle.manifest import Variant
from nndeploy.bundle.reader import Bundle
from nndeploy.values.plan_steps import STEPS_FILE, PlanStep, is_flat

MAX_BYTES = 16 << 20


def steps_of(bundle: Bundle, variant: Variant) -> list[PlanStep]:
    """Returns the steps of a variant, none where its backend does not tell.

    Raises:
        BundleError: the file is damaged.
    """
    if STEPS_FILE not in variant.files:
        return []
    text = bundle.member(variant.files[STEPS_FILE])
    if len(text) > MAX_BYTES:
        return []
    try:
        data = json.loads(bytes(text))
    except (ValueError, RecursionError):
        return []
    steps = data.get("steps") if isinstance(data, dict) else None
    return [step for step in steps if is_flat(step)] if isinstance(steps, list) else []

# SPDX-License-Identifier: Apache-2.0
"""Steps that Python computes beside the plans of a course: of texts, and of as many elements as the data say.

    step := operator, names of its inputs, names of its outputs, attributes

Attributes stand in plan.json as they are; `made_step` checks them, and what the inputs are, once for all calls.
"""

from collections.abc import Mapping, Sequence

from nndeploy_native import found_steps, text_steps
from nndeploy_native.python_step import Kind, MadeStep, Maker, PythonStep

_MAKERS: Mapping[str, Maker] = {**text_steps.MAKERS, **found_steps.MAKERS}


def made_step(step: PythonStep, kinds: Sequence[Kind]) -> MadeStep:
    """Returns a step over inputs of these kinds.

    Raises:
        ValueError, KeyError, TypeError: there is no such step.
    """
    made = _MAKERS[step.operator](step, *kinds, **step.attributes)
    if len(made.kinds) != len(step.outputs):
        raise ValueError(f"{step.operator} with {len(step.outputs)} outputs")
    return made

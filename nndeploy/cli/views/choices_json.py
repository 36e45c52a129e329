# SPDX-License-Identifier: Apache-2.0
"""Which chain and which variants this machine took, and why not the better ones, as every answer in JSON tells it."""

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nndeploy.runtime.places import ChainChoice
    from nndeploy.runtime.select import Choice


def chain_to_json(chain: "ChainChoice") -> dict[str, Any]:
    """Returns the chain that was chosen as plain data."""
    passed_over = [dataclasses.asdict(other) for other in chain.passed_over]
    places = {submodel: place.name for submodel, place in chain.placed.items()}
    ranges = {name: str(limits) for name, limits in chain.ranges.items()}
    return {"id": chain.id, "gpu": chain.place.gpu, "places": places, "ranges": ranges, "passed_over": passed_over}


def choice_to_json(choice: "Choice") -> dict[str, Any]:
    """Returns which variant a submodel got, and why not the better ones, as plain data."""
    return {
        "submodel": choice.submodel,
        "variant": choice.variant,
        "backend": choice.backend,
        "device": choice.device,
        "isolated": choice.is_isolated,
        "passed_over": [
            {"variant": other.variant, "backend": other.backend, "reason": other.reason, "hint": other.hint}
            for other in choice.passed_over
        ],
    }

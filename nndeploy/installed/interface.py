# SPDX-License-Identifier: Apache-2.0
"""Whether a bundle can take the place of another without a change to those who call it.

It can where names, order, element types and shapes are the same, and each size that varies may be all that it could be
before. What a size is called counts for nothing, but which sizes are one does. Law: a bundle can take its own place.
"""

import json
import re
from typing import Any

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.values.types import DimRange, type_to_json

_SYMBOL = re.compile(r"[^\W\d]\w*")


def interface_text(manifest: Manifest) -> str:
    """Returns the inputs and outputs of a bundle in a line, with the sizes that vary."""

    def told(items: tuple[NamedType, ...]) -> str:
        return ", ".join(f"{one.name} {one.type}" for one in items) or "nothing"

    ranges = "".join(f", {name} in {found}" for name, found in manifest.ranges.items())
    return f"{told(manifest.inputs)} -> {told(manifest.outputs)}{ranges}"


def can_replace(old: Manifest, new: Manifest) -> bool:
    """Returns whether whoever calls the old bundle can call the new one likewise."""
    before, now = _Sizes(old), _Sizes(new)
    if before.shapes != now.shapes:
        return False
    pairs = zip(before.numbers, now.numbers, strict=True)
    return all(_holds(new.ranges.get(mine), old.ranges.get(other)) for other, mine in pairs)


def _holds(now: DimRange | None, before: DimRange | None) -> bool:
    """Returns whether a size may be all that another may be; None is any size."""
    if now is None or before is None:
        return now is None
    return now.holds(before.min) and now.holds(before.max) and (before.step % now.step == 0 or before.min == before.max)


class _Sizes:
    """The inputs and outputs of a bundle with numbers for symbols, in the order in which they come."""

    def __init__(self, manifest: Manifest) -> None:
        self._ranges = manifest.ranges
        self.numbers: dict[str, int] = {}
        items = (*manifest.inputs, None, *manifest.outputs)
        self.shapes = json.dumps([one and [one.name, self._numbered(type_to_json(one.type))] for one in items])

    def _numbered(self, data: dict[str, Any]) -> dict[str, Any]:
        inner = {key: self._numbered(value) for key, value in data.items() if isinstance(value, dict)}
        shape = data.get("shape")
        sizes = shape and [self._size(size) if isinstance(size, str) else size for size in shape]
        return {**data, **inner, "shape": sizes}

    def _size(self, text: str) -> list[str]:
        """Returns a symbol, or what a size is computed of, by numbers."""
        if text in self._ranges:
            return [self._number(text)]
        return [_SYMBOL.sub(lambda found: self._number(found[0]), text)]

    def _number(self, name: str) -> str:
        return f"#{self.numbers.setdefault(name, len(self.numbers))}"

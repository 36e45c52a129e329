# SPDX-License-Identifier: Apache-2.0
"""A thread's scratch memory, part by part: the one place where what a kernel keeps there is counted.

A kernel is told where each of its parts begins, and the strides inside, as members of its step's struct; it counts
nothing itself. Law: parts follow each other without a gap, and the last ends at `num_bytes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from nndeploy.values.size import Dim


@dataclass(frozen=True, slots=True)
class Scratch:
    """`places`: for each part the member of the struct that says where it begins, in bytes."""

    places: Mapping[str, Dim]
    num_bytes: Dim


def scratch_of(**parts: Dim) -> Scratch:
    """Returns parts of so many bytes, whole vectors each, one behind the other: part `ring` begins at `ring_at`."""
    places: dict[str, Dim] = {}
    end: Dim = 0
    for name, num_bytes in parts.items():
        places[f"{name}_at"] = end
        end = end + num_bytes
    return Scratch(places, end)

# SPDX-License-Identifier: Apache-2.0
"""What a build is made from, part by part, and the key that follows from it.

Parts are texts by name: digests, versions, options. Law: two builds with the same key were made from the same parts,
and whoever misses can be told by name what differs.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from nndeploy.files.strict_json import canonical_json

Parts: TypeAlias = Mapping[str, str]

SCHEMA = "1"
"""Raised when a key means something else, or an entry holds something else."""


def key_of(parts: Parts) -> str:
    """Returns the key, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json({"schema": SCHEMA, **parts})).hexdigest()


def differing(parts: Parts, others: Parts) -> tuple[str, ...]:
    """Returns the names of the parts that one has and the other has not, or otherwise; sorted."""
    return tuple(sorted(name for name in {*parts, *others} if parts.get(name) != others.get(name)))


def least_differing(parts: Parts, known: Iterable[Parts]) -> tuple[str, ...] | None:
    """Returns the names of the parts that differ from the nearest of `known`; None where nothing is known."""
    return min((differing(parts, other) for other in known), key=len, default=None)

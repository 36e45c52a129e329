# SPDX-License-Identifier: Apache-2.0
"""What a build is made from, part by part, and the key that follows from it.

Parts are texts by name: digests, versions, options. Law: two builds with the same key were made from the same parts,
and whoever misses can be told by name what differs.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from nndeploy.files.strict_json import canonical_json

Parts: TypeAlias = Mapping[str, str]

PACKAGE = "tool:"
"""What the names of parts begin with that are packages."""
SCHEMA = "1"
"""Raised when a key means something else, or an entry holds something else."""


def key_of(parts: Parts) -> str:
    """Returns the key, 64 hexadecimal digits; packages, which are many and seldom change, are hashed once."""
    packages, others = [], {}
    for name, text in parts.items():
        if name.startswith(PACKAGE):
            packages.append((name, text))
        else:
            others[name] = text
    made_of = {"schema": SCHEMA, "packages": _digest(tuple(packages)), **others}
    return hashlib.sha256(canonical_json(made_of)).hexdigest()


@lru_cache(maxsize=8)
def _digest(items: tuple[tuple[str, str], ...]) -> str:
    return hashlib.sha256(canonical_json(dict(items))).hexdigest()


def differing(parts: Parts, others: Parts) -> tuple[str, ...]:
    """Returns the names of the parts that one has and the other has not, or otherwise; sorted."""
    return tuple(sorted(name for name in {*parts, *others} if parts.get(name) != others.get(name)))


def least_differing(parts: Parts, known: Iterable[Parts]) -> tuple[str, ...] | None:
    """Returns the names of the parts that differ from the nearest of `known`; None where nothing is known."""
    return min((differing(parts, other) for other in known), key=len, default=None)

# SPDX-License-Identifier: Apache-2.0
"""What class a difference between two bundles is of, for reviews: what it may change.

Where more than one class fits, it is the first of `CLASSES`: nothing that may change an output is called less. The same
content under another name, or stored in another way, is of the class `BYTES`.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from nndeploy.bundle.manifest import Manifest

NUMBERS, PLACEMENT, BYTES, PROVENANCE = "numbers", "placement", "bytes", "provenance"
CLASSES = (NUMBERS, PLACEMENT, BYTES, PROVENANCE)
"""What the outputs may be; who runs what; how the same content is stored; where it comes from."""

REPORT = "report.json"
_OF_PART = {
    **dict.fromkeys(("submodel", "boundary", "chain", "place", "placing", "library of delays", "amounts"), PLACEMENT),
    "range of a chain": PLACEMENT,
    **dict.fromkeys(("model", "provenance", "signature"), PROVENANCE),
    "stored": BYTES,
}
"""What is not here is of the class `NUMBERS`: what the program reads and gives, and how it is judged."""
_OF_FIELD = {
    **dict.fromkeys(("id", "backend", "target", "requires", "native_code"), PLACEMENT),
    "files": BYTES,
    "deterministic": PROVENANCE,
    "version": PROVENANCE,
}
"""Fields of a variant that both bundles have; what is not here is what its backend reads, of the class `NUMBERS`."""
_IN_BOTH = {"max error": PROVENANCE, "check": PROVENANCE, "value": NUMBERS}
"""What goes with submodels: what only one bundle has is of a submodel or variant that only that one has. An error that
was measured follows from all else, the machine and the samples: it is never the cause."""


class Owner(NamedTuple):
    """Whose file a member is; another bundle may call the variant otherwise."""

    submodel: str
    backend: str
    target: str
    file: str = ""


class Classes:
    """Tells the classes of the differences between two bundles, by their manifests, and whose files members are."""

    def __init__(self, a: "Manifest", b: "Manifest") -> None:
        self._manifests = (a, b)
        self._owners = (dict(_owners(a)), dict(_owners(b)))
        self._variants = [{owner._replace(file="") for owner in owners.values()} for owners in self._owners]
        self._contents = [{a.real(name).sha256 for name in a.members} for a in self._manifests]

    def owner(self, member: str) -> Owner | None:
        """Returns whose file a member is; None where it is no variant's."""
        return self._owners[1].get(member) or self._owners[0].get(member)

    def of(self, part: str, name: str, a: Any, b: Any) -> str:
        """Returns the class of what differs in a part; `a` or `b` is None where only the other bundle has it."""
        is_in_one = a is None or b is None
        if part == "member":
            return self._of_member(name, a is not None, b is not None)
        if part == "variant":
            return PLACEMENT if is_in_one else _of_variant(a, b)
        if part in _IN_BOTH:
            return PLACEMENT if is_in_one else _IN_BOTH[part]
        if part == "node":
            return NUMBERS if is_in_one and not self._is_of_one_chain(name) else PLACEMENT
        return _OF_PART.get(part.partition(".")[0], NUMBERS)

    def _is_of_one_chain(self, node: str) -> bool:
        a, b = ({chain.id for chain in manifest.target_chains} for manifest in self._manifests)
        return any(node.startswith(f"{chain}: ") for chain in a ^ b)

    def _of_member(self, name: str, in_a: bool, in_b: bool) -> str:
        if name == REPORT:
            return PROVENANCE
        if not (in_a and in_b):
            has, lacks = (0, 1) if in_a else (1, 0)
            if self._manifests[has].real(name).sha256 in self._contents[lacks]:
                return BYTES
        owner = self.owner(name)
        if owner is None:
            return PLACEMENT if any(name == manifest.pace_operators for manifest in self._manifests) else NUMBERS
        return NUMBERS if all(owner._replace(file="") in variants for variants in self._variants) else PLACEMENT


def _owners(manifest: "Manifest") -> Iterator[tuple[str, Owner]]:
    for submodels in (manifest.submodels, *(chain.submodels for chain in manifest.target_chains)):
        for submodel in submodels:
            for variant in submodel.variants:
                for file, member in variant.files.items():
                    yield member, Owner(submodel.id, variant.backend, variant.target, file)


def changed_fields(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Returns the fields in which two variants differ, as plain data; those of their metadata by their own names."""
    more_a, more_b = a["metadata"], b["metadata"]
    fields = [name for name in a if name != "metadata" and a[name] != b.get(name)]
    return fields + [name for name in {**more_a, **more_b} if more_a.get(name) != more_b.get(name)]


def _of_variant(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    own_version = {a["backend"]: PROVENANCE}  # a backend may note its library's version under its own name
    found = {(_OF_FIELD | own_version).get(field, NUMBERS) for field in changed_fields(a, b)}
    return min(found, key=CLASSES.index, default=BYTES)

# SPDX-License-Identifier: Apache-2.0
"""What the bytes of a bundle are for, member by member, told by its manifest alone: why it is as large as it is.

A manifest comes in, rows go out, the largest first. Law: the sizes of the rows are those of all members.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_check import all_submodels

WEIGHTS, PLANS, CODE, SAMPLES, OTHERS = "weights", "plans", "code", "samples", "others"
KINDS = (WEIGHTS, PLANS, CODE, SAMPLES, OTHERS)
"""What members are for: a model's constants; what is done with them; that as code; goldens; all else."""
REPEATS_LITTLE = "holds less than a quarter of what members before it hold"
LARGE_BYTES = 64 << 10
"""Smaller files, as graphs are, need no reason."""

_WEIGHTS = ("weights.bin", "model.bin", "constants.bin", "constants.safetensors")
_CODE = (".blob", ".trt", ".so", ".cubin", "plans.bin")


@dataclass(frozen=True, slots=True)
class Content:
    """A member: what it is for, the bytes that it takes, and the bytes that it really has.

    `bases` are the members of which parts of it are; `note` says why large weights stand beside others, "" where that
    is no question.
    """

    member: str
    what: str
    size_bytes: int
    real_bytes: int
    bases: tuple[str, ...] = ()
    note: str = ""


def contents_of(manifest: Manifest) -> tuple[Content, ...]:
    """Returns a row for each member, the largest first."""
    kinds, notes = dict(_kinds(manifest)), dict(_notes(manifest))
    rows = []
    for name, member in manifest.members.items():
        smaller = manifest.compressed.get(name)
        bases = () if smaller is None else smaller.bases
        real = manifest.real(name).size_bytes
        rows.append(Content(name, kinds.get(name, OTHERS), member.size_bytes, real, bases, notes.get(name, "")))
    return tuple(sorted(rows, key=lambda row: (-row.size_bytes, row.member)))


def bytes_by_kind(contents: tuple[Content, ...]) -> Mapping[str, int]:
    """Returns the bytes that members of each kind take, none left out."""
    return {kind: sum(row.size_bytes for row in contents if row.what == kind) for kind in KINDS}


def _kinds(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for submodel in all_submodels(manifest):
        for variant in submodel.variants:
            for file, member in variant.files.items():
                is_code = variant.native_code and file.endswith(_CODE)
                yield member, CODE if is_code else WEIGHTS if file in _WEIGHTS else PLANS
    for golden in manifest.goldens:
        yield from ((name, SAMPLES) for name in (golden.inputs, golden.outputs, golden.boundaries))
    yield from ((name, WEIGHTS) for name in (manifest.constants, *manifest.defaults.values()))


def _notes(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yields the large files that are stored whole although another variant, or the portable chain, has the weights."""
    before, portable = set[str](), {submodel.id for submodel in manifest.submodels}
    for submodel in all_submodels(manifest):
        for number, variant in enumerate(submodel.variants):
            for name in variant.files.values():
                is_whole = name not in manifest.compressed and name not in before
                is_second = number > 0 or submodel.id not in portable
                if is_second and is_whole and manifest.members[name].size_bytes >= LARGE_BYTES:
                    yield name, REPEATS_LITTLE
            before.update(variant.files.values())

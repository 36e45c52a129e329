# SPDX-License-Identifier: Apache-2.0
"""A chain that was built: its pieces with their variants, best first, and what was seen of them.

Comes in: a plan and what backends built of its pieces. Goes out: `Settled`, of which bundles are packed. Law: a
variant stands here only after it gave the right numbers, or nothing here could run it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nndeploy.bundle.report import CheckReport
from nndeploy.compiler.chains.chain_plan import ChainPlan, Piece
from nndeploy.plugin.interface import Artifact
from nndeploy.target.target import Target
from nndeploy.values.types import Value, ValueType


@dataclass(frozen=True, slots=True)
class BuiltVariant:
    """One submodel built by one backend for one target."""

    backend: str
    target: Target
    artifact: Artifact


@dataclass(frozen=True, slots=True)
class BuiltPiece:
    """A piece with its variants, best first."""

    piece: Piece
    variants: tuple[BuiltVariant, ...]

    def variant_id(self, index: int) -> str:
        """Returns the id that a variant has in the bundle."""
        return f"v{index}-{self.variants[index].backend}"


@dataclass(frozen=True, slots=True)
class Settled:
    """A plan whose every piece was built and gave the right numbers.

    `boundaries` holds for each sample the reference's value of everything that enters or leaves a piece (empty where
    no reference engine could run the model); `types` the type of each of those. `rewrites` tells how many nodes each
    backend rewrote before it built them.
    """

    plan: ChainPlan
    pieces: tuple[BuiltPiece, ...]
    boundaries: tuple[Mapping[str, Value], ...]
    types: Mapping[str, ValueType]
    checks: tuple[CheckReport, ...]
    dropped: tuple[str, ...]
    rewrites: tuple[tuple[str, int], ...] = ()


def precision_of(chains: Iterable[Settled]) -> str:
    """Returns the least precision in which a variant of some chain computes."""
    computed = {v.artifact.precision for settled in chains for built in settled.pieces for v in built.variants}
    return "bf16" if "bf16" in computed else "fp32"


def in_order(variants: Sequence[BuiltVariant]) -> tuple[BuiltVariant, ...]:
    """Returns the variants of a piece, best first: a box takes the first that it can run.

    The first was chosen, and stays the first wherever it runs. Behind it stand those that need most of a processor,
    then those that run on any; equal ones are kept once.
    """
    chosen, *others = variants
    needs = [variant for variant in variants if variant.artifact.requires.get("arch")]
    anywhere = [variant for variant in others if variant not in needs]
    needs.sort(key=lambda variant: -len(variant.artifact.requires.get("cpu_features", ())))
    kept: list[BuiltVariant] = []
    for variant in (*(() if chosen in needs else (chosen,)), *needs, *anywhere):
        built = variant.backend, variant.artifact
        number = next((i for i, other in enumerate(kept) if (other.backend, other.artifact) == built), None)
        if number is None:
            kept.append(variant)
        elif kept[number].target.is_host:
            kept[number] = variant  # it is the one for that box too, which was named
    return tuple(kept)

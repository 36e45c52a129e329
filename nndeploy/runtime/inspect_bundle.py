# SPDX-License-Identifier: Apache-2.0
"""What a bundle holds, who runs what and why, and what this machine would take and choose of it; nothing is run."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from nndeploy.bundle.manifest import Manifest, Submodel, Variant
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.bundle.report import Report, report_from_json
from nndeploy.bundle.steps import steps_of
from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import TellsSteps, TellsStepsOfShapes
from nndeploy.plugin.registry import backend, is_installed
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.places import ChainChoice, choose_chain
from nndeploy.runtime.select import Choice, choose
from nndeploy.runtime.value_shapes import Shape, shapes_of_inputs, shapes_of_values
from nndeploy.trust.signatures import UNSIGNED, Signed, signed_as
from nndeploy.values.plan_steps import PlanStep, is_flat

_Shapes: TypeAlias = Mapping[str, Shape] | None


class VariantSteps(NamedTuple):
    """What a variant does step by step, where its backend tells."""

    submodel: str
    variant: str
    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """A bundle as its files say it is.

    `report_data` is the report of the compile as plain data, which `report` gives typed. `chain` and `choices` are what
    this machine would take, and why nothing better; None and empty where that was not asked for. `signed` is what its
    signatures say, whoever made them. `shapes`: of the inputs for which `steps` are told, where that was asked.
    """

    path: Path
    size_bytes: int
    manifest: Manifest
    report_data: Mapping[str, Any]
    steps: tuple[VariantSteps, ...]
    chain: ChainChoice | None = None
    choices: tuple[Choice, ...] = ()
    signed: Signed = UNSIGNED
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def report(self) -> Report:
        """The report of the compile."""
        return report_from_json(self.report_data)


def inspect(
    path: str | os.PathLike[str], *, here: bool = False, shapes: Mapping[str, Sequence[int]] | None = None
) -> Inspection:
    """Returns what a bundle holds; with `here` also which chain and variants this machine would take.

    Steps are told for `shapes` of inputs; for those that are not there `shapes_of_inputs` says which. None: for the
    least sizes.

    Raises:
        MissingInputError: there is no such file.
        BundleError: the bundle is malformed, damaged or of a newer format.
        UsageError: an input has open sizes, and `shapes` does not say which.
        InputError: it has no such shape, or no backend took it.
    """
    with open_bundle(Path(path)) as bundle:
        inputs = None if shapes is None else shapes_of_inputs(bundle, shapes)
        told = [
            VariantSteps(submodel.id, variant.id, tuple(_steps(bundle, variant, of_values, here=here)))
            for submodel, of_values in _with_shapes(bundle.manifest, inputs)
            for variant in submodel.variants
        ]
        steps = tuple(variant for variant in told if variant.steps)
        chain = choose_chain(bundle.manifest, LoadOptions()) if here else None
        choices = () if chain is None else choices_of(chain)
        size, signed = bundle.size_bytes, signed_as(bundle)
        of_inputs = inputs or {}
        return Inspection(Path(path), size, bundle.manifest, bundle.report(), steps, chain, choices, signed, of_inputs)


def _with_shapes(manifest: Manifest, inputs: Mapping[str, Shape] | None) -> Iterator[tuple[Submodel, _Shapes]]:
    """Yields each submodel of the bundle with the shapes of the values of its chain, None where nobody asks."""
    chains = [(chain.submodels, chain.values) for chain in manifest.target_chains]
    for submodels, values in [(manifest.submodels, manifest.values), *chains]:
        of_values = None if inputs is None else shapes_of_values(manifest, values, inputs)
        for submodel in submodels:
            yield submodel, of_values


def _steps(bundle: Bundle, variant: Variant, shapes: _Shapes, *, here: bool) -> Sequence[PlanStep]:
    """Returns the steps of a variant, with `here` as this machine would do them, where its backend tells."""
    if here and is_installed(variant.backend):
        with suppress(UnavailableError):
            engine = backend(variant.backend)
            files = {name: bundle.member(member) for name, member in variant.files.items()}
            found: Sequence[PlanStep] | None = None
            if shapes is not None and isinstance(engine, TellsStepsOfShapes):
                found = engine.steps_of_shapes(files, variant.metadata, shapes)
            elif isinstance(engine, TellsSteps):
                found = engine.steps_here(files, variant.metadata)
            if found is not None:
                return [step for step in found if is_flat(step)]
    return steps_of(bundle, variant)


def choices_of(chain: ChainChoice) -> tuple[Choice, ...]:
    """Returns which variant each submodel of a chain would get on this machine."""
    every = [(submodel, chain.place_of(submodel)) for submodel in chain.submodels]
    return tuple(choose(submodel, LoadOptions(), place.host, place.gpu) for submodel, place in every)

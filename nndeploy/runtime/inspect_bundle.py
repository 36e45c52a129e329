# SPDX-License-Identifier: Apache-2.0
"""What a bundle holds, who runs what and why, and what this machine would take and choose of it; nothing is run."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nndeploy.bundle.manifest import Manifest, Variant
from nndeploy.bundle.manifest_check import all_submodels
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.bundle.report import Report, report_from_json
from nndeploy.bundle.steps import steps_of
from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import TellsSteps
from nndeploy.plugin.registry import backend, is_installed
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.places import ChainChoice, choose_chain
from nndeploy.runtime.select import Choice, choose
from nndeploy.trust.signatures import UNSIGNED, Signed, signed_as
from nndeploy.values.plan_steps import PlanStep, is_flat


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
    signatures say, whoever made them.
    """

    path: Path
    size_bytes: int
    manifest: Manifest
    report_data: Mapping[str, Any]
    steps: tuple[VariantSteps, ...]
    chain: ChainChoice | None = None
    choices: tuple[Choice, ...] = ()
    signed: Signed = UNSIGNED

    @property
    def report(self) -> Report:
        """The report of the compile."""
        return report_from_json(self.report_data)


def inspect(path: str | os.PathLike[str], *, here: bool = False) -> Inspection:
    """Returns what a bundle holds; with `here` also which chain and variants this machine would take.

    Raises:
        MissingInputError: there is no such file.
        BundleError: the bundle is malformed, damaged or of a newer format.
    """
    with open_bundle(Path(path)) as bundle:
        every = [(submodel.id, variant) for submodel in all_submodels(bundle.manifest) for variant in submodel.variants]
        told = [VariantSteps(one, variant.id, tuple(_steps(bundle, variant, here=here))) for one, variant in every]
        steps = tuple(variant for variant in told if variant.steps)
        chain = choose_chain(bundle.manifest, LoadOptions()) if here else None
        choices = () if chain is None else choices_of(chain)
        size, signed = bundle.size_bytes, signed_as(bundle)
        return Inspection(Path(path), size, bundle.manifest, bundle.report(), steps, chain, choices, signed)


def _steps(bundle: Bundle, variant: Variant, *, here: bool) -> Sequence[PlanStep]:
    """Returns the steps of a variant, with `here` as this machine would do them, where its backend tells."""
    if here and is_installed(variant.backend):
        with suppress(UnavailableError):
            engine = backend(variant.backend)
            files = {name: bundle.member(member) for name, member in variant.files.items()}
            found = engine.steps_here(files, variant.metadata) if isinstance(engine, TellsSteps) else None
            if found is not None:
                return [step for step in found if is_flat(step)]
    return steps_of(bundle, variant)


def choices_of(chain: ChainChoice) -> tuple[Choice, ...]:
    """Returns which variant each submodel of a chain would get on this machine."""
    every = [(submodel, chain.place_of(submodel)) for submodel in chain.submodels]
    return tuple(choose(submodel, LoadOptions(), place.host, place.gpu) for submodel, place in every)

# SPDX-License-Identifier: Apache-2.0
"""Chooses the chain of a bundle that this machine runs, and where; says why each other was passed over.

    target chains, best first: the first GPU that meets what a chain requires, and on which it opens
    the portable chain, on the CPU: where none of them can be taken
    a chain that spans places (`nndeploy.runtime.placed_chain`): on those, or none

A chain for other GPUs than this machine's is not meant for it, as long as some other is. On a machine where no target
chain of the bundle can be taken the user is told that the portable one runs, or with `strict` that nothing does.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from nndeploy.bundle.manifest import PORTABLE, Manifest, Submodel, TargetChain
from nndeploy.cuda import cuda_unavailable, gpu_number
from nndeploy.errors import UnavailableError
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.placed_chain import Place, placed_submodels
from nndeploy.runtime.select import SessionOptions, choose
from nndeploy.target.place_limits import places_text
from nndeploy.target.target import host_target, unmet
from nndeploy.values.types import DimRange, ValueType, ranges_text

Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class ChainPassedOver:
    """A chain that was not taken; `is_loss` is False for one that was built for another kind of box."""

    chain: str
    reason: str
    hint: str = ""
    is_loss: bool = True


@dataclass(frozen=True, slots=True)
class ChainChoice:
    """The chain that runs, its submodels and the types of its values, where, and the better ones passed over.

    `placed` are the places of the submodels of a chain that spans several; of another all are at `place`. `ranges` are
    the sizes that it was built for, where the program takes any.
    """

    id: str
    submodels: tuple[Submodel, ...]
    values: Mapping[str, ValueType]
    place: Place
    passed_over: tuple[ChainPassedOver, ...] = ()
    placed: Mapping[str, Place] = field(default_factory=dict)
    ranges: Mapping[str, DimRange] = field(default_factory=dict)

    def place_of(self, submodel: Submodel) -> Place:
        """Returns where a submodel of the chain runs."""
        return self.placed.get(submodel.id, self.place)

    @property
    def where(self) -> str:
        """Where the chain runs, in words."""
        names = dict.fromkeys(place.name for place in self.placed.values())
        return ", ".join(names) or self.place.gpu or "the CPU"

    @property
    def warning(self) -> str:
        """One line where this machine should have taken a better chain, or ""."""
        losses = [other for other in self.passed_over if other.is_loss]
        if not losses:
            return ""
        better = "as the bundle places it" if losses[-1].chain == self.id else "one for a GPU"
        reasons = "; ".join(f"{other.chain}: {other.reason}" for other in losses)
        return f"the chain {self.id} runs on {self.where}, not {better}: {reasons}"


def wants_gpu(options: LoadOptions) -> bool:
    """Returns whether a GPU was asked for: then nothing runs on the portable chain in its place."""
    return options.device.startswith("cuda") or any(place.is_gpu for place in options.places)


def portable_place() -> Place:
    """Returns this machine without its GPUs."""
    return Place(replace(host_target(), gpus=()))


def choose_chain(manifest: Manifest, options: LoadOptions) -> ChainChoice:
    """Returns the chain that would be opened first; nothing is opened.

    Raises:
        UnavailableError: a GPU was asked for and no chain can use it.
    """
    return _first(manifest, options, lambda choice: choice)


def open_chain(
    manifest: Manifest, options: LoadOptions, opened: Callable[[ChainChoice], Opened]
) -> tuple[ChainChoice, Opened]:
    """Returns the best chain that opens, and what `opened` gives for it; it raises UnavailableError where it cannot.

    Raises:
        UnavailableError: no chain can be taken, or with `strict` or a named GPU none that is for GPUs.
        BundleError: a file of the chain is damaged.
    """
    return _first(manifest, options, lambda choice: (choice, opened(choice)))


def _first(manifest: Manifest, options: LoadOptions, attempt: Callable[[ChainChoice], Opened]) -> Opened:
    """Returns what `attempt` gives for the first chain and place for which it does not raise UnavailableError."""
    passed_over: list[ChainPassedOver] = []
    named_gpu = wants_gpu(options)
    wants_cpu = options.device == "cpu" or (bool(options.places) and not named_gpu)
    for chain in manifest.target_chains if not wants_cpu else ():
        refusals: list[ChainPassedOver] = []
        for choice in _choices(manifest, chain, options):
            refusal = choice if isinstance(choice, ChainPassedOver) else _why_not(choice, options)
            if refusal is None:
                assert isinstance(choice, ChainChoice)
                try:
                    return attempt(replace(choice, passed_over=tuple(passed_over)))
                except UnavailableError as err:
                    if options.strict:
                        raise
                    refusal = ChainPassedOver(chain.id, str(err), err.hint)
            refusals.append(refusal)
        passed_over.append(max(refusals, key=lambda refusal: refusal.is_loss))  # of one GPU: the one that is meant
    if named_gpu or (options.strict and passed_over):
        raise UnavailableError(_nothing_for_gpus(options, passed_over), hint=_hint(passed_over))
    return _portable(manifest, options, attempt, [replace(other, is_loss=True) for other in passed_over])


def _portable(
    manifest: Manifest,
    options: LoadOptions,
    attempt: Callable[[ChainChoice], Opened],
    passed_over: Sequence[ChainPassedOver],
) -> Opened:
    """Returns what `attempt` gives for the portable chain: on its places where this machine has them, else on the CPU.

    Raises:
        UnavailableError: the places were asked for, or it is `strict`, and this machine lacks them.
    """
    choice = ChainChoice(PORTABLE, manifest.submodels, manifest.values, portable_place(), tuple(passed_over))
    if _is_placed(manifest, PORTABLE, options):
        try:
            return attempt(replace(choice, placed=_placed(manifest, PORTABLE, manifest.submodels, options)))
        except UnavailableError as err:
            if options.places or options.strict:
                raise
            choice = replace(choice, passed_over=(*passed_over, ChainPassedOver(PORTABLE, str(err), err.hint)))
    return attempt(choice)


def _choices(manifest: Manifest, chain: TargetChain, options: LoadOptions) -> Iterator[ChainChoice | ChainPassedOver]:
    """Yields where a chain for GPUs may run, or why it cannot."""
    if not _is_placed(manifest, chain.id, options):
        for place in _places(options.device):
            yield ChainChoice(chain.id, chain.submodels, chain.values, place, ranges=chain.ranges)
        return
    try:
        placed = _placed(manifest, chain.id, chain.submodels, options)
    except UnavailableError as err:
        yield ChainPassedOver(chain.id, err.what, err.hint, is_loss=bool(host_target().gpus))
    else:
        yield ChainChoice(chain.id, chain.submodels, chain.values, portable_place(), (), placed, chain.ranges)


def _is_placed(manifest: Manifest, chain: str, options: LoadOptions) -> bool:
    """Returns whether a chain is to span places: those that were asked for, or its own where no device was."""
    return bool(options.places) or (options.device == "auto" and chain in manifest.placings)


def _placed(manifest: Manifest, chain: str, submodels: Sequence[Submodel], options: LoadOptions) -> Mapping[str, Place]:
    outputs = [output.name for output in manifest.outputs]
    return placed_submodels(manifest.placings.get(chain), submodels, outputs, options.places)


def _places(device: str) -> Iterator[Place]:
    """Yields where a chain for GPUs may run: on the GPU that was asked for, or on each of them."""
    host = host_target()
    if not host.gpus:
        yield Place(host)
        return
    named = gpu_number(device)
    numbers = range(len(host.gpus)) if named is None else [named]
    for number in numbers:
        if number >= len(host.gpus):
            raise UnavailableError(f"there is no GPU {device}, this machine has {len(host.gpus)}")
        yield Place(replace(host, gpus=(host.gpus[number],)), f"cuda:{number}")


def place_for(requires: Mapping[str, Any], kind: str) -> tuple[Place, str]:
    """Returns where on this machine an artifact of a backend of that device kind runs, or any place and why not."""
    places = list(_places("auto")) if kind == "cuda" else [portable_place()]
    reasons = [unmet(requires, place.host) for place in places]
    found = next((place for place, reason in zip(places, reasons, strict=True) if not reason), None)
    return (places[0], reasons[0]) if found is None else (found, "")


def _why_not(chain: ChainChoice, options: LoadOptions) -> ChainPassedOver | None:
    """Returns why a chain cannot be taken where it would run, or None when nothing speaks against opening it."""
    if chain.ranges and isinstance(options, SessionOptions) and options.pace:
        why = f"paced runs have one chain for all sizes, and it was built for {ranges_text(chain.ranges)}"
        return ChainPassedOver(chain.id, why, hint="compile with --shape for these sizes")
    reasons = [
        unmet(variant.requires, chain.place_of(submodel).host)
        for submodel in chain.submodels
        for variant in submodel.variants[:1]
    ]
    if reason := next(filter(None, reasons), ""):
        return ChainPassedOver(chain.id, reason, is_loss=False)
    for submodel in chain.submodels:
        place = chain.place_of(submodel)
        choice = choose(submodel, options, place.host, place.gpu)
        if not choice.variant:
            refusal = choice.passed_over[0]
            return ChainPassedOver(chain.id, f"{submodel.id} ({refusal.backend}): {refusal.reason}", refusal.hint)
    return None


def _nothing_for_gpus(options: LoadOptions, passed_over: Sequence[ChainPassedOver]) -> str:
    where = places_text(options.places) or options.device
    asked = "" if where == "auto" else f" on {where}"
    if not passed_over:
        why = cuda_unavailable()
        return f"the bundle has no chain for GPUs, so it cannot run{asked}" + (f" ({why})" if why else "")
    return f"no chain for GPUs can run{asked}: " + "; ".join(f"{other.chain}: {other.reason}" for other in passed_over)


def _hint(passed_over: Sequence[ChainPassedOver]) -> str:
    return "; ".join(dict.fromkeys(other.hint for other in passed_over if other.hint)) or "--device cpu"

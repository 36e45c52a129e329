# SPDX-License-Identifier: Apache-2.0
"""Chooses the chain of a bundle that this machine runs, and the GPU it runs on; says why each other was passed over.

    target chains, best first: the first GPU that meets what a chain requires, and on which it opens
    the portable chain, on the CPU: where none of them can be taken

A chain for other GPUs than this machine's is not meant for it, as long as some other is. On a machine where no target
chain of the bundle can be taken the user is told that the portable one runs, or with `strict` that nothing does.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from nndeploy.bundle.manifest import PORTABLE, Manifest, Submodel, TargetChain
from nndeploy.cuda import cuda_unavailable, gpu_number
from nndeploy.errors import UnavailableError
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.select import choose
from nndeploy.target.target import Target, host_target, unmet
from nndeploy.values.types import ValueType

Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chain runs: `host` is this machine with the one GPU that it may use, `gpu` that GPU ("cuda:0") or ""."""

    host: Target
    gpu: str = ""


@dataclass(frozen=True, slots=True)
class ChainPassedOver:
    """A chain that was not taken; `is_loss` is False for one that was built for another kind of box."""

    chain: str
    reason: str
    hint: str = ""
    is_loss: bool = True


@dataclass(frozen=True, slots=True)
class ChainChoice:
    """The chain that runs, its submodels and the types of its values, where, and the better ones passed over."""

    id: str
    submodels: tuple[Submodel, ...]
    values: Mapping[str, ValueType]
    place: Place
    passed_over: tuple[ChainPassedOver, ...] = ()

    @property
    def warning(self) -> str:
        """One line where this machine should have taken a better chain, or ""."""
        losses = [f"{other.chain}: {other.reason}" for other in self.passed_over if other.is_loss]
        return f"the chain {self.id} runs{_where(self.place)}, not one for a GPU: {'; '.join(losses)}" if losses else ""


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
    for chain in manifest.target_chains if options.device != "cpu" else ():
        refusals: list[ChainPassedOver] = []
        for place in _places(options.device):
            refusal = _why_not(chain, options, place)
            if refusal is None:
                try:
                    return attempt(ChainChoice(chain.id, chain.submodels, chain.values, place, tuple(passed_over)))
                except UnavailableError as err:
                    if options.strict:
                        raise
                    refusal = ChainPassedOver(chain.id, str(err), err.hint)
            refusals.append(refusal)
        passed_over.append(max(refusals, key=lambda refusal: refusal.is_loss))  # of one GPU: the one that is meant
    if options.device.startswith("cuda") or (options.strict and passed_over):
        raise UnavailableError(_nothing_for_gpus(options, passed_over), hint=_hint(passed_over))
    everywhere = tuple(replace(other, is_loss=True) for other in passed_over)
    return attempt(ChainChoice(PORTABLE, manifest.submodels, manifest.values, portable_place(), everywhere))


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


def _why_not(chain: TargetChain, options: LoadOptions, place: Place) -> ChainPassedOver | None:
    """Returns why a chain cannot be taken at a place, or None when nothing speaks against opening it."""
    reasons = [unmet(variant.requires, place.host) for submodel in chain.submodels for variant in submodel.variants[:1]]
    if reason := next(filter(None, reasons), ""):
        return ChainPassedOver(chain.id, reason, is_loss=False)
    for submodel in chain.submodels:
        choice = choose(submodel, options, place.host, place.gpu)
        if not choice.variant:
            refusal = choice.passed_over[0]
            return ChainPassedOver(chain.id, f"{submodel.id} ({refusal.backend}): {refusal.reason}", refusal.hint)
    return None


def _nothing_for_gpus(options: LoadOptions, passed_over: Sequence[ChainPassedOver]) -> str:
    asked = "" if options.device == "auto" else f" on {options.device}"
    if not passed_over:
        why = cuda_unavailable()
        return f"the bundle has no chain for GPUs, so it cannot run{asked}" + (f" ({why})" if why else "")
    return f"no chain for GPUs can run{asked}: " + "; ".join(f"{other.chain}: {other.reason}" for other in passed_over)


def _hint(passed_over: Sequence[ChainPassedOver]) -> str:
    return "; ".join(dict.fromkeys(other.hint for other in passed_over if other.hint)) or "--device cpu"


def _where(place: Place) -> str:
    return f" on {place.gpu}" if place.gpu else " on the CPU"

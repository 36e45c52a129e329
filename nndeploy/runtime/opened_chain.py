# SPDX-License-Identifier: Apache-2.0
"""The open sessions of a chain: one for each submodel, opened several at once, closed together.

A session is opened where it will run: with the streams of the program's GPUs, and on the threads of a pool of cores.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from nndeploy.bundle.manifest import Submodel
from nndeploy.bundle.reader import Bundle
from nndeploy.plugin.interface import Session
from nndeploy.runtime.code_policy import files_in
from nndeploy.runtime.core_pool import CorePool
from nndeploy.runtime.gpu_stream import GpuStreams
from nndeploy.runtime.other_sizes import NextVariant
from nndeploy.runtime.placed_chain import Place
from nndeploy.runtime.places import ChainChoice
from nndeploy.runtime.select import Choice, OpenVariant, SessionOptions, open_submodel


class OpenedChain:
    """The sessions of a chain, in order, the choices behind them, and the streams that they share on GPUs, if any.

    `next_variants` run what a session was not built for; None where a submodel has no variant behind the chosen one.
    `pools` are the pools of cores that run submodels, by submodel; without those that run on all cores.
    """

    def __init__(
        self,
        gpu_streams: GpuStreams | None,
        opened: Sequence[tuple[Session, Choice]],
        next_variants: Sequence[NextVariant | None] = (),
        pools: Mapping[str, CorePool] = {},
    ) -> None:
        """Takes the streams, the sessions and the pools over."""
        self.gpu_streams = gpu_streams
        self.sessions = tuple(session for session, _ in opened)
        self.choices = tuple(choice for _, choice in opened)
        self.next_variants = tuple(next_variants) or (None,) * len(opened)
        self.pools = pools

    def close(self) -> None:
        """Closes the sessions, gives the streams back and ends the pools."""
        with _inside(self.gpu_streams):
            for session in (*self.sessions, *filter(None, self.next_variants)):
                session.close()
        if self.gpu_streams is not None:
            self.gpu_streams.close()
        for pool in dict.fromkeys(self.pools.values()):
            pool.close()


def _inside(gpu_streams: GpuStreams | None) -> AbstractContextManager[object]:
    return gpu_streams.entered() if gpu_streams is not None else nullcontext()


def open_sessions(bundle: Bundle, chain: ChainChoice, options: SessionOptions) -> OpenedChain:
    """Opens the sessions of a chain, several at once.

    Raises:
        UnavailableError: a submodel has no variant that opens, or a GPU cannot be used.
        BundleError: a file of the chain is damaged.
    """
    submodels = [_in_order(submodel, options.variants.get(submodel.id)) for submodel in chain.submodels]
    places = {submodel.id: chain.place_of(submodel) for submodel in submodels}
    gpus = dict.fromkeys(place.gpu for place in (chain.place, *places.values()) if place.gpu)
    gpu_streams = GpuStreams(gpus) if gpus else None
    by_name = {place.pool: CorePool(place.pool, place.share) for place in set(places.values()) if place.share}
    pools = {name: by_name[place.pool] for name, place in places.items() if place.pool}

    def opened_here(submodel: Submodel) -> tuple[Session, Choice]:
        place = places[submodel.id]
        with _inside(gpu_streams):
            how = _options_at(place, options)
            opener = _opener(bundle, chain, submodel, how)
            session, choice = open_submodel(
                submodel, files_in(bundle), how, place.host, place.gpu, chain.values, opener
            )
            return session, choice if opener is None else _choice_of(session, choice)

    def opened(submodel: Submodel) -> tuple[Session, Choice]:
        pool = pools.get(submodel.id)
        return opened_here(submodel) if pool is None else pool.run(opened_here, submodel)

    results = _all_of(opened, submodels)
    sessions = [result for result in results if not isinstance(result, BaseException)]
    if error := next((result for result in results if isinstance(result, BaseException)), None):
        OpenedChain(gpu_streams, sessions, (), pools).close()
        raise error
    every = zip(submodels, sessions, strict=True)
    others = [_next_variant(bundle, chain, submodel, choice, options) for submodel, (_, choice) in every]
    return OpenedChain(gpu_streams, sessions, others, pools)


def _in_order(submodel: Submodel, first: str | None) -> Submodel:
    """Returns a submodel with one of its variants before the others; it may have none of that name."""
    return replace(submodel, variants=tuple(sorted(submodel.variants, key=lambda one: one.id != first)))


def _opener(bundle: Bundle, chain: ChainChoice, submodel: Submodel, options: SessionOptions) -> OpenVariant | None:
    """Returns what opens the variants of a submodel in processes of their own, None where none is asked for."""
    if not (options.isolates_always or (options.isolate == "auto" and options.is_stranger)):
        return None
    from nndeploy.runtime.isolation import opener_of

    return opener_of(bundle, chain, submodel, options)


def _choice_of(session: Session, choice: Choice) -> Choice:
    """Returns the choice with where the values are: another process takes and gives them on the CPU."""
    from nndeploy.runtime.isolated_session import IsolatedSession

    return replace(choice, device="cpu", is_isolated=True) if isinstance(session, IsolatedSession) else choice


def _options_at(place: Place, options: SessionOptions) -> SessionOptions:
    """Returns the options with as many threads as a pool has, where nobody says how many."""
    return replace(options, threads=place.share.num_threads) if place.share and options.threads is None else options


def _next_variant(
    bundle: Bundle, chain: ChainChoice, submodel: Submodel, choice: Choice, options: SessionOptions
) -> NextVariant | None:
    """Returns the variants behind the one that was chosen, on the CPU, where there are some."""
    number = next(i for i, variant in enumerate(submodel.variants) if variant.id == choice.variant)
    rest = replace(submodel, variants=submodel.variants[number + 1 :])
    if not rest.variants or choice.device != "cpu":
        return None

    place = chain.place_of(submodel)

    def opened() -> tuple[Session, str]:
        how = _options_at(place, options)
        opener = _opener(bundle, chain, rest, how)
        session, found = open_submodel(rest, files_in(bundle), how, place.host, types=chain.values, open_variant=opener)
        return session, found.backend

    return NextVariant(opened)


def _all_of(
    opened: Callable[[Submodel], tuple[Session, Choice]], submodels: Sequence[Submodel]
) -> list[tuple[Session, Choice] | BaseException]:
    """Returns what `opened` gives or raises for each submodel, in order."""

    def attempt(submodel: Submodel) -> tuple[Session, Choice] | BaseException:
        try:
            return opened(submodel)
        except BaseException as err:  # whatever it is, the sessions that did open are closed first
            return err

    if len(submodels) < 2:
        return [attempt(submodel) for submodel in submodels]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(submodels), os.cpu_count() or 1)) as pool:
        return list(pool.map(attempt, submodels))

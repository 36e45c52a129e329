# SPDX-License-Identifier: Apache-2.0
"""The open sessions of a chain: one for each submodel, opened several at once, closed together."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from nndeploy.bundle.manifest import Submodel
from nndeploy.bundle.reader import Bundle
from nndeploy.plugin.interface import Session
from nndeploy.runtime.code_policy import files_in
from nndeploy.runtime.gpu_stream import GpuStream
from nndeploy.runtime.other_sizes import NextVariant
from nndeploy.runtime.places import ChainChoice
from nndeploy.runtime.select import Choice, SessionOptions, open_submodel


class OpenedChain:
    """The sessions of a chain, in order, the choices behind them, and the stream that they share on a GPU, if any.

    `next_variants` run what a session was not built for; None where a submodel has no variant behind the chosen one.
    """

    def __init__(
        self,
        gpu_stream: GpuStream | None,
        opened: Sequence[tuple[Session, Choice]],
        next_variants: Sequence[NextVariant | None] = (),
    ) -> None:
        """Takes the stream and the sessions over."""
        self.gpu_stream = gpu_stream
        self.sessions = tuple(session for session, _ in opened)
        self.choices = tuple(choice for _, choice in opened)
        self.next_variants = tuple(next_variants) or (None,) * len(opened)

    def close(self) -> None:
        """Closes the sessions and gives the stream back."""
        with _inside(self.gpu_stream):
            for session in (*self.sessions, *filter(None, self.next_variants)):
                session.close()
        if self.gpu_stream is not None:
            self.gpu_stream.close()


def _inside(gpu_stream: GpuStream | None) -> AbstractContextManager[object]:
    return gpu_stream.entered() if gpu_stream is not None else nullcontext()


def open_sessions(bundle: Bundle, chain: ChainChoice, options: SessionOptions) -> OpenedChain:
    """Opens the sessions of a chain, several at once.

    Raises:
        UnavailableError: a submodel has no variant that opens, or the GPU cannot be used.
        BundleError: a file of the chain is damaged.
    """
    gpu_stream = GpuStream(chain.place.gpu) if chain.place.gpu else None

    def opened(submodel: Submodel) -> tuple[Session, Choice]:
        with _inside(gpu_stream):
            return open_submodel(submodel, files_in(bundle), options, chain.place.host, chain.place.gpu, chain.values)

    results = _all_of(opened, chain.submodels)
    sessions = [result for result in results if not isinstance(result, BaseException)]
    if error := next((result for result in results if isinstance(result, BaseException)), None):
        OpenedChain(gpu_stream, sessions).close()
        raise error
    every = zip(chain.submodels, sessions, strict=True)
    others = [_next_variant(bundle, chain, submodel, choice, options) for submodel, (_, choice) in every]
    return OpenedChain(gpu_stream, sessions, others)


def _next_variant(
    bundle: Bundle, chain: ChainChoice, submodel: Submodel, choice: Choice, options: SessionOptions
) -> NextVariant | None:
    """Returns the variants behind the one that was chosen, on the CPU, where there are some."""
    number = next(i for i, variant in enumerate(submodel.variants) if variant.id == choice.variant)
    rest = replace(submodel, variants=submodel.variants[number + 1 :])
    if not rest.variants or choice.device != "cpu":
        return None

    def opened() -> Session:
        return open_submodel(rest, files_in(bundle), options, chain.place.host, types=chain.values)[0]

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

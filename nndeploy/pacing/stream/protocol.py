# SPDX-License-Identifier: Apache-2.0
"""What a stream knows of pacing: items begin, runners work on them, items end; it never asks whether that sleeps.

`STREAM_NOT_PACED` stands where nothing is paced: items are let in as they come.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeAlias


class PacedRecord(Protocol):
    """A record of a stream, or a part of one: its place among its parts, and the item that it is of."""

    paced: "StreamItem"

    @property
    def place(self) -> int: ...
    @property
    def num_places(self) -> int: ...
    @property
    def error(self) -> Exception | None: ...


_AS_IT_IS = nullcontext()


class StreamItem:
    """An item that is under way; of this one nothing is known."""

    def working(self, stage: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Around the work of a loader or a post-processor on it, or on a part of it."""
        return _AS_IT_IS


ITEM_NOT_PACED = StreamItem()


class StreamStages(Protocol):
    """A pipeline as far as pacing knows it: its stages by name, each with its number of workers."""

    @property
    def name(self) -> str: ...
    @property
    def each(self) -> str: ...
    @property
    def loader_workers(self) -> Mapping[str, int]: ...
    @property
    def post_workers(self) -> Mapping[str, int]: ...
    @property
    def runner_stage(self) -> str: ...
    @property
    def num_runners(self) -> int: ...


class StreamLevels(Protocol):
    """The pipelines of a stream: those of a level beside each other, one level behind the other."""

    @property
    def levels(self) -> Sequence[Sequence[StreamStages]]: ...
    @property
    def pipelines(self) -> Sequence[StreamStages]: ...


Due: TypeAlias = Callable[[PacedRecord], AbstractContextManager[object]]
"""Around the run of a record by one runner."""


class StreamPacing:
    """The pacing of one stream; this one lets items in as they come."""

    def due(self, pipeline: StreamStages) -> Sequence[Due]:
        """Returns until when the runs of a pipeline may take, one for each of its runners."""
        return [nullcontext] * pipeline.num_runners

    def feed(self, *, is_live: bool) -> None:
        """Says where items come from: a live source sets a pace of its own, another one waits."""

    def next_begin_ns(self) -> int | None:
        """Returns when the next item may be let in (CLOCK_MONOTONIC), None where others must be done first."""
        return 0

    def beside(self) -> AbstractContextManager[object]:
        """Around what is done beside the items: reading the next one from the source, writing an outcome."""
        return _AS_IT_IS

    def begin(self, record: PacedRecord) -> None:
        """Says that an item was read and goes to its first stage."""

    def end(self, record: PacedRecord) -> None:
        """Says that the last stage of an item is done.

        Raises:
            UsageError: the time that was granted is less than items take without delays.
        """


STREAM_NOT_PACED = StreamPacing()

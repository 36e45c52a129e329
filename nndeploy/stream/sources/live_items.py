# SPDX-License-Identifier: Apache-2.0
"""Items of live sources: lines that come over sockets, FIFOs and files that grow; sessions that are opened again.

In comes an `Address`; out come items, numbered on over all sessions. A session is one connection, from its opening to
its end. Law: a line that has not come whole is an error of its own, and none is given out twice.
"""

import contextlib
import io
import random
from collections.abc import Callable, Iterator
from functools import partial

from nndeploy.errors import InputError, InputOutputError
from nndeploy.files.whole_files import safe_stem
from nndeploy.stream.formats.json_lines import read_lines
from nndeploy.stream.items import Item, failing
from nndeploy.stream.sources.addresses import Address
from nndeploy.stream.sources.line_items import ReadLine
from nndeploy.stream.sources.live_bytes import Listener, SocketInput, opened_bytes
from nndeploy.stream.sources.readers import SourceFigures
from nndeploy.stream.sources.source_rules import ReadRules
from nndeploy.stream.stopping import Stop
from nndeploy.values.types import Value

JITTER = 0.2
"""Part of a wait by which it is varied, so that many boxes do not knock at the same moment."""

Session = Callable[[int], Iterator[Item]]
"""Yields the items of one connection, of which the first gets the number that is given."""


def reconnected(session: Session, rules: ReadRules, stop: Stop, figures: SourceFigures) -> Iterator[Item]:
    """Yields the items of one session after the other, until one ends and may not be opened again.

    Raises:
        InputOutputError: the last one could not be opened, or was lost.
    """
    number, failures = 0, 0
    while True:
        error: InputOutputError | None = None
        try:
            for item in session(number):
                number, failures = number + 1, 0
                yield item
        except InputOutputError as err:
            error = err
        if stop.is_requested:
            return
        if failures == rules.reconnect:
            if error is not None:
                raise error
            return
        failures += 1
        figures.num_reconnects += 1
        if not stop.wait(backoff_seconds(rules, failures)):
            return


def backoff_seconds(rules: ReadRules, failures: int) -> float:
    """Returns how long to wait before a connection is opened again that failed so many times in a row."""
    wait_ns = min(rules.backoff_most_ns, rules.backoff_ns << min(failures - 1, 40))
    return wait_ns / 1e9 * random.uniform(1 - JITTER, 1)  # noqa: S311 - no secret


def live_lines(
    address: Address, read: ReadLine, rules: ReadRules, stop: Stop, figures: SourceFigures
) -> Iterator[Item]:
    """Yields an item for each line that is not blank.

    Raises:
        InputOutputError: there is nothing to connect to, or the connection was lost, and may not be opened again.
    """
    with listening(address) as listener:
        yield from reconnected(partial(_lines, address, read, stop, listener), rules, stop, figures)


@contextlib.contextmanager
def listening(address: Address) -> Iterator[Listener | None]:
    """Listens, as long as its block runs, where others are to connect."""
    if address.scheme not in ("unix-listen", "tcp-listen"):
        yield None
        return
    with contextlib.closing(Listener(address)) as listener:
        yield listener


def _lines(address: Address, read: ReadLine, stop: Stop, listener: Listener | None, first: int) -> Iterator[Item]:
    stem = safe_stem(address.path.stem or address.scheme)

    def item(number: int, load: Callable[[], dict[str, Value]]) -> Item:
        return Item(0, f"{address.shown}, line {number}", f"{stem}-{number}", load)

    with opened_bytes(address, stop, listener) as raw:
        if raw is None:
            return
        try:
            for number, (_, line) in enumerate(read_lines(io.BufferedReader(raw)), first + 1):
                if stop.is_requested:
                    return
                if isinstance(raw, SocketInput) and raw.is_cut:
                    yield item(number, failing(InputError("the connection closed in the middle of a line")))
                    return
                yield item(number, partial(read, line))
        except OSError as err:
            raise InputOutputError(f"the connection was lost: {err.strerror or err}", where=address.shown) from err

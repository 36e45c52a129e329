# SPDX-License-Identifier: Apache-2.0
"""Where the outcomes of a pipeline go: its `[[sink]]` tables and the text of `run --output` become a sink.

Without a table `--output` says all, as for a bundle alone. With one, it names the file or folder of that sink; with
several, a folder in which each has its own name. A pipeline may come out of a bundle, so it never chooses a folder.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from nndeploy.errors import DataError, UsageError, did_you_mean
from nndeploy.stream.pipeline_file import SinkTable
from nndeploy.stream.sinks import (
    FolderSink,
    JsonFileSink,
    JsonLinesSink,
    NoSink,
    SelectedSink,
    SeveralSinks,
    Sink,
    sink_from_text,
)

MakeSink = Callable[[SinkTable, Path], Sink]


def _json_lines(table: SinkTable, path: Path) -> Sink:
    _no_settings(table)
    return JsonFileSink(None, path)


def _npz(table: SinkTable, path: Path) -> Sink:
    _no_settings(table)
    return FolderSink(path)


def _no_settings(table: SinkTable) -> None:
    for key in table.settings:
        raise DataError(f"unknown key {key!r}", where=f"sink {table.name!r}", hint="known: 'kind', 'name', 'fields'")


KINDS: dict[str, tuple[MakeSink, str]] = {"json-lines": (_json_lines, ".jsonl"), "npz": (_npz, "")}
"""Kind -> how it is made, and the suffix that a file of it gets where `name` has none ("": a folder)."""


def check_sinks(tables: Sequence[SinkTable], where: str) -> None:
    """Checks the kinds of sinks.

    Raises:
        DataError: a kind is unknown.
    """
    for table in tables:
        if table.kind not in KINDS:
            hint = did_you_mean(table.kind, KINDS)
            raise DataError(f"unknown kind {table.kind!r}", where=f"{where}: sink {table.name!r}", hint=hint)


def pipeline_sink(tables: Sequence[SinkTable], last_fields: Sequence[str], text: str | None, stdout: TextIO) -> Sink:
    """Returns the sink of a pipeline; one that does not name its fields gets `last_fields`.

    Raises:
        CannotCreateError: a file or folder cannot be created.
        UsageError: the text does not go with the sinks.
    """
    if not tables:
        return SelectedSink(last_fields, sink_from_text(text, None, stdout))
    if text is None:
        return NoSink()
    if len(tables) == 1:
        return SelectedSink(tables[0].fields or last_fields, _one(tables[0], text, stdout))
    if text == "-":
        raise UsageError(f"the pipeline has {len(tables)} sinks: --output names a folder for them")
    folder, made = Path(text), list[Sink]()
    try:
        for table in tables:
            suffix = KINDS[table.kind][1]
            name = table.name if Path(table.name).suffix or not suffix else table.name + suffix
            made.append(SelectedSink(table.fields or last_fields, KINDS[table.kind][0](table, folder / name)))
    except BaseException:
        SeveralSinks(made).discard()
        raise
    return SeveralSinks(made)


def _one(table: SinkTable, text: str, stdout: TextIO) -> Sink:
    if text == "-":
        if table.kind != "json-lines":
            raise UsageError(f"a sink of {table.kind} cannot write to standard output")
        return JsonLinesSink(None, stdout)
    return KINDS[table.kind][0](table, Path(text))

# SPDX-License-Identifier: Apache-2.0
"""Where the outcomes of a pipeline go: its `[[sink]]` tables and the text of `run --output` become a sink.

Without a table `--output` says all, as for a bundle alone. With one, it names the file or folder of that sink; with
several, a folder in which each has its own name. A pipeline may come out of a bundle, so it never chooses a folder.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TextIO, get_args

from nndeploy.errors import DataError, UsageError, did_you_mean
from nndeploy.files.named_outputs import STANDARD_OUTPUT, is_stream
from nndeploy.files.toml_table import TomlTable
from nndeploy.files.whole_files import OutputFolder
from nndeploy.processors.wav_files import SampleFormat
from nndeploy.stream.pipeline.pipeline_file import SinkTable
from nndeploy.stream.sinks.csv_sink import CsvSink
from nndeploy.stream.sinks.image_sink import ImageSink
from nndeploy.stream.sinks.resumable import Resumables
from nndeploy.stream.sinks.sinks import (
    FolderSink,
    JsonFileSink,
    JsonLinesSink,
    NoSink,
    SelectedSink,
    SeveralSinks,
    Sink,
    sink_from_text,
)
from nndeploy.stream.sinks.statistics_sink import StatisticsSink
from nndeploy.stream.sinks.video_sink import VideoSink
from nndeploy.stream.sinks.wav_sink import WavSink

MakeOne = Callable[[Resumables | None], Sink]


def _json_lines(table: TomlTable, path: Path, fields: tuple[str, ...]) -> MakeOne:  # noqa: ARG001 - no settings
    return lambda resumables: SelectedSink(fields, JsonFileSink(None, path, resumables))


def _npz(table: TomlTable, path: Path, fields: tuple[str, ...]) -> MakeOne:  # noqa: ARG001 - no settings
    return lambda resumables: SelectedSink(fields, FolderSink(path, resumables))


def _csv(table: TomlTable, path: Path, fields: tuple[str, ...]) -> MakeOne:
    each = table.texts("each")
    return lambda resumables: CsvSink(path, fields, each, resumables)


def _statistics(table: TomlTable, path: Path, fields: tuple[str, ...]) -> MakeOne:  # noqa: ARG001 - no settings
    return lambda resumables: StatisticsSink(path, fields, resumables)


def _images(table: TomlTable, path: Path, fields: tuple[str, ...]) -> MakeOne:
    field, quality = _one_field(table, fields), table.whole("quality", 90, 1, 100)
    form = table.text("format", "png")
    if form not in ("png", "jpeg"):
        raise DataError(f"format must be 'png' or 'jpeg', is {form!r:.40}", where=table.where)
    kind: Literal["png", "jpeg"] = "png" if form == "png" else "jpeg"
    return lambda resumables: ImageSink(path, field, kind, quality, resumables)


def _video(table: TomlTable, path: Path, fields: tuple[str, ...]) -> MakeOne:
    field, rate_hz = _one_field(table, fields), table.number("rate-hz", 25.0, 0.01, 1000)
    return lambda _: VideoSink(path, field, rate_hz)


def _wav(table: TomlTable, path: Path, fields: tuple[str, ...]) -> MakeOne:
    if len(fields) != 2:
        hint = 'fields = ["samples", "rate"]'
        raise DataError(f"takes samples and their rate, not {len(fields)} fields", where=table.where, hint=hint)
    form: SampleFormat = table.word("format", "pcm16", get_args(SampleFormat))
    return lambda resumables: WavSink(path, fields[0], fields[1], form, resumables)


def _one_field(table: TomlTable, fields: tuple[str, ...]) -> str:
    if len(fields) != 1:
        raise DataError(f"takes one field, not {len(fields)}", where=table.where, hint='fields = ["image"]')
    return fields[0]


MakeSink = Callable[[TomlTable, Path, tuple[str, ...]], MakeOne]
"""Reads a table, and returns what makes the sink of it; only that touches the disk."""

KINDS: dict[str, tuple[MakeSink, str]] = {
    "json-lines": (_json_lines, ".jsonl"),
    "npz": (_npz, ""),
    "csv": (_csv, ".csv"),
    "statistics": (_statistics, ".json"),
    "images": (_images, ""),
    "video": (_video, ".mp4"),
    "wav": (_wav, ""),
}
"""Kind -> how it is made, and the suffix that a file of it gets where `name` has none ("": a folder)."""


def sink_fields(table: SinkTable, last_fields: Sequence[str]) -> tuple[str, ...]:
    """Returns the fields that a sink gets: those that it names, else what the last stages give."""
    return table.fields or tuple(last_fields)


def _maker(table: SinkTable, where: str, path: Path, last_fields: Sequence[str]) -> MakeOne:
    settings = TomlTable(table.settings, f"{where}: sink {table.name!r}")
    make = KINDS[table.kind][0](settings, path, sink_fields(table, last_fields))
    settings.done()
    return make


TAKES_WHAT_IS_THERE = ("json-lines", "npz")
"""The kinds that write a record without a field that others have."""


def check_sinks(
    tables: Sequence[SinkTable], last_fields: Sequence[str], where: str, may_lack: frozenset[str] = frozenset()
) -> None:
    """Checks the kinds of sinks and their settings; creates nothing. Not every record has the fields of `may_lack`.

    Raises:
        DataError: a kind or a setting is unknown or has no meaning.
    """
    for table in tables:
        if table.kind not in KINDS:
            hint = did_you_mean(table.kind, KINDS)
            raise DataError(f"unknown kind {table.kind!r}", where=f"{where}: sink {table.name!r}", hint=hint)
        _maker(table, where, Path(), last_fields)
        lacking = [name for name in sink_fields(table, last_fields) if name in may_lack]
        if lacking and table.kind not in TAKES_WHAT_IS_THERE:
            raise DataError(
                f"not every record has the field {lacking[0]!r}, which a sink of {table.kind} needs",
                where=f"{where}: sink {table.name!r}", hint=f"write it with {' or '.join(TAKES_WHAT_IS_THERE)}",
            )  # fmt: skip


def pipeline_sink(
    tables: Sequence[SinkTable],
    last_fields: Sequence[str],
    where: str,
    text: str | None,
    stdout: TextIO,
    resumables: Resumables | None = None,
) -> Sink:
    """Returns the sink of a pipeline whose sinks have been checked.

    Raises:
        CannotCreateError: a file or folder cannot be created.
        UsageError: the text does not go with the sinks.
    """
    if not tables:
        return SelectedSink(last_fields, sink_from_text(text, None, stdout, resumables))
    if text is None:
        return NoSink()
    if len(tables) == 1:
        if text not in STANDARD_OUTPUT:
            return _maker(tables[0], where, Path(named_place(tables, text)), last_fields)(resumables)
        if tables[0].kind != "json-lines":
            raise UsageError(f"a sink of {tables[0].kind} cannot write to standard output")
        return SelectedSink(sink_fields(tables[0], last_fields), JsonLinesSink(None, stdout))
    if text in STANDARD_OUTPUT:
        raise UsageError(f"the pipeline has {len(tables)} sinks: --output names a folder for them")
    made: list[Sink] = []
    OutputFolder(Path(text)).close()
    try:
        for table in tables:
            made.append(_maker(table, where, Path(text) / _file_name(table), last_fields)(resumables))  # noqa: PERF401 - for discard
    except BaseException:
        SeveralSinks(made).discard()
        raise
    return SeveralSinks(made)


def check_resumable(tables: Sequence[SinkTable], where: str, text: str | None) -> str:
    """Returns the text of `--output` if the sinks that it and the tables describe can be resumed; creates nothing.

    Raises:
        UsageError: they cannot.
    """
    if text is None or text in STANDARD_OUTPUT or is_stream(Path(text)) or (not tables and text.endswith(".npz")):
        raise UsageError("--resume needs an output of many records that stays", hint="--output x.jsonl or a folder")
    for table in tables:
        if table.kind == "video":
            raise UsageError(
                "a video cannot be resumed, as each frame is encoded with those before it",
                where=f"{where}: sink {table.name!r}", hint="let --resume write images, and make the video of them",
            )  # fmt: skip
    return text


def is_one_file(tables: Sequence[SinkTable], text: str) -> bool:
    """Returns whether `--output` names a file, not a folder."""
    if not tables:
        return Path(text).suffix in (".jsonl", ".ndjson") and not Path(text).is_dir()
    return len(tables) == 1 and KINDS[tables[0].kind][1] != ""


def named_place(tables: Sequence[SinkTable], text: str) -> str:
    """Returns what `--output` means: the file itself, also where the folder for a single sink's file is named."""
    return str(_place(tables[0], text)) if len(tables) == 1 and text not in STANDARD_OUTPUT else text


def sink_places(tables: Sequence[SinkTable], text: str) -> list[Path]:
    """Returns the files and folders that the sinks write with this `--output`; creates nothing."""
    path = Path(text)
    if len(tables) > 1:
        return [path, *(path / _file_name(table) for table in tables)]
    return [path / _file_name(tables[0]) if tables and path.is_dir() and KINDS[tables[0].kind][1] else path]


def _place(table: SinkTable, text: str) -> Path:
    """Returns where a single sink writes: a file of its own name in a folder that is there or ends in "/"."""
    path, is_file = Path(text), KINDS[table.kind][1] != ""
    if not is_file or not (text.endswith("/") or path.is_dir()):
        return path
    OutputFolder(path).close()
    return path / _file_name(table)


def _file_name(table: SinkTable) -> str:
    suffix = KINDS[table.kind][1]
    return table.name if Path(table.name).suffix or not suffix else table.name + suffix

# SPDX-License-Identifier: Apache-2.0
"""A run put together: what is loaded, where its items come from and its outcomes go, and the stream between.

bundle, pipeline -> `Loaded` -> source of the texts of inputs -> sink of the text of an output -> `Stream`
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TextIO

from nndeploy.errors import UsageError
from nndeploy.files.named_outputs import STANDARD_OUTPUT, check_no_input
from nndeploy.stream.engine.engine import Stream, StreamOptions, Summary, after
from nndeploy.stream.engine.trace import Trace
from nndeploy.stream.items import Outcome
from nndeploy.stream.pipeline.bundled_pipeline import pipeline_of_bundle, pipeline_of_path
from nndeploy.stream.pipeline.pipeline_sinks import (
    check_resumable,
    is_one_file,
    named_place,
    pipeline_sink,
    sink_places,
)
from nndeploy.stream.pipeline.pipeline_sources import Reading, pipeline_source
from nndeploy.stream.run.loaded import Loaded, fingerprint, load_alone, load_pipeline
from nndeploy.stream.run.options import Load, RunOptions
from nndeploy.stream.sinks.resumable import Resumables
from nndeploy.stream.sinks.resume import Journal, Progress, ResumedSink, journal_path
from nndeploy.stream.sinks.sinks import Sink, sink_from_text
from nndeploy.stream.sources.sources import Source, source_from_texts
from nndeploy.stream.stopping import Stop, stoppable


@dataclass(frozen=True, slots=True)
class Ends:
    """The standard streams of a run, opened when an input or output is "-", and the wish that it ends early."""

    stdin: Callable[[], BinaryIO]
    stdout: TextIO
    stop: Stop


@dataclass(frozen=True, slots=True)
class OpenRun:
    """Ready to run; `before` is how far an earlier run of the same call had come."""

    loaded: Loaded
    source: Source
    sink: Sink
    before: Progress
    stream: Stream

    def run(self, on_outcome: Callable[[Outcome], None] | None = None) -> Summary:
        """Runs it; `on_outcome` sees each outcome after the sink took it. Raises as `Stream.run` does."""
        try:
            return self.stream.run(after(self.source.items, self.before.num_records), self.sink, on_outcome)
        finally:
            self.source.close()


def opened_models(
    stack: ExitStack,
    bundle: Path | None,
    pipeline: Path | None,
    options: RunOptions,
    load: Load,
    *,
    takes_bundled_pipeline: bool = True,
) -> Loaded:
    """Returns what runs, open until `stack` ends: a pipeline, the one that the bundle carries, or the bundle alone.

    Raises:
        UsageError: neither was named, or an option has no meaning there.
        MissingInputError, UnavailableError, BundleError: a bundle cannot be loaded.
        DataError: the pipeline does not fit its models.
    """
    file = None
    if pipeline is not None:
        file = pipeline_of_path(pipeline)
    elif bundle is not None and takes_bundled_pipeline:
        file = pipeline_of_bundle(bundle)
    if file is not None:
        if options.batch > 1:
            raise UsageError("--batch is for a bundle alone", hint="write batch = N into the pipeline")
        return load_pipeline(stack, file, bundle, options, load)
    if bundle is None:
        raise UsageError("Missing argument 'BUNDLE'", hint="see nndeploy run --help")
    if options.models:
        raise UsageError("--model names a bundle of a pipeline, and there is no pipeline")
    return load_alone(stack, bundle, options, load)


def open_run(
    loaded: Loaded,
    inputs: Sequence[str],
    output: str | None,
    options: RunOptions,
    ends: Ends,
    trace: Trace | None = None,
) -> OpenRun:
    """Returns a run of what is loaded over `inputs`, the texts of `run --input`, into `output`, that of `--output`.

    Raises:
        UsageError: a text or an option has no meaning.
        MissingInputError: an input is missing.
        CannotCreateError: the output cannot be created.
    """
    source = _source(loaded, inputs, options, ends)
    try:
        _check_ends(loaded, source, inputs, output, ends)
        sink, before = _sink(loaded, source, inputs, output, options, ends)
    except BaseException:
        source.close()
        raise
    how = StreamOptions(
        options.nan,
        stop_on_error=options.on_error == "stop" or source.is_one,
        is_ordered=options.is_ordered,
        first_index=before.num_records,
        is_whole_when_stopped=source.is_live,
    )
    loaded.pacing.feed(is_live=source.is_live)
    stream = Stream(loaded.plan, loaded.runs, how, ends.stop, trace, loaded.pacing)
    stream.sources = source.figures
    return OpenRun(loaded, source, sink, before, stream)


def _source(loaded: Loaded, inputs: Sequence[str], options: RunOptions, ends: Ends) -> Source:
    """Returns where the items come from."""

    def stdin(stop: Stop) -> BinaryIO:
        return stoppable(ends.stdin(), stop)

    allow_nan = options.nan == "pass"
    if loaded.file is not None:
        if not inputs:
            raise UsageError("no input was given", hint="for example --input photos/")
        if options.max_age_ms and options.drop == "none":
            raise UsageError("--max-age-ms drops items, and --drop none drops nothing")
        drop = "oldest" if options.max_age_ms else options.drop
        reading = Reading(stdin, ends.stop, allow_nan, drop, round(options.max_age_ms * 1e6))
        return pipeline_source(loaded.file, inputs, loaded.types, reading)
    if options.drop is not None or options.max_age_ms:
        raise UsageError("--drop and --max-age-ms are for the sources of a pipeline")
    assert loaded.first is not None
    manifest = loaded.first.manifest
    if not inputs:
        name = manifest.inputs[0].name if manifest.inputs else "x"
        raise UsageError("no input was given", hint=f"for example --input {name}=@{name}.npy")
    return source_from_texts(inputs, manifest, lambda: stdin(ends.stop), allow_nan=allow_nan, stop=ends.stop)


def _check_ends(loaded: Loaded, source: Source, inputs: Sequence[str], output: str | None, ends: Ends) -> None:
    """Checks that nothing that is read is written: bundles, the pipeline, inputs, and the folders that they are in."""
    if output is None:
        return
    tables = loaded.file.sinks if loaded.file is not None else ()
    written = [Path(f"/dev/fd/{number}") for number in _descriptors(ends.stdout)]
    if output not in STANDARD_OUTPUT:
        written = sink_places(tables, output)
    read = [program.path for programs in loaded.programs.values() for program in programs]
    read += [Path(loaded.file.where)] if loaded.file is not None else []
    for text in inputs:
        named = text.partition("=")[2] or text
        read += [Path(text), Path("/dev/stdin" if named == "-" else named.removeprefix("@"))]
    check_no_input(written, chain(read, source.paths or ()))


def _descriptors(stream: TextIO) -> list[int]:
    """Returns the descriptor of a stream, none where it has none."""
    try:
        return [stream.fileno()]
    except (OSError, ValueError):
        return []


def _sink(
    loaded: Loaded, source: Source, inputs: Sequence[str], output: str | None, options: RunOptions, ends: Ends
) -> tuple[Sink, Progress]:
    """Returns where the outcomes go, and how far an earlier run had come."""
    if loaded.file is not None and output is not None:
        output = named_place(loaded.file.sinks, output)

    def made(resumables: Resumables | None) -> Sink:
        if loaded.file is None:
            manifest = loaded.first.manifest if loaded.first is not None else None
            return sink_from_text(output, manifest, ends.stdout, resumables)
        file = loaded.file
        return pipeline_sink(file.sinks, loaded.last_fields, file.where, output, ends.stdout, resumables)

    if not options.resume:
        return made(None), Progress()
    if loaded.has_sessions:
        raise UsageError("--resume and session exclude each other: the state of sessions is not stored on disk")
    if not options.is_ordered:
        raise UsageError("--resume and --unordered exclude each other: what is done is the first so many items")
    if source.paths is None:
        raise UsageError("--resume needs one source of files, which can be read again in the same order")
    tables, where = (loaded.file.sinks, loaded.file.where) if loaded.file is not None else ((), "")
    output = check_resumable(tables, where, output)
    path = journal_path(Path(output), is_file=is_one_file(tables, output))
    journal = Journal(path, fingerprint(loaded, source, inputs, output, options))
    resumables: Resumables = []
    try:
        sink = made(resumables)
        return ResumedSink(journal, resumables, sink), journal.progress
    except BaseException:
        journal.give_up()
        raise

# SPDX-License-Identifier: Apache-2.0
"""Where the outcomes of a stream go: the text of `run --output` becomes a sink.

`-` is JSON lines on stdout, `x.jsonl` JSON lines in a file, `x.npz` the outputs of one item; a pipe takes JSON lines
unless its name ends in .npz. Anything else is a folder with one file an item, `<index>_<stem>.npz`, or
`<index>_<stem>.error.json` for an item that failed or that no pipeline took. Names are made of the index and a cleaned
stem, so no input can choose where its result is written; a file appears whole or not at all.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Protocol, TextIO

from nndeploy.bundle.manifest import Manifest
from nndeploy.errors import UsageError
from nndeploy.files.named_outputs import STANDARD_OUTPUT, is_stream, new_output
from nndeploy.files.whole_files import OutputFolder, safe_stem, wrapped_io
from nndeploy.stream.formats.images import best_label
from nndeploy.stream.formats.json_lines import head_of, line_from_outcome
from nndeploy.stream.formats.npz import write_npz
from nndeploy.stream.items import Outcome
from nndeploy.stream.sinks.resumable import Resumables, output_file
from nndeploy.values.types import Value


class Sink(Protocol):
    """Takes outcomes in order. Either `finish` or `discard` is called at the end."""

    def write(self, outcome: Outcome) -> None:
        """Takes one outcome.

        Raises:
            InputOutputError: it cannot be written.
        """

    def finish(self) -> None:
        """Makes what was written visible under its name."""

    def discard(self) -> None:
        """Leaves nothing half written."""


def sink_from_text(
    text: str | None, manifest: Manifest | None, stdout: TextIO, resumables: Resumables | None = None
) -> Sink:
    """Returns the sink that `--output` describes; None is one that forgets. The manifest may name classes.

    With `resumables` it is one that may be resumed, and is appended to them: a file of lines, or a folder.

    Raises:
        CannotCreateError: the file or folder cannot be created.
        UsageError: the text has no meaning.
    """
    if text is None:
        return NoSink()
    if text in STANDARD_OUTPUT:
        return JsonLinesSink(manifest, stdout)
    path = Path(text)
    if is_stream(path) and path.suffix != ".npz":
        return JsonFileSink(manifest, path, resumables)
    if path.suffix == ".npz" and not path.is_dir():
        return NpzSink(path)
    if path.suffix in (".jsonl", ".ndjson") and not path.is_dir():
        return JsonFileSink(manifest, path, resumables)
    if path.suffix and not path.is_dir() and not text.endswith("/"):
        raise UsageError(
            f"cannot tell what {text!r} should be", hint="x.npz, x.jsonl, - or a folder (with a / at the end)"
        )
    return FolderSink(path, resumables)


class SelectedSink:
    """Hands on outcomes with some of their fields."""

    def __init__(self, fields: Sequence[str], sink: Sink) -> None:
        self._fields = tuple(fields)
        self._sink = sink
        self.finish = sink.finish
        self.discard = sink.discard

    def write(self, outcome: Outcome) -> None:
        """Writes the outcome with its fields of these names alone."""
        outputs = outcome.outputs
        if outputs is not None:
            outcome = replace(outcome, outputs={name: outputs[name] for name in self._fields if name in outputs})
        self._sink.write(outcome)


class SeveralSinks:
    """Hands every outcome to each of several sinks."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)

    def write(self, outcome: Outcome) -> None:
        """Writes the outcome to each of them."""
        for sink in self._sinks:
            sink.write(outcome)

    def finish(self) -> None:
        """Finishes each of them; where one fails, those behind it are discarded."""
        for number, sink in enumerate(self._sinks):
            try:
                sink.finish()
            except BaseException:
                for other in self._sinks[number + 1 :]:
                    other.discard()
                raise

    def discard(self) -> None:
        """Discards each of them."""
        for sink in self._sinks:
            sink.discard()


class NoSink:
    """Forgets every outcome."""

    def write(self, outcome: Outcome) -> None:
        """Does nothing."""

    def finish(self) -> None:
        """Does nothing."""

    def discard(self) -> None:
        """Does nothing."""


class NpzSink:
    """One npz file with the outputs of the only item."""

    def __init__(self, path: Path) -> None:
        self._new = new_output(path)
        self._num_written = 0

    def write(self, outcome: Outcome) -> None:
        """Writes the outputs; an error leaves no file."""
        if self._num_written:
            raise UsageError(f"{self._new.path} holds the outputs of one item", hint="give a folder, x.jsonl or -")
        if outcome.outputs is None:
            return
        self._num_written = 1
        with wrapped_io(self._new.path):
            write_npz(self._new.file, outcome.outputs)

    def finish(self) -> None:
        """Gives the file its name, if there was an item."""
        if self._num_written:
            self._new.finish()
        else:
            self._new.discard()

    def discard(self) -> None:
        """Removes the file."""
        self._new.discard()


class JsonLinesSink:
    """JSON lines on an open stream, each flushed so that a reader sees it at once."""

    def __init__(self, manifest: Manifest | None, stream: TextIO) -> None:
        self._manifest = manifest
        self._stream = stream

    def write(self, outcome: Outcome) -> None:
        """Writes one line; an OSError of the stream is the caller's."""
        self._stream.write(_line(self._manifest, outcome))
        self._stream.flush()

    def finish(self) -> None:
        """Does nothing: each line is out already."""

    def discard(self) -> None:
        """Does nothing: what a reader has seen stays."""


class JsonFileSink:
    """JSON lines in a file that appears when the stream ends."""

    def __init__(self, manifest: Manifest | None, path: Path, resumables: Resumables | None = None) -> None:
        """Begins the file; with `resumables` it may be resumed, and is appended to them.

        Raises:
            CannotCreateError: it cannot be made.
        """
        self._manifest = manifest
        self._output = output_file(path, resumables)
        self.finish = self._output.finish
        self.discard = self._output.discard

    def write(self, outcome: Outcome) -> None:
        """Writes one line."""
        with wrapped_io(self._output.path):
            self._output.file.write(_line(self._manifest, outcome).encode("ascii"))


class FolderSink:
    """A folder with the files of each item, `<index>_<stem>.npz`; of one that failed, `<index>_<stem>.error.json`."""

    SUFFIXES: ClassVar[tuple[str, ...]] = (".npz",)
    """The suffixes of the files of an item."""

    def __init__(self, path: Path, resumables: Resumables | None = None) -> None:
        """Opens or makes the folder; with `resumables` it may be resumed, and is appended to them.

        Raises:
            CannotCreateError: it cannot be made or written to.
            BusyError: another run writes into it.
        """
        self._folder = OutputFolder(path, is_own=resumables is not None)
        self._folder.claim()
        self._folder.sweep()
        self._folder.create("probe").discard()
        if resumables is not None:
            resumables.append(self)

    def write(self, outcome: Outcome) -> None:
        """Writes the outputs or the error, and removes what an earlier run left of the other kind."""
        name = f"{outcome.index:06d}_{safe_stem(outcome.stem)}"
        if outcome.outputs is not None:
            for suffix, write_to in self._files(outcome.outputs):
                self._folder.write(f"{name}{suffix}", write_to)
            self._folder.remove(f"{name}.error.json")
            return
        self._folder.write(f"{name}.error.json", partial(_write_json, head_of(outcome)))
        for suffix in self.SUFFIXES:
            self._folder.remove(f"{name}{suffix}")

    def _files(self, outputs: Mapping[str, Value]) -> Iterator[tuple[str, Callable[[BinaryIO], object]]]:
        """Yields what each file's name ends with, and what writes it."""
        yield ".npz", partial(write_npz, values=outputs)

    def finish(self) -> None:
        """Lets go of the folder."""
        self._folder.close()

    def discard(self) -> None:
        """Lets go of the folder; every file in it is whole."""
        self._folder.close()

    def resume(self, state: Mapping[str, Any]) -> None:
        """Does nothing: the files of records that are done again are replaced."""

    def checkpoint(self) -> Mapping[str, Any]:
        """Forces the files to the disk."""
        self._folder.sync()
        return {}

    def finish_again(self, state: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Does nothing but let go: every file had its name."""
        self._folder.close()


def _write_json(record: object, file: BinaryIO) -> None:
    file.write((json.dumps(record) + "\n").encode("ascii"))


def _line(manifest: Manifest | None, outcome: Outcome) -> str:
    label = best_label(manifest, outcome.outputs) if manifest and outcome.outputs is not None else None
    return line_from_outcome(outcome, label) + "\n"

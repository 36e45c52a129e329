# SPDX-License-Identifier: Apache-2.0
"""A pipeline that is open and answers: each request is one record of a stream that goes on until the service ends.

Comes in: a record with tensors for the fields of the pipeline's source, or a watched one with these fields. Goes out:
the fields of its first sink, or those that its last stages give, each a text of JSON as the sink `json-lines` writes
it: what a step gives has no declared type.

Law: a record ends once; where the stream itself fails, all that wait are told, and the pipeline is no longer sound.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue

import numpy as np

from nndeploy.bundle.manifest import NamedType
from nndeploy.errors import DataError, InputError, NndeployError, UsageError, did_you_mean
from nndeploy.processors.wav_files import mono, sound_from_bytes
from nndeploy.runtime.plain_data import plain_from_value
from nndeploy.serve.datatypes import Tensor, tensor_of
from nndeploy.serve.text_writer import text_writer
from nndeploy.serve.watched_record import WatchedRecord
from nndeploy.stream.description import default_in_flight
from nndeploy.stream.engine.engine import Stream, StreamOptions
from nndeploy.stream.formats.json_lines import data_from_json
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.pipeline.pipeline_file import PipelineFile
from nndeploy.stream.pipeline.pipeline_sinks import sink_fields
from nndeploy.stream.records import Record
from nndeploy.stream.run.loaded import Loaded
from nndeploy.stream.stopping import Stop
from nndeploy.values.types import Value, ValueType

Values = dict[str, Value]
Read = Callable[[str, bytes], Value]
"""Returns the value of a field of that name from its text."""
LOOK_SECONDS = 0.25
"""Who waits for a record looks this often whether the stream has failed."""
_TEXT = "BYTES"
_FILE = Tensor("data", _TEXT, (1,))


@dataclass(slots=True, eq=False)
class _Waiting:
    """A record whose fields go through the stream, until `done`."""

    record: Record
    fields: Values
    done: threading.Event = field(default_factory=threading.Event)


class ServedPipeline:
    """Runs records through a pipeline; many threads may call `run` at once."""

    platform = "nndeploy_pipeline"
    num_joined = 1

    def __init__(self, loaded: Loaded, stack: ExitStack) -> None:
        """Takes the pipeline over, and the stack that closes its programs.

        Raises:
            UsageError: its source has no form in the protocol.
        """
        assert loaded.file is not None
        self._stack = stack
        self.num_at_once = loaded.plan.in_flight or default_in_flight(loaded.plan)
        self.inputs, self._fields_of = _source(loaded.file, loaded.types)
        self._names = sink_fields(loaded.file.sinks[0], loaded.last_fields) if loaded.file.sinks else loaded.last_fields
        self.outputs = tuple(Tensor(name, _TEXT, (1,)) for name in self._names)
        (source,) = loaded.file.sources
        self.writer = text_writer(loaded.file, loaded.types.get(source.name, {}), self._names)
        self._let_in: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._on_way: dict[int, _Waiting] = {}
        self._failure: BaseException | None = None
        self._closing = threading.Lock()
        self._is_closed = False
        self._stop = Stop()
        self._stream = Stream(loaded.plan, loaded.runs, StreamOptions("pass", is_ordered=False), self._stop)
        self._stream.on_round = self._tell
        self._thread = threading.Thread(target=self._work, name="nndeploy pipeline", daemon=True)
        self._thread.start()

    def run(self, records: Sequence[Record]) -> None:
        """Gives each record its outputs or its error.

        Raises:
            UsageError: it is closed.
            NndeployError: what hits every record alike.
        """
        waiting = []
        for record in records:
            try:
                is_source = isinstance(record, WatchedRecord)
                waiting.append(_Waiting(record, record.fields if is_source else self._fields_of(record.fields)))
            except NndeployError as err:
                record.fail(err)
        with self._closing:  # so that nothing is let in behind the end
            if self._is_closed:
                raise UsageError("the pipeline is closed")
            for one in waiting:
                self._let_in.put(one)
        for one in waiting:
            while not one.done.wait(LOOK_SECONDS):
                if self._failure is not None:
                    raise self._failure

    @property
    def is_sound(self) -> bool:
        """Whether its stream goes on."""
        return self._failure is None

    def close(self) -> None:
        """Lets records that are on their way end, then closes the programs; a second call does nothing."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            self._let_in.put(None)
        self._thread.join()
        self._stop.close()
        self._stack.close()

    def write(self, outcome: Outcome) -> None:
        """Ends a record; the stream calls it for each outcome."""
        one = self._on_way.pop(outcome.index)
        if outcome.error is not None:
            one.record.fail(outcome.error)
        elif outcome.outputs is not None:
            one.record.add({name: _text_of(outcome.outputs.get(name)) for name in self._names})
        one.done.set()

    def finish(self) -> None:
        """Does nothing: each record was ended by itself."""

    def discard(self) -> None:
        """Does nothing: what waits is told the stream's failure."""

    def _tell(self, record: Record, is_last: bool) -> None:
        """Tells who watches a record what its loop has written; the loop ends where nobody waits any more."""
        watched = self._on_way[record.index].record
        if isinstance(watched, WatchedRecord) and not watched.watch(record.fields) and not is_last:
            record.fail(DataError("nobody waits for the text"))

    def _items(self) -> Iterator[Item]:
        index = 0
        while (one := self._let_in.get()) is not None:
            self._on_way[index] = one
            yield Item(index, "", "", partial(dict, one.fields))
            index += 1

    def _work(self) -> None:
        try:
            self._stream.run(self._items(), self)
        except BaseException as err:  # the stream has ended, and so has this
            self._failure = err


def _text_of(value: Value | None) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    text = np.empty(1, dtype=object)
    text[0] = json.dumps(None if value is None else plain_from_value(value), allow_nan=False)
    return text


def _source(
    file: PipelineFile, types: Mapping[str, Mapping[str, ValueType]]
) -> tuple[tuple[Tensor, ...], Callable[[Mapping[str, Value]], Values]]:
    """Returns the inputs of a pipeline, and what makes the fields of a record of their values.

    Raises:
        UsageError: its source has no form in the protocol.
    """
    if len(file.sources) > 1:
        raise UsageError("a pipeline with several sources cannot be served: a request is one record", where=file.where)
    (source,) = file.sources
    kind, own = source.kind or "files", types.get(source.name, {})
    match kind:
        case "files" | "images":
            return (_FILE,), lambda values: {"data": _one(values, "data")}
        case "wav":
            return (_FILE,), lambda values: _sound(_one(values, "data"))
        case "lines":
            return (Tensor("text", _TEXT, (1,)),), lambda values: {"text": _decoded("text", _one(values, "text"))}
        case "arrays" | "json-lines":
            names = source.fields or tuple(own)
            texts = {one.runner.session for one in file.levels[0] if one.runner is not None}.difference(own)
            untyped = [name for name in names if name not in own and name not in texts]
            if untyped and kind == "arrays":
                raise UsageError(f"the field {untyped[0]!r} goes into no model, so it has no type", where=file.where)
            tensors = [tensor_of(NamedType(x, own[x])) if x in own else Tensor(x, _TEXT, (1,)) for x in names]
            readers: dict[str, Read] = {name: _decoded if name in texts else _data for name in (*texts, *untyped)}
            return tuple(tensors), partial(_named, names, readers)
    raise UsageError(f"a source of the kind {kind!r} cannot be served", where=file.where, hint="images, for example")


def _one(values: Mapping[str, Value], name: str) -> bytes:
    """Returns the only element of the only input."""
    (value,) = _all_of((name,), values).values()
    return _element(name, value)


def _element(name: str, value: Value) -> bytes:
    if value.dtype.kind != "O" or value.size != 1:
        raise InputError(f"input {name!r} must be {_TEXT} [1]")
    element = value.ravel()[0]
    return element if isinstance(element, bytes) else str(element).encode("utf-8")


def _all_of(names: Sequence[str], values: Mapping[str, Value]) -> Values:
    for name in values:
        if name not in names:
            raise InputError(f"no input is named {name!r}", hint=did_you_mean(name, names))
    for name in names:
        if name not in values:
            raise InputError(f"input {name!r} is missing")
    return {name: values[name] for name in names}


def _named(names: Sequence[str], readers: Mapping[str, Read], values: Mapping[str, Value]) -> Values:
    """Returns the fields of a record, of which some are read from a text."""
    every = _all_of(names, values)
    return {name: readers[name](name, _element(name, one)) if name in readers else one for name, one in every.items()}


def _data(name: str, text: bytes) -> Value:
    """Returns what a field holds that goes into no model, in a text of JSON."""
    return data_from_json(text, f"input {name!r}", allow_nan=False)


def _decoded(name: str, text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as err:
        raise InputError(f"input {name!r} is not UTF-8: byte {err.start} is 0x{text[err.start]:02x}") from err


def _sound(data: bytes) -> Values:
    sound = sound_from_bytes(data)
    return {"samples": mono(sound.samples), "rate": sound.rate_hz}

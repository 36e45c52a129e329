# SPDX-License-Identifier: Apache-2.0
"""What a pipeline takes that writes texts: a prompt or messages in the only field of its source, and sampling."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from nndeploy.errors import InputError
from nndeploy.processors.sampling import FIELD, Sampling
from nndeploy.stream.description import StageStep, optional_fields, step_name
from nndeploy.stream.engine.loop import TEXT
from nndeploy.stream.pipeline.pipeline_file import PipelineFile
from nndeploy.stream.pipeline.pipeline_sources import source_fields
from nndeploy.values.types import ValueType

END = "end"
"""What a pipeline says beside the text that it writes: why the text ends."""
_KINDS = ("lines", "json-lines")
_CHAT = "chat"


@dataclass(frozen=True, slots=True)
class TextWriter:
    """The field for a prompt, whether messages may stand in it, and what reads the parameters of sampling."""

    field: str
    takes_messages: bool
    readers: Sequence[Callable[[object], Sampling]]

    def sampling(self, wishes: Mapping[str, object]) -> Sampling:
        """Returns how a text is written with parameters by their names in pipelines.

        Raises:
            InputError: a step `sample` does not take one, or there is no such step.
        """
        if not self.readers:
            raise InputError("the pipeline has no step 'sample', so it takes no such parameters")
        found = [read(wishes) for read in self.readers]
        return found[0]


def text_writer(file: PipelineFile, types: Mapping[str, ValueType], outputs: Collection[str]) -> TextWriter | None:
    """Returns what a pipeline with these outputs takes, None where it does not write a text for one field.

    `types` are those of the fields that go from its source into models.
    """
    (source,) = file.sources
    fields = source_fields(source, types, file.where)
    if source.kind not in _KINDS or len(fields) != 1 or fields[0] in types or not {TEXT, END}.issubset(outputs):
        return None
    loaders = (step for one in file.levels[0] for stage in one.loaders for step in stage.steps)
    takes_messages = any(step_name(step) == _CHAT and step.takes == fields for step in loaders)
    looped = (step for one in file.pipelines for stage in one.looped for step in stage.steps)
    return TextWriter(
        fields[0], takes_messages, [_reader_of(step) for step in looped if FIELD in optional_fields(step)]
    )


def _reader_of(step: StageStep) -> Callable[[object], Sampling]:
    read: Callable[[object], Sampling] = getattr(step, "processor").sampling_of  # noqa: B009 - the step is of a table
    return read

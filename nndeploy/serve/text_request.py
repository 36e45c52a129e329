# SPDX-License-Identifier: Apache-2.0
"""A request for a text, whichever form asked for it: what goes to the pipeline, and what comes back.

prompt or messages, and parameters by the names that clients have for them -> `InferRequest` -> `Written`. Law: what a
parameter may be says the pipeline's step `sample` alone; a wrong one is refused by the client's name for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.sampling import FIELD, LOGPROBS, PARAMETERS, Sampling
from nndeploy.processors.token_logprobs import TokenLikelihood
from nndeploy.serve.infer_request import InferRequest
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.text_writer import END, TextWriter
from nndeploy.stream.engine.loop import TEXT
from nndeploy.values.types import Value

STOP = "stop"
SAMPLING = {STOP if name == "stop-texts" else name.replace("-", "_"): name for name in PARAMETERS if name != LOGPROBS}
"""The parameters that clients send -> those of pipelines, but for what has a place of its own in an answer."""


class FieldError(InputError):
    """A field of a request is wrong: that of the name `field`."""

    def __init__(self, field: str, what: str, *, hint: str = "") -> None:
        super().__init__(f"{field!r:.80} {what}", hint=hint)
        self.field = field


@dataclass(frozen=True, slots=True)
class Written:
    """A text that is whole: why it ends, and how many tokens prompt and text have, None where nobody counts them.

    `likelihoods` are of its tokens, where they were asked for.
    """

    text: str
    end: str
    num_prompt_tokens: int | None
    num_tokens: int | None
    likelihoods: Sequence[TokenLikelihood] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """What is new of a text, and how likely its tokens were, where that was asked for.

    `begin` is the character at which the first token begins.
    """

    text: str
    begin: int = 0
    likelihoods: Sequence[TokenLikelihood] = ()


def begin_of(likelihoods: Sequence[TokenLikelihood], number: int) -> int:
    """Returns the character at which a token begins."""
    return likelihoods[number - 1]["end"] if number else 0


class AskedText(Protocol):
    """A request for one or more texts in one form: what it asks, and its answers. Events are JSON, or a line as it is.

    `number` says which text it is, from 0 on.
    """

    @property
    def requests(self) -> Sequence[InferRequest]:
        """What goes to the model, for each text."""

    @property
    def is_stream(self) -> bool:
        """Whether the texts are to come in pieces, as events."""

    def whole(self, written: Sequence[Written]) -> object:
        """Returns the answer where the texts come as a whole."""

    def first(self, number: int) -> Sequence[object]:
        """Returns the events before a text."""

    def piece(self, number: int, piece: Piece) -> object:
        """Returns the event of a part of a text."""

    def last(self, number: int, written: Written, rest: Piece) -> Sequence[object]:
        """Returns the events behind the parts that were sent of a text, of which `rest` is missing."""

    def end(self, written: Sequence[Written]) -> Sequence[object]:
        """Returns the events behind all texts."""

    def failed(self, error: Exception) -> object:
        """Returns the event that ends a stream which fails behind its first part."""


def writer_of(model: ServedModel) -> TextWriter:
    """Returns what a model takes that writes texts.

    Raises:
        UsageError: it writes none.
        UnavailableError: it is not ready.
    """
    writer = model.served.writer
    if writer is None:
        raise UsageError("it does not write a text for a prompt", where=model.name, hint="use .../infer")
    return writer


def wishes_of(writer: TextWriter, parameters: Mapping[str, object]) -> dict[str, object]:
    """Returns what a pipeline is asked by parameters of a client.

    Raises:
        FieldError: a parameter is unknown to the pipeline, fixed there, or not within its limits.
    """
    wishes: dict[str, object] = {}
    for parameter, value in parameters.items():
        wish = {SAMPLING[parameter]: [value] if parameter == STOP and isinstance(value, str) else value}
        checked(writer, wish, parameter)
        wishes |= wish
    return wishes


def checked(writer: TextWriter, wishes: Mapping[str, object], parameter: str) -> Sampling:
    """Returns how a text is written with what a parameter of a client wishes.

    Raises:
        FieldError: it is unknown to the pipeline, fixed there, or not within its limits.
    """
    try:
        return writer.sampling(wishes)
    except InputError as err:
        raise FieldError(parameter, f"is refused: {err.what}", hint=err.hint) from err


def text_request(writer: TextWriter, given: Value, wishes: Mapping[str, object], name: str) -> InferRequest:
    """Returns the request of that name for the text that follows a prompt or messages."""
    return InferRequest({writer.field: given} | ({FIELD: wishes} if wishes else {}), name, (TEXT, END))

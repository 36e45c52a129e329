# SPDX-License-Identifier: Apache-2.0
"""A request for a text, whichever form asked for it: what goes to the pipeline, and what comes back.

prompt or messages, and parameters by the names that clients have for them -> `InferRequest` -> `Written`. Law: what a
parameter may be says the pipeline's step `sample` alone; a wrong one is refused by the client's name for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.sampling import FIELD, PARAMETERS
from nndeploy.serve.infer_request import InferRequest
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.text_writer import END, TextWriter
from nndeploy.stream.engine.loop import TEXT
from nndeploy.values.types import Value

STOP = "stop"
SAMPLING = {STOP if name == "stop-texts" else name.replace("-", "_"): name for name in PARAMETERS}
"""The parameters that clients send -> those of pipelines."""


class FieldError(InputError):
    """A field of a request is wrong: that of the name `field`."""

    def __init__(self, field: str, what: str, *, hint: str = "") -> None:
        super().__init__(f"{field!r:.80} {what}", hint=hint)
        self.field = field


@dataclass(frozen=True, slots=True)
class Written:
    """A text that is whole: why it ends, and how many tokens prompt and text have, None where nobody counts them."""

    text: str
    end: str
    num_prompt_tokens: int | None
    num_tokens: int | None


class AskedText(Protocol):
    """A request for a text in one form: what it asks, and its answers. Events are JSON, or a line as it is."""

    @property
    def request(self) -> InferRequest:
        """What goes to the model."""

    @property
    def is_stream(self) -> bool:
        """Whether the text is to come in pieces, as events."""

    def whole(self, written: Written) -> object:
        """Returns the answer where the text comes as a whole."""

    def first(self) -> Sequence[object]:
        """Returns the events before the text."""

    def piece(self, text: str) -> object:
        """Returns the event of a part of the text."""

    def last(self, written: Written, rest: str) -> Sequence[object]:
        """Returns the events behind the parts that were sent, of which `rest` is missing."""

    def failed(self, error: Exception) -> object:
        """Returns the event that ends a text which fails behind its first part."""


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


def text_request(writer: TextWriter, given: Value, parameters: Mapping[str, object], name: str) -> InferRequest:
    """Returns the request of that name for the text that follows a prompt or messages.

    Raises:
        FieldError: a parameter is unknown to the pipeline, fixed there, or not within its limits.
    """
    wishes: dict[str, object] = {}
    for parameter, value in parameters.items():
        wish = {SAMPLING[parameter]: [value] if parameter == STOP and isinstance(value, str) else value}
        try:
            writer.check_sampling(wish)
        except InputError as err:
            raise FieldError(parameter, f"is refused: {err.what}", hint=err.hint) from err
        wishes |= wish
    return InferRequest({writer.field: given} | ({FIELD: wishes} if wishes else {}), name, (TEXT, END))

# SPDX-License-Identifier: Apache-2.0
"""A prompt and the text that follows it, as the generate extension of the protocol carries them: flat JSON.

fields of a body -> `GenerateRequest`; a text, or what is new of it -> fields of an answer, or of an event of a stream

Source: Open Inference Protocol, generate REST extension.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nndeploy.errors import InputError
from nndeploy.serve.infer_request import InferRequest, checked_parameters, told
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.text_request import SAMPLING, Piece, Written, text_request, wishes_of, writer_of

REASONS = {"stop-token": "eos_token", "stop-text": "stop_sequence", "max-tokens": "length", "context": "length"}
"""What ends a text here -> in the extension."""
_FIELDS = {"text_input": str, "id": str, "parameters": dict}
_PARAMETERS = {"details": bool}


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """A request to a model, and whether its answer says what ended the text."""

    request: InferRequest
    model: str
    version: str
    has_details: bool
    is_stream: bool

    @property
    def requests(self) -> Sequence[InferRequest]:
        """What goes to the model: one text is written."""
        return [self.request]

    def piece(self, number: int, piece: Piece) -> dict[str, object]:
        """Returns what an event says of a part of the text."""
        del number
        own = {"id": self.request.id} if self.request.id else {}
        return {**own, "model_name": self.model, "model_version": self.version, "text_output": piece.text}

    def whole(self, written: Sequence[Written]) -> dict[str, object]:
        """Returns what an answer says."""
        (one,) = written
        (answer,) = self.last(0, one, Piece(one.text))
        return answer

    def first(self, number: int) -> Sequence[object]:
        """Returns nothing: the text comes first."""
        del number
        return ()

    def end(self, written: Sequence[Written]) -> Sequence[object]:
        """Returns nothing: the last part of the text is the last event."""
        del written
        return ()

    def last(self, number: int, written: Written, rest: Piece) -> Sequence[dict[str, object]]:
        """Returns the last event: what is missing of the text, and what ended it."""
        details = {"details": {"finish_reason": REASONS.get(written.end, written.end)}} if self.has_details else {}
        return ({**self.piece(number, rest), **details},)

    def failed(self, error: Exception) -> object:
        """Returns the event of an error."""
        return {"error": told(error)}


def generate_request(fields: Mapping[str, object], model: ServedModel, *, is_stream: bool) -> GenerateRequest:
    """Returns the request that the fields of a body make.

    Raises:
        InputError: they make none.
        UsageError: the model writes no text.
    """
    writer = writer_of(model)
    fields = checked_parameters(fields, _FIELDS, "the request")
    if "text_input" not in fields:
        raise InputError("the request has no 'text_input'")
    given = fields.get("parameters", {})
    assert isinstance(given, dict)
    sampling = {name: value for name, value in given.items() if name in SAMPLING}
    own = {name: value for name, value in given.items() if name not in SAMPLING}
    parameters = checked_parameters(own, _PARAMETERS, "the request")
    request = text_request(writer, fields["text_input"], wishes_of(writer, sampling), str(fields.get("id", "")))
    return GenerateRequest(request, model.name, model.version, bool(parameters.get("details")), is_stream)

# SPDX-License-Identifier: Apache-2.0
"""A prompt and the text that follows it, as the generate extension of the protocol carries them: flat JSON.

body -> `GenerateRequest`; a text, or what is new of it -> a line of JSON, alone or as an event of a stream

Source: Open Inference Protocol, generate REST extension; Server-sent events (WHATWG HTML, 9.2).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nndeploy.errors import InputError, UsageError
from nndeploy.serve.datatypes import Tensor
from nndeploy.serve.infer_request import Answer, InferRequest, checked_parameters
from nndeploy.serve.served_model import ServedModel
from nndeploy.stream.engine.loop import TEXT
from nndeploy.stream.formats.json_lines import object_from_json

PROMPT, END = Tensor("text", "BYTES", (1,)), "end"
"""The input of a pipeline that reads texts, and what it says beside the text that it writes."""
REASONS = {"stop-token": "eos_token", "stop-text": "stop_sequence", "max-tokens": "length", "context": "length"}
"""What ends a text here -> in the extension."""
_FIELDS = {"text_input": str, "id": str, "parameters": dict}
_PARAMETERS = {"details": bool}
SAMPLING = ("temperature", "top_k", "top_p", "max_tokens", "stop", "seed", "repetition_penalty")
"""Parameters that clients send and that the pipeline decides here."""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """A request to a model, and whether its answer says what ended the text."""

    request: InferRequest
    model: str
    version: str
    has_details: bool

    def piece(self, text: str) -> dict[str, object]:
        """Returns what an event says of a part of the text."""
        own = {"id": self.request.id} if self.request.id else {}
        return {**own, "model_name": self.model, "model_version": self.version, "text_output": text}

    def answer(self, found: Answer, sent: str = "") -> dict[str, object]:
        """Returns what an answer says, or the last event behind what was sent."""
        text, end = (json.loads(found.outputs[name][0]) for name in (TEXT, END))
        details = {"details": {"finish_reason": REASONS.get(end, end)}} if self.has_details else {}
        return {**self.piece(text.removeprefix(sent)), **details}


def generate_request(body: bytes, model: ServedModel) -> GenerateRequest:
    """Returns the request in a body.

    Raises:
        InputError: it is none.
        UsageError: the model writes no text.
    """
    names = {output.name for output in model.served.outputs}
    if model.served.inputs != (PROMPT,) or not names.issuperset((TEXT, END)):
        raise UsageError("it does not write a text for a prompt", where=model.name, hint="use .../infer")
    fields = checked_parameters(object_from_json(body, "the request", allow_nan=False), _FIELDS, "the request")
    if "text_input" not in fields:
        raise InputError("the request has no 'text_input'")
    parameters = fields.get("parameters", {})
    assert isinstance(parameters, dict)
    if sampling := [name for name in parameters if name in SAMPLING]:
        raise InputError(f"{sampling[0]!r} is set by the pipeline, not by a request", hint="see its step 'sample'")
    parameters = checked_parameters(parameters, _PARAMETERS, "the request")
    prompt = np.empty(1, object)
    prompt[0] = fields["text_input"]
    request = InferRequest({PROMPT.name: prompt}, str(fields.get("id", "")), (TEXT, END))
    return GenerateRequest(request, model.name, model.version, bool(parameters.get("details")))


def event(data: Mapping[str, object]) -> bytes:
    """Returns an event of a stream."""
    return b"data: %s\n\n" % json.dumps(data).encode("ascii")

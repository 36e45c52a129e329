# SPDX-License-Identifier: Apache-2.0
"""Prompts, conversations and the texts that follow them, as OpenAI's API carries them.

fields of a body -> `OpenAiRequest`; a text, or what is new of it -> fields of an answer, or of an event of a stream

Law: what a field asks is done or refused. A field that is null, or says what holds here anyway, asks nothing.

Source: OpenAI API reference: completions, chat completions, models, errors.
"""

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nndeploy.errors import NndeployError, UsageError, did_you_mean
from nndeploy.serve.infer_request import InferRequest, status_of, told
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.text_request import SAMPLING, FieldError, Written, text_request, writer_of
from nndeploy.values.types import Value

PATHS = "/v1/"
"""Paths that begin so are those of this API."""
DONE = "[DONE]"
_FIELDS: Mapping[str, type] = {"model": str, "stream": bool, "stream_options": dict, "user": str}
_ONLY: Mapping[str, object] = {
    "n": 1, "best_of": 1, "echo": False, "logprobs": False, "frequency_penalty": 0, "presence_penalty": 0,
}  # fmt: skip
"""Fields that may say this and nothing else."""
_MOST = "max_completion_tokens"
"""Another name that conversations have for `max_tokens`."""
_LENGTH = ("max-tokens", "context")


@dataclass(frozen=True, slots=True)
class OpenAiRequest:
    """A request to a model: for the text behind a prompt, or the answer in a conversation (`is_chat`)."""

    request: InferRequest
    model: str
    is_chat: bool
    is_stream: bool
    has_usage: bool
    created_s: int

    def whole(self, written: Written) -> dict[str, object]:
        """Returns what an answer says."""
        message = {"role": "assistant", "content": written.text, "refusal": None}
        choice: dict[str, object] = {"message": message} if self.is_chat else {"text": written.text}
        return self._head("") | {"choices": [_choice(choice, _reason(written))], "usage": _usage(written)}

    def first(self) -> Sequence[object]:
        """Returns the event that says who speaks, in a conversation."""
        return [self._chunk({"delta": {"role": "assistant", "content": ""}})] if self.is_chat else []

    def piece(self, text: str) -> dict[str, object]:
        """Returns what an event says of a part of the text."""
        return self._chunk({"delta": {"content": text}} if self.is_chat else {"text": text})

    def last(self, written: Written, rest: str) -> Sequence[object]:
        """Returns what is missing of the text, what ended it, how long it is if that is asked, and the end."""
        empty: dict[str, object] = {"delta": {}} if self.is_chat else {"text": ""}
        usage = [self._head(".chunk") | {"choices": [], "usage": _usage(written)}] if self.has_usage else []
        return [*([self.piece(rest)] if rest else []), self._chunk(empty, _reason(written)), *usage, DONE]

    def failed(self, error: Exception) -> object:
        """Returns the event of an error."""
        return error_object(status_of(error)[0], told(error), error)

    def _chunk(self, choice: Mapping[str, object], reason: str | None = None) -> dict[str, object]:
        usage = {"usage": None} if self.has_usage else {}
        return self._head(".chunk") | {"choices": [_choice(choice, reason)], **usage}

    def _head(self, kind: str) -> dict[str, object]:
        kind = f"chat.completion{kind}" if self.is_chat else "text_completion"
        return {"id": self.request.id, "object": kind, "created": self.created_s, "model": self.model}


def _choice(choice: Mapping[str, object], reason: str | None) -> dict[str, object]:
    return {"index": 0, **choice, "logprobs": None, "finish_reason": reason}


def _reason(written: Written) -> str:
    return "length" if written.end in _LENGTH else "stop"


def _usage(written: Written) -> dict[str, int] | None:
    prompt, text = written.num_prompt_tokens, written.num_tokens
    if prompt is None or text is None:
        return None
    return {"prompt_tokens": prompt, "completion_tokens": text, "total_tokens": prompt + text}


def model_name(fields: Mapping[str, object]) -> str:
    """Returns the name of the model that a body asks for.

    Raises:
        FieldError: it names none.
    """
    return str(_needed(fields, "model", str))


def completion_request(fields: Mapping[str, object], model: ServedModel) -> OpenAiRequest:
    """Returns the request for the text behind a prompt.

    Raises:
        FieldError: a field is unknown, or asks for what is not done here.
        UsageError: the model writes no text.
    """
    return _request(fields, model, "prompt", str(_needed(fields, "prompt", str)))


def chat_request(fields: Mapping[str, object], model: ServedModel) -> OpenAiRequest:
    """Returns the request for the answer in a conversation.

    Raises:
        FieldError: a field is unknown, or asks for what is not done here.
        UsageError: the model writes no text, or has no template for conversations.
    """
    if not writer_of(model).takes_messages:
        hint = "a pipeline for conversations begins with the step 'chat'; /v1/completions takes a prompt"
        raise UsageError("it has no template for conversations", where=model.name, hint=hint)
    messages = _needed(fields, "messages", list)
    assert isinstance(messages, list)
    return _request(fields, model, "messages", [_message(i, one) for i, one in enumerate(messages)])


def _request(fields: Mapping[str, object], model: ServedModel, name: str, given: Value) -> OpenAiRequest:
    writer = writer_of(model)
    is_chat = name == "messages"
    asked = {field: value for field, value in fields.items() if value is not None and field != name}
    if is_chat and _MOST in asked:
        if "max_tokens" in asked:
            raise FieldError(_MOST, "and 'max_tokens' say the same", hint="one of them")
        asked["max_tokens"] = asked.pop(_MOST)
    known = (*_FIELDS, *_ONLY, *SAMPLING, name, *([_MOST] if is_chat else []))
    for field, value in asked.items():
        if field not in known:
            raise FieldError(field, "is not supported", hint=did_you_mean(field, known))
        if field in _FIELDS and type(value) is not _FIELDS[field]:
            raise FieldError(field, f"must be {_FIELDS[field].__name__}, is {value!r:.40}")
        if field in _ONLY and (value != _ONLY[field] or isinstance(value, bool) != isinstance(_ONLY[field], bool)):
            raise FieldError(field, f"is not supported, other than as {_ONLY[field]!r}".lower())
    is_stream = asked.get("stream") is True
    sampling = {field: value for field, value in asked.items() if field in SAMPLING}
    request = text_request(writer, given, sampling, f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}")
    return OpenAiRequest(request, model.name, is_chat, is_stream, _has_usage(asked, is_stream), int(time.time()))


def _has_usage(asked: Mapping[str, object], is_stream: bool) -> bool:
    field, options = "stream_options", asked.get("stream_options")
    if not isinstance(options, dict):
        return False
    if not is_stream:
        raise FieldError(field, "is for streams alone", hint='"stream": true')
    for name, value in options.items():
        if name != "include_usage" or not isinstance(value, bool):
            raise FieldError(field, f"must be {{'include_usage': true}}, has {name!r:.40}: {value!r:.40}")
    return options.get("include_usage") is True


def _needed(fields: Mapping[str, object], name: str, kind: type) -> object:
    value = fields.get(name)
    if type(value) is not kind:
        what = "is missing" if value is None else f"must be {kind.__name__}, is {value!r:.40}"
        raise FieldError(name, what)
    return value


def _message(number: int, message: object) -> dict[str, str]:
    """Returns a message as templates take it: the parts of its content as one text, line by line."""
    place = f"messages[{number}]"
    if not isinstance(message, dict):
        raise FieldError(place, f"must be an object with role and content, is {message!r:.40}")
    for name, value in message.items():
        if name not in ("role", "content", "name"):
            raise FieldError(f"{place}.{name}", "is not supported")
        if name != "content" and not isinstance(value, str):
            raise FieldError(f"{place}.{name}", f"must be str, is {value!r:.40}")
    for name in ("role", "content"):
        if name not in message:
            raise FieldError(f"{place}.{name}", "is missing")
    content: Any = message["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for part in parts:
        is_text = isinstance(part, dict) and part.get("type") == "text" and part.keys() == {"type", "text"}
        if not is_text or not isinstance(part["text"], str):
            raise FieldError(f"{place}.content", f"must be a text, or parts of the type 'text', has {part!r:.60}")
    return message | {"content": "\n".join(part["text"] for part in parts)}


def model_object(name: str, created_s: int) -> dict[str, object]:
    """Returns what is said of a model; `created_s` is a time in seconds since 1970."""
    return {"id": name, "object": "model", "created": created_s, "owned_by": "nndeploy"}


def error_object(status: int, what: str, error: Exception | None = None) -> dict[str, object]:
    """Returns what a client is told of an error that has a status of HTTP."""
    kind = "rate_limit_error" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    code = error.code if isinstance(error, NndeployError) else None
    return {"error": {"message": what, "type": kind, "param": getattr(error, "field", None), "code": code}}

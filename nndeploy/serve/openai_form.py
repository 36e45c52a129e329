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
from nndeploy.processors.next_token import MAX_SEED
from nndeploy.processors.sampling import LOGPROBS
from nndeploy.processors.token_logprobs import TokenLikelihood
from nndeploy.serve.infer_request import InferRequest, status_of, told
from nndeploy.serve.openai_logprobs import chat_logprobs, completion_logprobs
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.text_request import (
    SAMPLING,
    FieldError,
    Piece,
    Written,
    checked,
    text_request,
    wishes_of,
    writer_of,
)
from nndeploy.serve.text_writer import TextWriter
from nndeploy.values.types import Value

PATHS = "/v1/"
"""Paths that begin so are those of this API."""
DONE = "[DONE]"
_FIELDS: Mapping[str, type] = {"model": str, "stream": bool, "stream_options": dict, "user": str}
_ONLY: Mapping[str, object] = {"best_of": 1, "echo": False, "frequency_penalty": 0, "presence_penalty": 0}
"""Fields that may say this and nothing else."""
_NUMBER, _LIKELY, _MORE_LIKELY = "n", "logprobs", "top_logprobs"
MOST_TEXTS = 16
"""Texts that are written for one request."""
_MOST = "max_completion_tokens"
"""Another name that conversations have for `max_tokens`."""
_LENGTH = ("max-tokens", "context")


@dataclass(frozen=True, slots=True)
class OpenAiRequest:
    """A request to a model: for texts behind a prompt, or answers in a conversation (`is_chat`)."""

    id: str
    requests: Sequence[InferRequest]
    model: str
    is_chat: bool
    is_stream: bool
    has_usage: bool
    has_logprobs: bool
    created_s: int

    def whole(self, written: Sequence[Written]) -> dict[str, object]:
        """Returns what an answer says."""
        choices = [self._whole_choice(number, one) for number, one in enumerate(written)]
        return self._head("") | {"choices": choices, "usage": _usage(written)}

    def first(self, number: int) -> Sequence[object]:
        """Returns the event that says who speaks, in a conversation."""
        return [self._chunk(number, {"delta": {"role": "assistant", "content": ""}})] if self.is_chat else []

    def piece(self, number: int, piece: Piece) -> dict[str, object]:
        """Returns what an event says of a part of a text."""
        choice = {"delta": {"content": piece.text}} if self.is_chat else {"text": piece.text}
        return self._chunk(number, choice, logprobs=self._logprobs(piece.likelihoods, piece.begin))

    def last(self, number: int, written: Written, rest: Piece) -> Sequence[object]:
        """Returns what is missing of a text, and what ended it."""
        empty: dict[str, object] = {"delta": {}} if self.is_chat else {"text": ""}
        missing = [self.piece(number, rest)] if rest.text or rest.likelihoods else []
        return [*missing, self._chunk(number, empty, _reason(written))]

    def end(self, written: Sequence[Written]) -> Sequence[object]:
        """Returns how long the texts are, if that is asked, and the end."""
        usage = [self._head(".chunk") | {"choices": [], "usage": _usage(written)}] if self.has_usage else []
        return [*usage, DONE]

    def failed(self, error: Exception) -> object:
        """Returns the event of an error."""
        return error_object(status_of(error)[0], told(error), error)

    def _whole_choice(self, number: int, written: Written) -> dict[str, object]:
        message = {"role": "assistant", "content": written.text, "refusal": None}
        choice: dict[str, object] = {"message": message} if self.is_chat else {"text": written.text}
        return _choice(number, choice, self._logprobs(written.likelihoods, 0), _reason(written))

    def _logprobs(self, likelihoods: Sequence[TokenLikelihood], begin: int) -> dict[str, object] | None:
        if not self.has_logprobs:
            return None
        return chat_logprobs(likelihoods) if self.is_chat else completion_logprobs(likelihoods, begin)

    def _chunk(
        self, number: int, choice: Mapping[str, object], reason: str | None = None, logprobs: object = None
    ) -> dict[str, object]:
        usage = {"usage": None} if self.has_usage else {}
        return self._head(".chunk") | {"choices": [_choice(number, choice, logprobs, reason)], **usage}

    def _head(self, kind: str) -> dict[str, object]:
        kind = f"chat.completion{kind}" if self.is_chat else "text_completion"
        return {"id": self.id, "object": kind, "created": self.created_s, "model": self.model}


def _choice(number: int, choice: Mapping[str, object], logprobs: object, reason: str | None) -> dict[str, object]:
    return {"index": number, **choice, "logprobs": logprobs, "finish_reason": reason}


def _reason(written: Written) -> str:
    return "length" if written.end in _LENGTH else "stop"


def _usage(written: Sequence[Written]) -> dict[str, int] | None:
    """Returns how many tokens the prompt has, which is counted once, and all texts."""
    prompt, counts = written[0].num_prompt_tokens, [one.num_tokens for one in written]
    known = [count for count in counts if count is not None]
    if prompt is None or len(known) < len(counts):
        return None
    text = sum(known)
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
    known = (*_FIELDS, *_ONLY, *SAMPLING, name, _NUMBER, _LIKELY, *([_MOST, _MORE_LIKELY] if is_chat else []))
    for field, value in asked.items():
        if field not in known:
            raise FieldError(field, "is not supported", hint=did_you_mean(field, known))
        if field in _FIELDS and type(value) is not _FIELDS[field]:
            raise FieldError(field, f"must be {_FIELDS[field].__name__}, is {value!r:.40}")
        if field in _ONLY and (value != _ONLY[field] or isinstance(value, bool) != isinstance(_ONLY[field], bool)):
            raise FieldError(field, f"is not supported, other than as {_ONLY[field]!r}".lower())
    is_stream = asked.get("stream") is True
    wishes = wishes_of(writer, {field: value for field, value in asked.items() if field in SAMPLING})
    count = _num_likely(asked, is_chat=is_chat)
    if count is not None:
        wishes[LOGPROBS] = count
        checked(writer, wishes, _MORE_LIKELY if count and is_chat else _LIKELY)
    own = f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}"
    requests = [text_request(writer, given, each, own) for each in _wishes_of_each(writer, asked, wishes)]
    has_usage = _has_usage(asked, is_stream)
    return OpenAiRequest(own, requests, model.name, is_chat, is_stream, has_usage, count is not None, int(time.time()))


def _wishes_of_each(
    writer: TextWriter, asked: Mapping[str, object], wishes: dict[str, object]
) -> list[dict[str, object]]:
    """Returns what is wished of each text: a seed of its own, counted up from that of the first one."""
    number = asked.get(_NUMBER, 1)
    if type(number) is not int or not 1 <= number <= MOST_TEXTS:
        raise FieldError(_NUMBER, f"must be a whole number from 1 to {MOST_TEXTS}, is {number!r:.40}")
    if number == 1:
        return [wishes]
    seed = checked(writer, {"seed": 0} | wishes, _NUMBER).seed
    return [wishes | {"seed": (seed + i) % (MAX_SEED + 1)} for i in range(number)]


def _num_likely(asked: Mapping[str, object], *, is_chat: bool) -> int | None:
    """Returns of how many tokens beside the chosen one it is asked how likely they were; None where it is not asked."""
    likely, more = asked.get(_LIKELY, False), asked.get(_MORE_LIKELY, 0)
    if likely is False and not is_chat:
        return None
    if type(likely) is not (bool if is_chat else int):
        raise FieldError(_LIKELY, f"must be {'true or false' if is_chat else 'a whole number'}, is {likely!r:.40}")
    if type(more) is not int or (more and not likely):
        raise FieldError(_MORE_LIKELY, f"needs '{_LIKELY}': true, and is a whole number, not {more!r:.40}")
    if is_chat:
        return more if likely else None
    assert isinstance(likely, int)
    return likely


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

# SPDX-License-Identifier: Apache-2.0
"""The parameter of a step that is a chat template: Jinja in or beside a tokenizer_config.json, or a file of its own.

Templates may have been written by anybody. They run in Jinja's sandbox, which lets them change nothing and reach no
attribute that begins with an underscore; what they compute and write has bounds (`bounded_jinja.py`). The package
belongs to the extra `text`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, ClassVar, NoReturn, Self

from nndeploy.errors import DataError, InputError, MissingInputError, UnavailableError
from nndeploy.processors.parameters import ReadFile
from nndeploy.version import install_command

BESIDE = "chat_template.jinja"
"""Where newer exports have the template, beside a tokenizer_config.json that has the special tokens alone."""
SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclass(frozen=True)
class ChatTemplate:
    """A template, and the texts of special tokens that it may name."""

    written_as: ClassVar[str] = "the name of a tokenizer_config.json or a .jinja file"

    source: str = field(repr=False)
    special: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_parameter(cls, value: object, read_file: ReadFile) -> Self:
        """Returns the template in the file of that name.

        Raises:
            DataError: it is no name of a file, or the file has no template that Jinja reads.
            UnavailableError: the package `jinja2` is not installed.
        """
        if not isinstance(value, str) or not value:
            raise DataError(f"must be {cls.written_as}, is {value!r:.60}")
        if value.endswith(".jinja"):
            made = cls(_text(value, read_file))
        else:
            source, special = _of_config(_text(value, read_file), value)
            made = cls(source or _beside(value, read_file), special)
        try:
            _ = made.compiled
        except DataError as err:
            raise DataError(str(err), where=value) from err
        return made

    @cached_property
    def compiled(self) -> Any:
        """Jinja's template.

        Raises:
            DataError: it is none.
            UnavailableError: the package `jinja2` is not installed.
        """
        try:
            from jinja2 import TemplateError

            from nndeploy.processors.bounded_jinja import bounded_template
        except ImportError as err:
            what = "a chat template needs the package jinja2, which is not installed"
            raise UnavailableError(what, hint=install_command("text")) from err
        functions = {"raise_exception": _refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
        try:
            return bounded_template(self.source, functions, {"tojson": _json}, reads="messages")
        except (TemplateError, RecursionError) as err:
            raise DataError(f"is no chat template of Jinja: {err}") from err

    def text(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Returns what the template writes for messages, up to where the answer begins.

        Raises:
            InputError: it refuses them, fails on them, or computes or writes too much.
        """
        from nndeploy.processors.bounded_jinja import generated

        values = {"messages": messages, "add_generation_prompt": True, **self.special}
        try:
            return "".join(generated(self.compiled, values))
        except InputError:
            raise
        except Exception as err:  # a template may fail in any way
            raise InputError(f"the chat template fails on these messages: {err}") from err


def _text(name: str, read_file: ReadFile) -> str:
    try:
        return read_file(name).decode("utf-8")
    except UnicodeDecodeError as err:
        raise DataError("is not UTF-8", where=name) from err


def _beside(name: str, read_file: ReadFile) -> str:
    """Returns the template that lies beside a tokenizer_config.json without one."""
    try:
        return _text(str(PurePosixPath(name).with_name(BESIDE)), read_file)
    except MissingInputError as err:
        raise DataError(f"has no chat_template, and no {BESIDE} lies beside it", where=name) from err


def _of_config(text: str, name: str) -> tuple[str, dict[str, str]]:
    """Returns the template of a tokenizer_config.json, "" where there is none, and its special tokens."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise DataError(f"is no JSON: {err}", where=name) from err
    if not isinstance(config, dict):
        raise DataError("holds no JSON object", where=name)
    found = config.get("chat_template", "")
    if isinstance(found, list):  # several by name
        by_name = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = by_name.get("default")
    if not isinstance(found, str):
        raise DataError("its chat_template is no text", where=name)
    tokens = {key: config.get(key) for key in SPECIAL}
    named = {key: one.get("content") if isinstance(one, dict) else one for key, one in tokens.items()}
    return found, {key: one for key, one in named.items() if isinstance(one, str)}


def _json(value: Any, indent: int | None = None) -> str:
    """Writes a value as transformers does: without escapes of HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise InputError(f"the chat template refuses these messages: {message}")

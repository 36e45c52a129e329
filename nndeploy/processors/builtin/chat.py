# SPDX-License-Identifier: Apache-2.0
"""chat: what was said so far -> the text that a language model goes on from, by its own template."""

from dataclasses import dataclass
from typing import ClassVar

from nndeploy.errors import InputError
from nndeploy.processors.chat_template import ChatTemplate


@dataclass(frozen=True)
class Chat:
    """Writes messages as the model learned them: by a file of Jinja, or the one in or beside a tokenizer_config.json.

    `messages` is a list of tables with `role` and `content`, or a text: one message of the user. `system` is put before
    them where they begin with no system message. The text ends where the answer begins. Special tokens are in it, so
    `tokenize` adds none: special-tokens = false. A template goes through 100,000 rounds of loops and calls at most.
    """

    name: ClassVar[str] = "chat"
    takes: ClassVar[tuple[str, ...]] = ("messages",)
    gives: ClassVar[tuple[str, ...]] = ("text",)

    template: ChatTemplate
    system: str = ""

    def __call__(self, messages: object) -> str:
        """Returns the text.

        Raises:
            InputError: they are no messages, or the template refuses them.
        """
        found: object = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        if not isinstance(found, list) or not found or not all(map(_is_message, found)):
            raise InputError('messages must be a text or a list of { "role": "user", "content": "..." }')
        if self.system and found[0]["role"] != "system":
            found = [{"role": "system", "content": self.system}, *found]
        return self.template.text(found)


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and "content" in value

# SPDX-License-Identifier: Apache-2.0
"""prompt: the tokens of a text -> what a decoder takes that is to go on with it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Array, tokens_from_value
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Count

INPUTS = ("input_ids", "attention_mask", "position_ids", "use_cache_branch")
"""What decoders take, each of them some."""
INPUT_SHAPES: tuple[Known, ...] = ((1, None), (1, None), (1, None), (1,))
"""What is known of each of them."""


@dataclass(frozen=True)
class Prompt:
    """Begins a text that a decoder writes: no `tokens` of its own yet, and all of the prompt as its next input.

    `attention_mask` and `position_ids` are (1, length), as `input_ids` are; `use_cache_branch`, which merged decoders
    take, is false. A prompt that leaves no place within `context`, the most tokens that the model takes, is refused.
    """

    name: ClassVar[str] = "prompt"
    takes: ClassVar[tuple[str, ...]] = ("input_ids",)
    gives: ClassVar[tuple[str, ...]] = ("prompt", "tokens", *INPUTS)
    hands_on: ClassVar[tuple[str, ...]] = ("input_ids",)

    context: Count | None = None

    def __call__(self, input_ids: object) -> tuple[Array, ...]:
        """Returns the prompt (length,), no tokens (0,), and the inputs.

        Raises:
            InputError: it is empty, or too long.
        """
        prompt = tokens_from_value(input_ids, "input_ids")
        if not len(prompt):
            raise InputError("the prompt has no tokens")
        if self.context is not None and len(prompt) >= self.context:
            what = f"the prompt has {len(prompt)} tokens, which leaves no place in a context of {self.context}"
            raise InputError(what, hint="shorten it, or cut it by tokenize's max-length")
        prompt = prompt.astype(getattr(input_ids, "dtype", np.int64))
        return prompt, prompt[:0], *inputs_from(prompt, 0)

    def given_shapes(self, input_ids: Known) -> tuple[Known, ...]:
        """Returns what is known of the prompt, the tokens and the inputs."""
        del input_ids
        return (None,), (0,), *INPUT_SHAPES


def inputs_from(tokens: Array, begin: int) -> tuple[Array, Array, Array, Array]:
    """Returns `INPUTS` of a model that knows the tokens before `begin` from its cache."""
    positions = np.arange(begin, len(tokens), dtype=tokens.dtype)[None]
    return tokens[None, begin:], np.ones((1, len(tokens)), tokens.dtype), positions, np.array([begin > 0])

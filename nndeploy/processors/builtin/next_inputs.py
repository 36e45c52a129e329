# SPDX-License-Identifier: Apache-2.0
"""next-inputs: a text so far -> what a decoder takes for its next token."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nndeploy.processors.arrays import Array, tokens_from_value
from nndeploy.processors.builtin.prompt import INPUT_SHAPES, INPUTS, inputs_from
from nndeploy.processors.known_shapes import Known


@dataclass(frozen=True)
class NextInputs:
    """Gives a decoder its newest token, the mask over all tokens, and the token's position, each (1, length).

    `use_cache_branch`, which merged decoders take, is true. Without `cache` the model keeps nothing of earlier tokens,
    and gets all of them again.
    """

    name: ClassVar[str] = "next-inputs"
    takes: ClassVar[tuple[str, ...]] = ("prompt", "tokens")
    gives: ClassVar[tuple[str, ...]] = INPUTS

    cache: bool = True

    def __call__(self, prompt: object, tokens: object) -> tuple[Array, ...]:
        """Returns the inputs, of the prompt's element type.

        Raises:
            InputError: they are no tokens.
        """
        kind = getattr(prompt, "dtype", np.int64)
        all_tokens = np.concatenate([tokens_from_value(prompt, "prompt"), tokens_from_value(tokens, "tokens")])
        return inputs_from(all_tokens.astype(kind), len(all_tokens) - 1 if self.cache else 0)

    def given_shapes(self, prompt: Known, tokens: Known) -> tuple[Known, ...]:
        """Returns what is known of the inputs."""
        del prompt, tokens
        return INPUT_SHAPES

# SPDX-License-Identifier: Apache-2.0
"""How likely the tokens of a text were, as OpenAI's API has it: one form for prompts, another for conversations.

Source: OpenAI API reference: completions, chat completions (`logprobs`).
"""

from collections.abc import Sequence

from nndeploy.processors.text_so_far import HALF
from nndeploy.processors.token_logprobs import Likelihood, TokenLikelihood


def completion_logprobs(likelihoods: Sequence[TokenLikelihood], begin: int) -> dict[str, object]:
    """Returns what is said of tokens of the text behind a prompt, the first of which begins at character `begin`."""
    ends = [one["end"] for one in likelihoods]
    return {
        "tokens": [_name(one) for one in likelihoods],
        "token_logprobs": [one["logprob"] for one in likelihoods],
        "top_logprobs": [{_name(top): top["logprob"] for top in (*one["top"], one)} for one in likelihoods],
        "text_offset": [begin, *ends[:-1]] if ends else [],
    }


def chat_logprobs(likelihoods: Sequence[TokenLikelihood]) -> dict[str, object]:
    """Returns what is said of tokens of an answer in a conversation."""
    content = [_token(one) | {"top_logprobs": [_token(top) for top in one["top"]]} for one in likelihoods]
    return {"content": content, "refusal": None}


def _token(one: Likelihood) -> dict[str, object]:
    return {"token": one["text"], "logprob": one["logprob"], "bytes": one["bytes"]}


def _name(one: Likelihood) -> str:
    """Returns a token as a text that no other token has: by its bytes where these are no whole character."""
    return one["text"] if HALF not in one["text"] else "bytes:" + "".join(f"\\x{byte:02x}" for byte in one["bytes"])

# SPDX-License-Identifier: Apache-2.0
"""From a prompt to a text: the pipeline of a language model, as the files say that transformers and optimum write."""

from nndeploy.errors import DataError
from nndeploy.files.whole_files import read_regular
from nndeploy.processors.builtin.prompt import INPUTS
from nndeploy.processors.chat_template import BESIDE
from nndeploy.processors.tokenizer_file import TokenizerFile
from nndeploy.starters.embed import dtype_of, token_input
from nndeploy.starters.images import step
from nndeploy.starters.model_folder import ModelFolder, quoted, whole
from nndeploy.stream.pipeline.bundled_pipeline import MAX_NAMED_BYTES

MAX_STOPS = 64
NUM_SCORES = ("num_logits_to_keep", "logits_to_keep")
"""Inputs that say of how many of the last tokens scores are given."""
PLAIN = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "repetition_penalty": 1.0}
"""Settings of a text that is not drawn, by their names in generation_config.json."""

_TOGETHER = (
    "# batch = 8    # so many texts are written by the same calls: faster together, rounded otherwise than alone"
)


def generate(files: ModelFolder) -> str:
    """Returns the TOML.

    Raises:
        DataError: the model takes no tokens, gives no scores of tokens, or its cache has names of no pattern.
        MissingInputError: there is no tokenizer.
        UnavailableError: the package `tokenizers` is not installed.
    """
    path = files.needed("tokenizer.json", "that of the model")
    ids, scores = token_input(files), _scores(files)
    carried, name = _carried(files, scores), files.named(path)
    renamed = "" if scores == "logits" else f'outputs = {{ {quoted(scores)} = "logits" }}\n'
    uncached = "" if carried else "\ncache = false    # the model has none: it gets the whole text each time"
    context, last = _context(files), _scores_of_last(files)
    stops = ", ".join(map(quoted, _stops(files, TokenizerFile(path.name, read_regular(path, MAX_NAMED_BYTES)))))
    settings = "\n".join(f"{key.replace('_', '-')} = {value}" for key, value in _settings(files).items())
    return f"""\
# Prompts to texts: the model runs token by token until a text ends.
#   nndeploy compile {files.model} --pipeline {files.out} -o write.nnd
#   echo "Tell me a rhyme" | nndeploy run write.nnd --input - --stream

[source]
kind = "lines"    # a prompt a line

[[level]]

[[level.pipeline]]
name = "write"
{renamed}{carried}{f"{_TOGETHER}{chr(10)}" if carried and not last else ""}
[[level.pipeline.loader]]
steps = [
{_prompt(files, name, dtype_of(ids))}
    {{ use = "prompt"{f", context = {context}" if context else ""} }},
{last}]

[[level.pipeline.loop.steps]]
use = "sample"
tokenizer = {name}
stop-tokens = [{stops}]
stop-texts = []
max-tokens = 256
{f"context = {context}    # the most tokens that the model takes" if context else ""}
# At temperature 0 the likeliest token is taken, else one is drawn, for a seed always the same.
{settings}
seed = 0

[[level.pipeline.loop.steps]]
use = "next-inputs"{uncached}

[[sink]]
kind = "json-lines"
fields = ["text", "end"]    # end says why: stop-token, stop-text, max-tokens or context
"""


def _scores(files: ModelFolder) -> str:
    """Returns the name of the output with scores of tokens."""
    floats = {name for name, kind in files.outputs.items() if kind.dtype.startswith("float")}
    for name in ("logits", *files.outputs):
        if name in floats and len(files.outputs[name].shape or ()) == 3:
            return name
    hint = "an output float32[batch, length, tokens] is needed"
    raise DataError("the model gives no scores of tokens", where=str(files.model), hint=hint)


def _scores_of_last(files: ModelFolder) -> str:
    """Returns the step that asks for the scores of the last token alone, "" where the model takes no such number."""
    lines = ""
    for name, kind in files.inputs.items():
        if name in NUM_SCORES:
            value = [1] if kind.shape else 1
            made = step("constant", f"value = {value}", f'dtype = "{kind.dtype}"', f'out = ["{name}"]')
            lines += f"    {made},\n"
    return lines


def _carried(files: ModelFolder, scores: str) -> str:
    """Returns the line that leads the cache from round to round, "" for a model without one.

    Raises:
        DataError: there is a cache, but no pattern of its names.
    """
    caches = [name for name in files.inputs if name not in (*INPUTS, *NUM_SCORES)]
    if not caches:
        return ""
    outputs = [name for name in files.outputs if name != scores]
    first, last = min(caches), max(caches)
    same = next((place for place, letter in enumerate(first) if not last.startswith(letter, place)), len(first) - 1)
    for into in (first[:length] for length in range(same, 0, -1)):
        ends = [name[len(into) :] for name in caches]
        for output in outputs:
            head = output.removesuffix(ends[0])
            if ends[0] and head != output and all(head + end in outputs for end in ends):
                return f"carry = {{ {quoted(head + '*')} = {quoted(into + '*')} }}\n"
    raise DataError(
        f"the model's input {caches[0]!r} is neither of tokens nor of a cache whose outputs have names alike",
        where=str(files.model), hint="write the pipeline by hand: carry = { output = \"input\" }",
    )  # fmt: skip


def _prompt(files: ModelFolder, tokenizer: str, dtype: str) -> str:
    """Returns the steps from a text to its tokens: through the chat template where there is one."""
    config, beside = files.found("tokenizer_config.json"), files.found(BESIDE)
    has_template = beside is not None or "chat_template" in files.json("tokenizer_config.json")
    template = (config or beside) if has_template else None
    if template is None:
        return f'    {{ use = "tokenize", tokenizer = {tokenizer}{dtype} }},'
    chat = f'{{ use = "chat", template = {files.named(template)}, system = "", in = ["text"], out = ["asked"] }},'
    return (
        f"    {chat}\n"
        f'    {{ use = "tokenize", tokenizer = {tokenizer}, special-tokens = false{dtype}, in = ["asked"] }},'
    )


def _context(files: ModelFolder) -> int | None:
    config = files.json("config.json")
    said = (config.get(key) for key in ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"))
    return next((length for one in said if (length := whole(one)) is not None), None)


def _stops(files: ModelFolder, tokenizer: TokenizerFile) -> list[str]:
    """Returns the tokens that end a text, as the first of the files says that says it."""
    opened, found = tokenizer.opened(), list[str]()
    for name in ("generation_config.json", "config.json"):
        said = files.json(name).get("eos_token_id")
        numbers = said if isinstance(said, list) else [said]
        texts = [opened.id_to_token(one) for one in numbers[:MAX_STOPS] if type(one) is int and one >= 0]
        found = found or [text for text in texts if text]
    named = files.json("tokenizer_config.json").get("eos_token")
    text = named.get("content") if isinstance(named, dict) else named
    if isinstance(text, str) and opened.token_to_id(text) is not None and text not in found:
        found.append(text)
    return found


def _settings(files: ModelFolder) -> dict[str, float]:
    """Returns how tokens are chosen: as the model's files say if they draw, else the likeliest ones."""
    said = files.json("generation_config.json")
    drawn = {"temperature": 1.0, "top_k": 50} if said.get("do_sample") is True else {}
    given = {
        key: said[key] for key in PLAIN if isinstance(said.get(key), int | float) and not isinstance(said[key], bool)
    }
    if not drawn:
        given = {key: value for key, value in given.items() if key == "repetition_penalty"}
    return {key: type(PLAIN[key])(value) for key, value in (PLAIN | drawn | given).items()}

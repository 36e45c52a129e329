# SPDX-License-Identifier: Apache-2.0
"""From a text to its vector: the pipeline of an embedder, as sentence-transformers' files beside it say."""

from nndeploy.errors import DataError
from nndeploy.files.whole_files import read_regular
from nndeploy.starters.model_folder import MAX_JSON, ModelFolder, quoted, whole
from nndeploy.values.types import TensorType


def embed(files: ModelFolder) -> str:
    """Returns the TOML.

    Raises:
        DataError: the model takes no tokens, or gives no vectors.
        MissingInputError: there is no tokenizer.
    """
    tokens = tokenize(files)
    output, steps = _vectors(files)
    renamed = f'\noutputs = {{ {quoted(output)} = "{steps[0][0]}" }}' if output != steps[0][0] else ""
    posts = "\n".join(f"    {text}" for _, text in steps)
    return f"""\
# Texts to vectors of length 1, whose product says how alike two texts are.
#   nndeploy compile {files.model} --pipeline {files.out} -o embed.nnd
#   nndeploy run embed.nnd --input texts.txt --output vectors.jsonl

[source]
kind = "lines"    # a text a line; json-lines reads {{"text": "..."}}

[[level]]

[[level.pipeline]]
name = "embed"{renamed}
runners = 2    # calls at once, each on half of the cores: 1 where single texts must be fast{batch(files, output)}

[[level.pipeline.loader]]
steps = [
    # Longer texts are cut.
    {tokens}
]

[[level.pipeline.post]]
steps = [
{posts}
]

[[sink]]
kind = "json-lines"
fields = ["embedding"]
"""


def tokenize(files: ModelFolder, step: str = "tokenize") -> str:
    """Returns the step, of this name, that makes the model's inputs of a text or a pair.

    Raises:
        DataError: the model takes no tokens.
        MissingInputError: there is no tokenizer.
    """
    tokenizer, ids = files.named(files.needed("tokenizer.json", "that of the model")), token_input(files)
    return f'{{ use = "{step}", tokenizer = {tokenizer}{_length(files, ids)}{dtype_of(ids)} }},'


def token_input(files: ModelFolder) -> TensorType:
    """Returns the type of the input that takes tokens.

    Raises:
        DataError: there is none.
    """
    found = files.inputs.get("input_ids")
    if found is None or found.dtype not in ("int64", "int32"):
        hint = f"it has {', '.join(files.inputs) or 'none'}"
        raise DataError("the model has no input 'input_ids' of whole numbers", where=str(files.model), hint=hint)
    return found


def dtype_of(ids: TensorType) -> str:
    """Returns the parameter that says of which type tokens are, where that is not the usual one."""
    return ', dtype = "int32"' if ids.dtype == "int32" else ""


def _length(files: ModelFolder, ids: TensorType) -> str:
    """Returns the parameters of the length: what the model's only size is, else what its files say."""
    fixed = ids.shape[-1] if ids.shape else None
    if isinstance(fixed, int):
        return f", max-length = {fixed}, pad-to = {fixed}"
    said = (
        files.json("sentence_bert_config.json").get("max_seq_length"),
        files.json("tokenizer_config.json").get("model_max_length"),
        files.json("config.json").get("max_position_embeddings"),
    )
    lengths = [length for one in said if (length := whole(one, 1 << 20)) is not None]
    return f", max-length = {lengths[0]}" if lengths else ""


def _vectors(files: ModelFolder) -> tuple[str, list[tuple[str, str]]]:
    """Returns the output with vectors, and the steps behind it, each with the first field that it takes."""
    floats = {name: kind.shape for name, kind in files.outputs.items() if kind.dtype.startswith("float") and kind.shape}
    normalise = [("embedding", '{ use = "l2-normalise" },')] if _is_normalised(files) else []
    for name in ("sentence_embedding", *floats):  # those of whole texts first: what pools is then in the model
        if len(floats.get(name, ())) == 2:
            return name, normalise or [("embedding", '{ use = "l2-normalise" },')]
    for name in ("last_hidden_state", "token_embeddings", *floats):
        if len(floats.get(name, ())) == 3:
            return name, [("last_hidden_state", f'{{ use = "pool", by = "{_pooling(files)}" }},'), *normalise]
    hint = "an output float32[batch, length, size] or float32[batch, size] is needed"
    raise DataError("the model gives no vectors", where=str(files.model), hint=hint)


def batch(files: ModelFolder, output: str) -> str:
    """Returns the line that lets texts go through the model together, "" where it takes one at a time."""
    first = {kind.shape[0] if kind.shape else None for kind in (*files.inputs.values(), files.outputs[output])}
    if not all(isinstance(size, str) for size in first) or len(first) > 1:
        return ""
    return "\nbatch = 32    # so many texts with as many tokens go through the model together"


def _pooling(files: ModelFolder) -> str:
    config = files.json("1_Pooling/config.json")
    for key, by in (("pooling_mode_cls_token", "cls"), ("pooling_mode_lasttoken", "last")):
        if config.get(key) is True:
            return by
    return "mean"


def _is_normalised(files: ModelFolder) -> bool:
    """Whether sentence-transformers would give vectors of length 1; also where it says nothing."""
    path = files.found("modules.json")
    if path is None:
        return True
    return b"models.Normalize" in read_regular(path, MAX_JSON)

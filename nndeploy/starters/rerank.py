# SPDX-License-Identifier: Apache-2.0
"""From a question and a document to a score: the pipeline of a reranker, as sentence-transformers' CrossEncoder has it.

Source: sentence-transformers, CrossEncoder: one label, the sigmoid of its score unless config.json names a function.
"""

from nndeploy.errors import DataError
from nndeploy.starters.embed import batch, tokenize
from nndeploy.starters.model_folder import ModelFolder, quoted

IDENTITY, SIGMOID = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"


def rerank(files: ModelFolder) -> str:
    """Returns the TOML.

    Raises:
        DataError: the model takes no tokens, gives no score alone, or ends in another function.
        MissingInputError: there is no tokenizer.
    """
    output, function = _score(files), _function(files)
    scores = "scores" if function == SIGMOID else "probabilities"
    between = '\n    { use = "sigmoid" },' if function == SIGMOID else ""
    return f"""\
# A question and a document to a score: the higher, the better the document answers. A line is
# {{"text": "question", "pair": "document"}}
#   nndeploy compile {files.model} --pipeline {files.out} -o rerank.nnd
#   nndeploy run rerank.nnd --input pairs.jsonl --output scores.jsonl

[source]
kind = "json-lines"
fields = ["text", "pair"]

[[level]]

[[level.pipeline]]
name = "rerank"
outputs = {{ {quoted(output)} = "{scores}" }}{batch(files, output)}

[[level.pipeline.loader]]
steps = [
    # Of longer pairs the longer text is cut.
    {tokenize(files, "tokenize-pair")}
]

[[level.pipeline.post]]
steps = [{between}
    {{ use = "class-probability", index = 0, out = ["score"] }},
]

[[sink]]
kind = "json-lines"
fields = ["text", "pair", "score"]
"""


def _score(files: ModelFolder) -> str:
    """Returns the output with one score a pair."""
    for name, kind in files.outputs.items():
        if kind.dtype.startswith("float") and kind.shape is not None and len(kind.shape) == 2 and kind.shape[1] == 1:
            return name
    hint = "float32[batch, 1] is needed; `new classify` is for several classes"
    raise DataError("the model gives no score of a pair", where=str(files.model), hint=hint)


def _function(files: ModelFolder) -> str:
    """Returns the function that makes a score of what the model gives."""
    config = files.json("config.json")
    own = config.get("sentence_transformers")
    named = (own.get("activation_fn") if isinstance(own, dict) else None) or config.get(
        "sbert_ce_default_activation_function", SIGMOID
    )
    if named not in (IDENTITY, SIGMOID):
        raise DataError(f"its scores go through {named!r:.80}, which is not known", where=str(files.model))
    return str(named)

# SPDX-License-Identifier: Apache-2.0
"""How the sizes of the outputs of operators on texts follow from the inputs.

Source: ONNX StringNormalizer, TfIdfVectorizer; ONNX Runtime, com.microsoft.Tokenizer.
"""

import onnx_ir as ir

from nndeploy.graph.arithmetic_sizes import same
from nndeploy.graph.known_sizes import KnownSizes, Rule
from nndeploy.graph.operators import ints_attribute, operand
from nndeploy.values.size import symbol


def _normalised(node: ir.Node, known: KnownSizes) -> None:
    stopwords = node.attributes.get("stopwords")
    if stopwords is None or not stopwords.as_strings():
        same(node, known)


def _counted(node: ir.Node, known: KnownSizes) -> None:
    shape, columns = known.shape(operand(node, 0)), ints_attribute(node, "ngram_indexes")
    if shape and columns:
        known.learn_shape(node.outputs[0], (*shape[:-1], max(columns) + 1))


def tokens(node: ir.Node, known: KnownSizes) -> None:
    """Learns of the tokens of each text, along a new last axis."""
    shape, output = known.shape(operand(node, 0)), node.outputs[0]
    if shape is not None:
        known.learn_shape(output, (*shape, symbol(f"{output.name}.{len(shape)}")))


RULES: dict[str, Rule] = {"StringNormalizer": _normalised, "TfIdfVectorizer": _counted}

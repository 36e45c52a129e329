# SPDX-License-Identifier: Apache-2.0
"""Writes two small language models with their tokenizers, as exporters leave them in a folder: `writer`, `embedder`.

`writer` is the network of `examples/rhymes`, in the form in which optimum exports decoders: tokens, mask and positions
in, scores and a cache out. Its tokens are characters. `embedder` gives each word of the rhymes a vector, so that words
which stand in the same rhymes are alike: the largest singular vectors of how often which word is in which rhyme.

    pip install numpy onnx tokenizers
    python examples/text/make_models.py
"""

import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import tokenizers
from onnx import numpy_helper
from tokenizers import decoders, normalizers, pre_tokenizers

HERE = Path(__file__).resolve().parent
RHYMES = HERE.parent / "rhymes"
END, UNKNOWN = "<|end|>", "[UNK]"
MOST_TOKENS = 512
SIZE = 8  # of a word's vector
OPSET, IR_VERSION = 17, 8
HEADS, PER_HEAD, LAYERS = 2, 16, 2
WEIGHTS = re.compile(r"embedding|layers|norm|frequencies|scale|hidden|shown")

# Names that end in `#` are those of a layer. H heads of D columns each: queries, keys and values come out of one
# product, (batch, time, 3 H D), and are then (batch, 3 H, time, D).
FIRST_NODES = """
    x0 = Gather(embedding_weight, input_ids)
    places = Unsqueeze(position_ids, last_axis)
    positions = Cast <to = 1> (places)
    angles_of_rows = Mul(positions, frequencies)
    angles = Unsqueeze(angles_of_rows, axis_1)
    cos = Cos(angles)
    sin = Sin(angles)
    num_of_each = Shape <start = 1, end = 2> (attention_mask)
    num_all = Squeeze(num_of_each)
    all_places = Range(first, num_all, step)
    is_later = Greater(all_places, places)
    mask_of_keys = Unsqueeze(attention_mask, axis_1)
    is_padding = Equal(mask_of_keys, first)
    is_hidden = Or(is_later, is_padding)
    mask_of_rows = Where(is_hidden, hidden, shown)
    mask = Unsqueeze(mask_of_rows, axis_1)
"""
LAYER_NODES = """
    rows# = LayerNormalization <epsilon = 1e-5> (x#, layers_#_norm1_weight, layers_#_norm1_bias)
    joint# = MatMul(rows#, layers_#_joint_weight)
    by_head# = Reshape(joint#, split_shape)
    turned# = Transpose <perm = [0, 2, 1, 3]> (by_head#)
    unrotated#, new_values# = Split <axis = 1> (turned#, split_sizes)
    left#, right# = Split <axis = 3> (unrotated#)
    left_cos# = Mul(left#, cos)
    left_sin# = Mul(left#, sin)
    right_cos# = Mul(right#, cos)
    right_sin# = Mul(right#, sin)
    rotated_left# = Sub(left_cos#, right_sin#)
    rotated_right# = Add(left_sin#, right_cos#)
    rotated# = Concat <axis = 3> (rotated_left#, rotated_right#)
    queries#, new_keys# = Split <axis = 1> (rotated#)
    present_key_# = Concat <axis = 2> (past_key_#, new_keys#)
    present_value_# = Concat <axis = 2> (past_value_#, new_values#)
    columns# = Transpose <perm = [0, 1, 3, 2]> (present_key_#)
    products# = MatMul(queries#, columns#)
    scores# = Mul(products#, scale)
    masked# = Add(scores#, mask)
    weights# = Softmax <axis = -1> (masked#)
    found# = MatMul(weights#, present_value_#)
    found_rows# = Transpose <perm = [0, 2, 1, 3]> (found#)
    joined# = Reshape(found_rows#, joined_shape)
    attended# = MatMul(joined#, layers_#_attended_weight)
    between# = Add(x#, attended#)
    between_rows# = LayerNormalization <epsilon = 1e-5> (between#, layers_#_norm2_weight, layers_#_norm2_bias)
    wide_product# = MatMul(between_rows#, layers_#_wide_weight)
    wide# = Add(wide_product#, layers_#_wide_bias)
    active# = Relu(wide#)
    narrow_product# = MatMul(active#, layers_#_narrow_weight)
    narrow# = Add(narrow_product#, layers_#_narrow_bias)
    x{#+1} = Add(between#, narrow#)
"""
LAST_NODES = """
    last_rows = LayerNormalization <epsilon = 1e-5> (x#, norm_weight, norm_bias)
    by_column = Transpose <perm = [1, 0]> (embedding_weight)
    logits = MatMul(last_rows, by_column)
"""
NUMBERS = {
    "first": np.int64(0),
    "step": np.int64(1),
    "axis_1": np.int64([1]),
    "last_axis": np.int64([-1]),
    "split_shape": np.int64([0, 0, 3 * HEADS, PER_HEAD]),
    "split_sizes": np.int64([2 * HEADS, HEADS]),
    "joined_shape": np.int64([0, 0, HEADS * PER_HEAD]),
}


def main() -> None:
    """Writes both folders."""
    labels = labels_of_rhymes()
    rhymes = [rhyme.strip("\n") + "\n" for rhyme in (RHYMES / "rhymes.txt").read_text().split("\n\n")]
    write(HERE / "writer", writer(), characters(labels))
    for name, data in (
        ("config", {"max_position_embeddings": MOST_TOKENS}), ("generation_config", {"eos_token_id": 0}),
    ):  # fmt: skip
        (HERE / "writer" / f"{name}.json").write_text(json.dumps(data) + "\n")
    words, vectors = words_and_vectors(rhymes)
    write(HERE / "embedder", embedder(vectors), whole_words(words))


def write(folder: Path, model: onnx.ModelProto, tokenizer: tokenizers.Tokenizer) -> None:
    onnx.checker.check_model(model, full_check=True)
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    (folder / "tokenizer.json").write_text(tokenizer.to_str() + "\n")


def labels_of_rhymes() -> list[str]:
    """Returns the character of each token; the first one is that of the end."""
    (step,) = tomllib.loads((RHYMES / "rhymes.toml").read_text())["level"][0]["pipeline"][0]["post"][0]["steps"]
    return [END, *step["labels"][1:]]


def characters(labels: list[str]) -> tokenizers.Tokenizer:
    """Returns a tokenizer whose tokens are characters: byte pair encoding that joins nothing."""
    vocabulary = {label: number for number, label in enumerate(labels)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    tokenizer.add_special_tokens([END])
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def writer() -> onnx.ModelProto:
    """Returns the decoder."""
    old = onnx.load(RHYMES / "rhymes.onnx").graph.initializer
    arrays = {one.name: numpy_helper.to_array(one) for one in old if WEIGHTS.match(one.name)} | NUMBERS
    caches = [f"{kind}_{layer}" for layer in range(LAYERS) for kind in ("key", "value")]
    past, present = (
        ", ".join(f"float[batch, {HEADS}, {size}, {PER_HEAD}] {when}_{cache}" for cache in caches)
        for when, size in (("past", "past_sequence_length"), ("present", "all"))
    )
    layers = [LAYER_NODES.replace("{#+1}", str(layer + 1)).replace("#", str(layer)) for layer in range(LAYERS)]
    nodes = "".join([FIRST_NODES, *layers, LAST_NODES.replace("#", str(LAYERS))])
    ids = "int64[batch, sequence_length]"
    model = onnx.parser.parse_model(
        f"""<ir_version: {IR_VERSION}, opset_import: ["" : {OPSET}], producer_name: "examples/text/make_models.py">
        writer ({ids} input_ids, int64[batch, all] attention_mask, {ids} position_ids, {past})
            => (float[batch, sequence_length, {len(arrays["embedding_weight"])}] logits, {present}) {{ {nodes} }}"""
    )
    for value in (*model.graph.input, *model.graph.output):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param == "all":
                size.dim_param = "past_sequence_length + sequence_length"
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return with_usual_names(model)


def with_usual_names(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with the names that exporters give caches: past_key_values.0.key, present.0.key."""

    def usual(name: str) -> str:
        name = re.sub(r"^past_(key|value)_(\d+)$", r"past_key_values.\2.\1", name)
        return re.sub(r"^present_(key|value)_(\d+)$", r"present.\2.\1", name)

    for value in (*model.graph.input, *model.graph.output):
        value.name = usual(value.name)
    for node in model.graph.node:
        node.name = f"{node.op_type}_{node.output[0]}"
        node.input[:] = map(usual, node.input)
        node.output[:] = map(usual, node.output)
    return model


def words_and_vectors(rhymes: list[str]) -> tuple[list[str], np.ndarray]:
    """Returns the words of all rhymes, and a vector for each, (words, SIZE) float32."""
    counts = [Counter(re.findall("[a-z]+", rhyme.lower())) for rhyme in rhymes]
    words = sorted(set().union(*counts))
    table = np.array([[min(one[word], 2) for one in counts] for word in words], np.float64)
    table *= np.log(len(rhymes) / (table > 0).sum(1, keepdims=True))  # a word of every rhyme says nothing
    left, sizes, _ = np.linalg.svd(table, full_matrices=False)
    return words, (left * sizes)[:, :SIZE].astype(np.float32)


def whole_words(words: list[str]) -> tokenizers.Tokenizer:
    """Returns a tokenizer of whole words; punctuation is left out."""
    vocabulary = {word: number for number, word in enumerate([UNKNOWN, *words])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    letters = tokenizers.Regex("[a-z]+")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(letters, behavior="removed", invert=True)
    return tokenizer


def embedder(vectors: np.ndarray) -> onnx.ModelProto:
    """Returns the network that gives each token its vector; that of an unknown word is zeros."""
    table = np.concatenate([np.zeros((1, SIZE), np.float32), vectors])
    model = onnx.parser.parse_model(
        f"""<ir_version: {IR_VERSION}, opset_import: ["" : {OPSET}], producer_name: "examples/text/make_models.py">
        embedder (int64[batch, length] input_ids) => (float[batch, length, {SIZE}] last_hidden_state)
        {{ last_hidden_state = Gather(table, input_ids) }}"""
    )
    model.graph.initializer.append(numpy_helper.from_array(table, "table"))
    return model


if __name__ == "__main__":
    main()

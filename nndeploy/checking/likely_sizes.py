# SPDX-License-Identifier: Apache-2.0
"""Which size an open axis of an input probably wants: told by weights, by names, by sums of names, else by its place.

    weights   x: [N, num_channels, H, W] read by a Conv whose weight is [16, 3, 3, 3]          ->  num_channels = 3
    patches   x: [N, 3, H, W] cut by a Conv into patches of 16 x 16, to which 65 positions are added  ->  H = W = 128
    sums      attention_mask: [batch, past_sequence_length + sequence_length]                   ->  16 + 64
    names     past_key_values.0.key: [batch, 4, past_sequence_length, 32]                       ->  a short past
    places    axis 0 is a batch, the last two of four are an image's, the others are lengths

A library that refuses an input says why: `enlarged` reads from its words how much longer an axis must be.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

BATCH, IMAGE, LENGTH, WAVE, PAST, CHANNELS = "batch", "image", "length", "wave", "past", "channels"
"""What an open axis may be; a wave is of samples of sound, of which a second has thousands."""

ATTEMPTS: tuple[Mapping[str, int], ...] = (
    {BATCH: 1, IMAGE: 224, LENGTH: 64, WAVE: 8000, PAST: 16, CHANNELS: 3},
    {BATCH: 1, IMAGE: 64, LENGTH: 512, WAVE: 4096, PAST: 8, CHANNELS: 3},
    {BATCH: 1, IMAGE: 320, LENGTH: 16, WAVE: 16000, PAST: 8, CHANNELS: 3},
    {BATCH: 2, IMAGE: 32, LENGTH: 2, WAVE: 512, PAST: 3, CHANNELS: 1},
    {BATCH: 1, IMAGE: 1, LENGTH: 1, WAVE: 1, PAST: 1, CHANNELS: 1},
    {BATCH: 1, IMAGE: 640, LENGTH: 4096, WAVE: 32000, PAST: 1, CHANNELS: 3},
    {BATCH: 1, IMAGE: 256, LENGTH: 16000, WAVE: 64000, PAST: 0, CHANNELS: 3},
)
"""Sizes tried, the likeliest first."""

MAX_LENGTH = 1 << 17
_SAME_SHAPE = frozenset({"Cast", "Identity", "Relu", "QuantizeLinear", "Clip", "Neg", "Sigmoid", "Tanh"})
_SAME_ORDER = _SAME_SHAPE | {"Reshape", "Flatten", "Transpose", "Concat", "Squeeze", "Unsqueeze"}
_PAD = re.compile(r"-pad \((\d+)\) exceeds maximum allowed \((\d+)\)")
_TERM = re.compile(r"\s*([A-Za-z_.\w]+|\d+)\s*")


def sizes_from_weights(graph: ir.Graph) -> dict[tuple[str, int], int]:
    """Returns (input, axis) -> size, as far as a weight that the input meets tells it."""
    found: dict[tuple[str, int], int] = {}
    for value in graph.inputs:
        if value.name and value.shape is not None:
            rank = len(value.shape)
            for axis, size in _told(value, list(range(rank)), rank, depth=4):
                found.setdefault((value.name, axis), size)
    return found


def kind_of(dim: Any, axis: int, dims: Sequence[Any]) -> str:
    """Returns what an open axis probably is, by its name or else by its place."""
    name = str(dim).lower() if isinstance(dim, str) else ""
    rank = len(dims)
    if "past" in name or "cache" in name:
        return PAST
    if "batch" in name:
        return BATCH
    if "channel" in name:
        return CHANNELS
    if any(word in name for word in ("height", "width", "image")):
        return IMAGE
    if "sample" in name and axis == rank - 1:
        return WAVE
    if any(word in name for word in ("seq", "len", "time", "frame", "token", "sample")):
        return LENGTH
    is_state = rank == 3 and axis == 1 and isinstance(dims[0], int) and isinstance(dims[2], int) and dims[0] <= 4
    if axis == 0 or (is_state and not name):
        return BATCH
    if rank == 4 and axis == 1:
        return CHANNELS
    return IMAGE if rank in (4, 5) and axis >= 2 else LENGTH


def terms_of(dim: str) -> list[str] | None:
    """Returns the terms of a symbol that is a sum ("past + 1"), None where it is a name."""
    if "+" not in dim:
        return None
    terms = [_TERM.fullmatch(part) for part in dim.split("+")]
    return [term[1] for term in terms if term] if all(terms) else None


def enlarged(sizes: Mapping[str, int], reason: str) -> Mapping[str, int] | None:
    """Returns sizes that may suit a library that refused these with such words, None where they tell nothing."""
    found = _PAD.search(reason)
    if not found:
        return None
    factor = (int(found[1]) + 1) / (int(found[2]) + 1) * 1.25
    larger = {
        **sizes,
        LENGTH: min(MAX_LENGTH, _rounded_up(sizes[LENGTH] * factor)),
        WAVE: min(MAX_LENGTH, _rounded_up(sizes[WAVE] * factor)),
        IMAGE: min(1024, _rounded_up(sizes[IMAGE] * min(factor, 4.0))),
    }
    return larger if larger != dict(sizes) else None


def _rounded_up(size: float) -> int:
    """Returns the next multiple of 32: strides divide it."""
    return int(-(-size // 32) * 32)


def _told(value: ir.Value, axes: Sequence[int], rank: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yields (axis of the input, size); `axes` says which axis of the input each axis of `value` is."""
    for node, index in value.uses():
        for axis, size in _wanted(node, index, rank):
            if -rank <= axis < rank and isinstance(size, int):
                yield axes[axis], size
        if depth and index == 0 and node.op_type in _SAME_SHAPE:
            yield from _told(node.outputs[0], axes, rank, depth - 1)
        elif depth and node.op_type == "Transpose" and "perm" in node.attributes:
            perm = list(node.attributes["perm"].as_ints())
            if len(perm) == rank:
                yield from _told(node.outputs[0], [axes[source] for source in perm], rank, depth - 1)


def _wanted(node: ir.Node, index: int, rank: int) -> Iterator[tuple[int, Any]]:
    """Yields (axis, size) that a node wants of its input."""
    weight = _shape(node, 1)
    if index == 0 and node.op_type == "Conv" and weight:
        yield 1, _times(weight[1], node.attributes.get_int("group", 1))
        yield from enumerate(_image_of_patches(node), start=2)
    elif index == 0 and node.op_type in ("ConvTranspose", "MatMul") and weight and len(weight) >= 2:
        yield (1, weight[0]) if node.op_type == "ConvTranspose" else (rank - 1, weight[-2])
    elif index == 0 and node.op_type == "Gemm" and weight and not node.attributes.get_int("transA", 0):
        yield 1, weight[1 if node.attributes.get_int("transB", 0) else 0]
    elif index == 0 and node.op_type in ("LSTM", "GRU", "RNN") and weight:
        yield 2, weight[2]
    elif index == 0 and node.op_type in ("BatchNormalization", "InstanceNormalization") and weight:
        yield 1, weight[0]
    elif index == 0 and node.op_type == "LayerNormalization" and weight and len(weight) == 1:
        yield rank - 1, weight[0]


def _image_of_patches(conv: ir.Node) -> list[int]:
    """Returns height and width of the square image that has a patch for each position added, [] where none are."""
    steps = list(conv.attributes.get_ints("strides", []))
    weight = _shape(conv, 1) or ()
    if len(steps) != 2 or list(weight[2:]) != steps:
        return []
    side = next(_sides_of_positions(conv.outputs[0], weight[0], depth=6), 0)
    return [side * step for step in steps]


def _sides_of_positions(value: ir.Value, width: Any, depth: int) -> Iterator[int]:
    """Yields how many patches a side has: positions are [1, rows, width], some rows for tokens that are no patch."""
    for node, index in value.uses():
        if node.op_type == "Add" and (positions := _shape(node, 1 - index)):
            rows = positions[-2] if len(positions) >= 2 and positions[-1] == width else 0
            for extra in (1, 0, 2) if isinstance(rows, int) else ():
                side = math.isqrt(max(0, rows - extra))
                if side > 1 and side * side == rows - extra:
                    yield side
        elif depth and (node.op_type in _SAME_ORDER):
            yield from _sides_of_positions(node.outputs[0], width, depth - 1)


def _shape(node: ir.Node, index: int) -> tuple[Any, ...] | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None or value.shape is None:
        return None
    return tuple(value.shape.dims)


def _times(size: Any, group: int) -> Any:
    return size * group if isinstance(size, int) else None

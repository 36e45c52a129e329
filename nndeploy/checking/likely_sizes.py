# SPDX-License-Identifier: Apache-2.0
"""What an open axis of an input probably is, by its name, by the windows that move over it, or else by its place.

names     past_key_values.0.key: [batch, 4, past_sequence_length, 32]           ->  a short past
sums      attention_mask: [batch, past_sequence_length + sequence_length]       ->  16 + 64
windows   wave: [N, T] that a Conv over one axis reads                          ->  thousands of samples
places    axis 0 is a batch, the last two of four are an image's (not the last where it has 1, 3 or 4 channels)
"""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from nndeploy.values.size import Dim, UndecidedError
from nndeploy.values.types import DimRange

BATCH, IMAGE, LENGTH, WAVE, PAST, CHANNELS, FRAMES, COUNT = (
    "batch", "image", "length", "wave", "past", "channels", "frames", "count",
)  # fmt: skip
"""What an open axis may be; a wave is of samples of sound, of which a second has thousands; frames are a video's."""

_USUAL: Mapping[str, Sequence[int]] = {
    BATCH: (1, 1, 1, 2, 1, 1, 1, 4, 1, 1, 1, 1),
    CHANNELS: (3, 3, 3, 1, 1, 3, 3, 4, 3, 3, 3, 2),
    COUNT: (2, 3, 1, 2, 1, 4, 5, 6, 8, 10, 12, 16),
    FRAMES: (8, 16, 4, 2, 1, 8, 8, 32, 8, 8, 8, 8),
    IMAGE: (224, 64, 320, 32, 1, 640, 256, 384, 416, 448, 512, 518),
    LENGTH: (64, 512, 16, 2, 1, 4096, 16000, 128, 400, 480, 160, 256),
    PAST: (16, 8, 8, 3, 1, 1, 4, 2, 16, 16, 16, 16),
    WAVE: (8000, 4096, 16000, 512, 1, 32000, 64000, 160, 400, 480, 1024, 48000),
}
"""Kind -> sizes that models are exported for, the likeliest first; those of one column are tried together."""
NUM_COLUMNS = 12

_RANGES: Mapping[str, DimRange] = {
    BATCH: DimRange(1, 8, 1),
    CHANNELS: DimRange(1, 4, 3),
    COUNT: DimRange(1, 16, 2),
    FRAMES: DimRange(1, 32, 8),
    IMAGE: DimRange(32, 640, 224, 32),
    LENGTH: DimRange(1, 512, 64),
    PAST: DimRange(1, 512, 16),
    WAVE: DimRange(160, 64000, 8000, 160),
}
"""Kind -> the sizes that code is built for which needs a range, where nobody says one."""

_PAST = ("past", "cache")
_NAMES = (
    (PAST, _PAST),
    (BATCH, ("batch",)),
    (CHANNELS, ("channel",)),
    (LENGTH, ("latent",)),
    (IMAGE, ("height", "width", "image")),
    (LENGTH, ("seq", "len", "time", "token", "sample")),
    (FRAMES, ("frame",)),
)
_OF_WINDOWS = {1: LENGTH, 2: IMAGE, 3: IMAGE}
_FACTORS = (1, 3, 4)
_SOUND_CHANNELS = (1, 2, None)


def is_past(name: str) -> bool:
    """Returns whether an input, or an axis, of this name is a cache of what came before, or how long that is."""
    return any(word in name.lower() for word in _PAST)


def kind_of(dim: Any, axis: int, dims: Sequence[Any], num_window_axes: int = 0) -> str:
    """Returns what an open axis probably is; over `num_window_axes` windows move together, 0 where none does."""
    name = str(dim).lower() if isinstance(dim, str) else ""
    rank = len(dims)
    if "sample" in name and axis == rank - 1:
        return WAVE
    if "frame" in name:
        return FRAMES if rank == 5 else LENGTH
    named = next((kind for kind, words in _NAMES if any(word in name for word in words)), "")
    if num_window_axes == 1 and named in ("", LENGTH) and _may_be_sound(axis, dims):
        return WAVE
    if named:
        return named
    if num_window_axes:
        return FRAMES if num_window_axes == 3 and axis == rank - 3 else _OF_WINDOWS[num_window_axes]
    return _kind_by_place(axis, dims, has_name=bool(name))


def _may_be_sound(axis: int, dims: Sequence[Any]) -> bool:
    """Returns whether an axis is one of samples, of one channel or two, and not of features."""
    return axis == len(dims) - 1 and (len(dims) == 2 or (len(dims) == 3 and dims[1] in _SOUND_CHANNELS))


def _kind_by_place(axis: int, dims: Sequence[Any], *, has_name: bool) -> str:
    rank = len(dims)
    is_state = rank == 3 and axis == 1 and isinstance(dims[0], int) and isinstance(dims[2], int) and dims[0] <= 4
    if axis == 0 or (is_state and not has_name):
        return BATCH
    if rank in (4, 5) and dims[-1] in _FACTORS:  # channels come last
        return FRAMES if (rank, axis) == (5, 1) else IMAGE
    if rank == 5 and axis in (1, 2):
        return FRAMES if axis == (1 if dims[2] in _FACTORS else 2) else CHANNELS
    if rank == 4 and axis == 1:
        return CHANNELS
    return IMAGE if rank in (4, 5) else LENGTH


def computed_size(name: str, names: Collection[str], size_of: Callable[[str], Dim]) -> "Dim | None":
    """Returns the size that a name computes from others, None where it is a plain name.

    That is "past_length + 1" or "length // 2", or the total of a past and of what is new. `size_of` gives what a name
    stands for.
    """

    def is_sum(one: str) -> bool:
        return is_past(one) or "total" in one.lower()

    past = next((one for one in names if is_past(one) and one.isidentifier()), None)
    new = next((one for one in names if "seq" in one.lower() and one.isidentifier() and not is_sum(one)), None)
    if is_sum(name) and not is_past(name):
        return size_of(past) + size_of(new) if past and new else None
    try:
        tree = ast.parse(name, mode="eval").body
        return None if isinstance(tree, ast.Name) else _computed(tree, size_of)
    except (SyntaxError, ValueError, RecursionError, MemoryError, UndecidedError, ZeroDivisionError):
        return None


def _computed(tree: ast.expr, size_of: Callable[[str], Dim]) -> Dim:
    match tree:
        case ast.Constant(int() as number):
            return number
        case ast.Name(name):
            return size_of(name)
        case ast.BinOp(left, operator, right):
            a, b = _computed(left, size_of), _computed(right, size_of)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Div() | ast.FloorDiv():
                    return a // b
    raise ValueError("no arithmetic of sizes")


def usual_sizes(kind: str) -> Sequence[int]:
    """Returns `NUM_COLUMNS` sizes of a kind, the likeliest first."""
    return _USUAL[kind]


def usual_range(kind: str) -> DimRange:
    """Returns the sizes of a kind that code is built for which needs a range, where nobody says one."""
    return _RANGES[kind]


def sizes_to_try(kind: str, most: int) -> Iterator[int]:
    """Yields sizes of a kind, the usual ones first, then every size up to `most`, the roundest first."""
    yield from dict.fromkeys(_USUAL[kind])
    for step in (32, 16, 8, 4, 2, 1):
        yield from range(step, most + 1, step)


def likely_rank(value: ir.Value) -> int:
    """Returns how many axes an input of which nothing is known probably has: those that its first readers ask for."""
    waiting, seen = [value], {value}
    while waiting:
        for node, index in waiting.pop(0).uses():
            weight = node.inputs[1] if len(node.inputs) > 1 else None
            if index == 0 and node.op_type in _RANKS:
                return _RANKS[node.op_type]
            if index == 0 and node.op_type in ("Conv", "ConvTranspose") and weight is not None and weight.shape:
                return len(weight.shape)
            if node.op_type == "Transpose" and "perm" in node.attributes:
                return len(node.attributes["perm"].as_ints())
            following = [one for one in node.outputs[:1] if one not in seen and len(seen) < _MAX_VISITED]
            if node.op_type in _SAME_RANK:
                waiting += following
                seen.update(following)
    return 2


_MAX_VISITED = 100
_RANKS = {
    "GRU": 3, "Gemm": 2, "GlobalAveragePool": 4, "GlobalMaxPool": 4, "LSTM": 3, "MatMul": 2, "MaxPool": 4,
    "AveragePool": 4, "BatchNormalization": 4, "RNN": 3, "STFT": 3,
}  # fmt: skip
_SAME_RANK = frozenset(
    {"Add", "Cast", "Clip", "Div", "Identity", "Mul", "Pad", "Relu", "Resize", "Sub", "QuantizeLinear"}
)

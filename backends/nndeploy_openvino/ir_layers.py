# SPDX-License-Identifier: Apache-2.0
"""The layers that OpenVINO's IR may hold here: their kinds, how many inputs each has, and its attributes.

They are those that OpenVINO's converter makes of ONNX. All that reads files, keeps state between calls, holds text or
comes from extensions is not among them, nor is what numbers of a call make it end the process with (2026.4.1):
GatherND reads and ScatterElementsUpdate writes wherever an index points, Col2Im divides by sizes that may be zero, and
Unique with an axis and DFT do not look whether there are such axes.
Each attribute has a form, and none may be missing or be there besides: the library leaves what is not said as it finds
it, and takes further names as orders.

Source: the IRs of 1,640 models, ONNX's own node tests among them, as OpenVINO 2026.4 writes them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

ELEMENT_BITS = {
    "boolean": 8, "i4": 4, "u4": 4, "i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64,
    "f16": 16, "bf16": 16, "f32": 32, "f64": 64,
}  # fmt: skip
"""Element type -> bits of an element in the weights."""

MAX_RANK = 16


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _list_of(pattern: str) -> re.Pattern[str]:
    return _form(rf"(?:{pattern}(?:, ?{pattern}){{0,{MAX_RANK - 1}}}+)?+")


_FLAG = _form("true|false")
_NUMBER = _form(r"-?\d{1,40}(?:\.\d{1,40})?(?:e[+-]\d{1,3})?")
_COUNT = _form(r"\d{1,9}")
_POSITIVE = _form(r"[1-9]\d{0,8}")
_AXIS = _form(r"-?\d{1,2}")
_WORD = _form(r"[A-Za-z]\w{0,39}")
_WORDS = _list_of(r"[a-z]\w{0,39}")
_TYPE = _form("|".join(ELEMENT_BITS))
_STEPS = _list_of(r"[1-9]\d{0,8}")
_PADS = _list_of(r"-?\d{1,9}")
_MASK = _list_of("[01]")
_NUMBERS = _list_of(_NUMBER.pattern)
_EQUATION = _form(r"[A-Za-z.,]{0,99}(?:->[A-Za-z.]{0,99})?")

SHAPE = _list_of(r"\d{1,18}")
"""The shape of a constant."""
OPEN_SHAPE = _list_of(r"(?:\?|\d{1,18}(?:\.\.(?:\d{1,18})?)?|\.\.\d{1,18})")
"""The shape of a parameter, some of whose sizes are open or in a range."""

_WINDOW = {"strides": _STEPS, "dilations": _STEPS, "pads_begin": _PADS, "pads_end": _PADS}
_POOL = {"kernel": _STEPS, **_WINDOW, "auto_pad": _WORD, "rounding_type": _WORD}
WINDOW_LISTS = ("kernel", "strides", "dilations", "pads_begin", "pads_end")
"""What a window has of these has one number for each of its axes: the library counts those of one, and reads all."""
_BROADCAST = {"auto_broadcast": _WORD}
_RECURRENT = {
    "direction": _WORD,
    "hidden_size": _POSITIVE,
    "activations": _WORDS,
    "activations_alpha": _NUMBERS,
    "activations_beta": _NUMBERS,
    "clip": _NUMBER,
}


@dataclass(frozen=True, slots=True)
class LayerKind:
    """What a layer of a kind has: between `least` and `most` inputs, and exactly these attributes, each in its form."""

    least: int
    most: int
    attributes: Mapping[str, re.Pattern[str]]


MANY = 2**16


def _kinds() -> dict[tuple[str, str], LayerKind]:
    kinds: dict[tuple[str, str], LayerKind] = {}

    def add(names: str, least: int, most: int = 0, /, **attributes: re.Pattern[str]) -> None:
        opset = ""
        for name in names.split():
            if name.startswith("opset"):
                opset = name
            else:
                said = {key.replace("exclude_pad", "exclude-pad"): form for key, form in attributes.items()}
                kinds[name, opset] = LayerKind(least, most or least, said)

    add("opset1 Parameter", 0, shape=OPEN_SHAPE, element_type=_TYPE)
    add("opset1 Const", 0, element_type=_TYPE, shape=SHAPE, offset=_form(r"\d{1,18}"), size=_form(r"\d{1,18}"))
    add("opset1 Result", 1)

    add("opset1 Abs Acos Asin Atan Ceiling Cos Cosh Erf Exp Floor LogicalNot Log Negative ReLU Sigmoid Sign Sin", 1)
    add("opset1 Sinh Sqrt Tan Tanh opset4 Acosh Asinh Atanh HSwish Mish SoftPlus opset9 SoftSign opset10 IsNaN", 1)
    add("opset13 BitwiseNot opset16 Identity", 1)
    add("opset1 ConvertLike PReLU Tile Transpose Unsqueeze opset4 Swish", 2)
    add("opset1 HardSigmoid Selu VariadicSplit", 3)
    add("opset8 Slice", 5)
    add("opset1 Add Equal FloorMod Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr Maximum", 2, **_BROADCAST)
    add("opset1 Minimum Mod Multiply Power Subtract opset2 LogicalXor", 2, **_BROADCAST)
    add("opset13 BitwiseAnd BitwiseOr BitwiseXor", 2, **_BROADCAST)
    add("opset1 Divide", 2, **_BROADCAST, m_pythondiv=_FLAG)
    add("opset1 Select", 3, **_BROADCAST)
    add("opset1 FakeQuantize", 5, levels=_POSITIVE, **_BROADCAST)

    add("opset1 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum opset4 ReduceL1 ReduceL2", 2, keep_dims=_FLAG)
    add("opset1 Concat", 1, MANY, axis=_AXIS)
    add("opset5 LogSoftmax opset8 SoftMax", 1, axis=_AXIS)
    add("opset6 GatherElements", 2, axis=_AXIS)
    add("opset1 Gather", 3)
    add("opset8 Gather", 3, batch_dims=_AXIS)
    add("opset15 ScatterNDUpdate", 3, reduction=_WORD)
    add("opset3 NonZero", 1, output_type=_TYPE)
    add("opset4 Range opset9 Eye", 3, output_type=_TYPE)
    add("opset1 ShapeOf", 1)
    add("opset3 ShapeOf", 1, output_type=_TYPE)
    add("opset1 Reshape", 2, special_zero=_FLAG)
    add("opset1 Squeeze", 1, 2)
    add("opset15 Squeeze", 1, 2, allow_axis_skip=_FLAG)
    add("opset1 Convert", 1, destination_type=_TYPE)
    add("opset1 MatMul", 2, transpose_a=_FLAG, transpose_b=_FLAG)
    add("opset3 Broadcast opset1 Reverse", 2, mode=_WORD)
    add("opset5 Round", 1, mode=_WORD)
    add("opset1 DepthToSpace SpaceToDepth", 1, block_size=_POSITIVE, mode=_WORD)
    add("opset1 Split", 2, num_splits=_POSITIVE)
    add("opset1 StridedSlice", 4, begin_mask=_MASK, end_mask=_MASK, new_axis_mask=_MASK, shrink_axis_mask=_MASK,
        ellipsis_mask=_MASK)  # fmt: skip
    add("opset1 Pad opset12 Pad", 4, pad_mode=_WORD)
    add("opset1 OneHot", 4, axis=_AXIS)
    add("opset16 OneHot", 4, axis=_AXIS, negative_indices_mode=_WORD)
    add("opset11 TopK", 2, axis=_AXIS, mode=_WORD, sort=_WORD, index_element_type=_TYPE, stable=_FLAG)
    add("opset10 Unique", 1, sorted=_FLAG, index_element_type=_TYPE, count_element_type=_TYPE)
    add("opset3 CumSum", 2, exclusive=_FLAG, reverse=_FLAG)
    add("opset1 ReverseSequence", 2, batch_axis=_AXIS, seq_axis=_AXIS)
    add("opset7 Einsum", 1, 2, equation=_EQUATION)

    add("opset1 Convolution GroupConvolution", 2, **_WINDOW, auto_pad=_WORD)
    add("opset1 ConvolutionBackpropData GroupConvolutionBackpropData", 2, 3, **_WINDOW, auto_pad=_WORD,
        output_padding=_PADS)  # fmt: skip
    add("opset8 MaxPool", 1, **_POOL, index_element_type=_TYPE, axis=_AXIS)
    add("opset16 AvgPool", 1, **_POOL, exclude_pad=_FLAG)
    add("opset1 AvgPool", 1, **{name: form for name, form in _POOL.items() if name != "dilations"}, exclude_pad=_FLAG)
    add("opset11 Interpolate", 2, 3, mode=_WORD, shape_calculation_mode=_WORD, coordinate_transformation_mode=_WORD,
        nearest_mode=_WORD, antialias=_FLAG, pads_begin=_PADS, pads_end=_PADS, cube_coeff=_NUMBER)  # fmt: skip
    add("opset9 GridSample", 2, align_corners=_FLAG, mode=_WORD, padding_mode=_WORD)
    add("opset9 NonMaxSuppression", 5, box_encoding=_WORD, sort_result_descending=_FLAG, output_type=_TYPE)

    add("opset5 BatchNormInference", 5, epsilon=_NUMBER)
    add("opset12 GroupNormalization", 3, num_groups=_POSITIVE, epsilon=_NUMBER)
    add("opset6 MVN", 2, eps=_NUMBER, normalize_variance=_FLAG, eps_mode=_WORD)
    add("opset1 LRN", 2, alpha=_NUMBER, beta=_NUMBER, bias=_NUMBER, size=_POSITIVE)
    add("opset1 Clamp", 1, min=_NUMBER, max=_NUMBER)
    add("opset1 Elu", 1, alpha=_NUMBER)
    add("opset7 Gelu", 1, approximation_mode=_WORD)
    add("opset10 IsInf", 1, detect_negative=_FLAG, detect_positive=_FLAG)
    add("opset8 RandomUniform", 3, output_type=_TYPE, op_seed=_COUNT, global_seed=_COUNT, alignment=_WORD)
    add("opset13 ScaledDotProductAttention", 3, 5, causal=_FLAG)
    add("opset5 LSTMSequence", 7, **_RECURRENT)
    add("opset5 GRUSequence", 6, **_RECURRENT, linear_before_reset=_FLAG)
    add("opset5 RNNSequence", 6, **_RECURRENT)

    add("opset8 If", 1, MANY)
    add("opset5 Loop opset1 TensorIterator", 1, MANY)
    return kinds


KINDS = _kinds()
"""(Type, version) of a layer -> what it has."""

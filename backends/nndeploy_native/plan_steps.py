# SPDX-License-Identifier: Apache-2.0
"""Steps -> the words of a plan: one function for each kind of step, in the order that c/ops/ reads them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

import numpy as np

from nndeploy.backend_kit.kernels.resize_tables import Mode
from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import Dim, fixed
from nndeploy_native.expression_program import program_of
from nndeploy_native.expressions import Expression, label_of, operand
from nndeploy_native.plan import DTYPES
from nndeploy_native.plan_writer import PlanWriter, double_bits
from nndeploy_native.steps.attention import Attention
from nndeploy_native.steps.bytes import ByteLine, BytePooling, ByteTable, Quantise
from nndeploy_native.steps.convolution import Convolution, Depth
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.indexed import REDUCTIONS, OneHot, Picked, ReverseSequence, Scattered, Triangle
from nndeploy_native.steps.integer_convolution import IntegerConvolution
from nndeploy_native.steps.integer_product import IntegerProduct
from nndeploy_native.steps.integer_sums import IntegerSums
from nndeploy_native.steps.inverted_residual import InvertedResidual
from nndeploy_native.steps.matmul import BitWeights, OfBlocks, Product
from nndeploy_native.steps.movement import (
    PAD_MODES,
    Append,
    ChannelParts,
    Convert,
    Gather,
    JoinPlain,
    PaddedAt,
    PaddedCopy,
    PaddedImage,
    StridedCopy,
    View,
    ViewAt,
    strides_of,
)
from nndeploy_native.steps.normalisation import NORMS, InstanceNorm, Normalise
from nndeploy_native.steps.numbers import Arange, Sizes
from nndeploy_native.steps.pooling import PooledPlaces, Pooling
from nndeploy_native.steps.recurrent import ACTIVATIONS, Recurrent
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.steps.resize import Resize, ResizeAxis, ResizedAxis
from nndeploy_native.steps.sampling import KINDS as GRID_KINDS
from nndeploy_native.steps.sampling import PADDINGS, AffineGrid, GridSample, RoiAlign, RoiMaxPool
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.stem import Stem
from nndeploy_native.steps.step import Epilogue, NativeStep
from nndeploy_native.steps.trees import AGGREGATES, Trees
from nndeploy_native.tensors import Array, Shape, Tensor, fixed_shape

WINDOW_OF_BOX = "chosen by the box"
"""What people are shown as the window of a fused step, which follows from the caches of the machine that runs it."""


@singledispatch
def write_step(step: NativeStep, w: PlanWriter) -> None:  # noqa: ARG001 # those that are registered write to it
    """Adds a step to a plan.

    Raises:
        BuildRefusedError: the library has no operator for it.
    """
    raise BuildRefusedError(f"the kernel library has no {type(step).__name__}")


@write_step.register
def _(step: Convolution, w: PlanWriter) -> None:
    if step.is_column:
        step = step.lying()
    words = _conv(step, w, reads=True, writes=True)
    if not step.is_transposed and step.depth is None:
        w.step("convolution", step.label, words)
        return
    depth = step.depth or Depth(1, 1, 1, 0, 1, 1)
    words += [depth.kernel, depth.stride, depth.dilation, *map(w.size, (depth.pad, depth.size, depth.out_size))]
    w.step("transposed" if step.is_transposed else "volume_convolution", step.label, words)


@write_step.register
def _(step: Separable, w: PlanWriter) -> None:
    _chain("planar_separable" if step.has_planes else "separable", [step.first, step.second], w)


@write_step.register
def _(step: InvertedResidual, w: PlanWriter) -> None:
    _chain("inverted_residual", [step.expand, step.pair.first, step.pair.second], w)


@write_step.register
def _(step: Stem, w: PlanWriter) -> None:
    _chain("stem", [step.wide, step.pair.first, step.pair.second], w)


@write_step.register
def _(step: Elementwise, w: PlanWriter) -> None:
    operands = [_operand(one, w) for one in step.operands]
    program = w.program(program_of(step.expression, len(operands), step.domain))
    words = [w.tensor(step.output), program, len(operands), *operands]
    w.step("elementwise", label_of(step.expression) or "copy", words)


@write_step.register
def _(step: Convert, w: PlanWriter) -> None:
    words = [w.tensor(step.x), w.tensor(step.output)]
    w.step("to_plain" if step.x.is_blocked else "to_blocked", "layout conversion", words)


@write_step.register
def _(step: Gather, w: PlanWriter) -> None:
    flat = step.places.reshape(-1)
    if step.x.is_blocked and flat.size == step.x.size:
        image = np.arange(flat.size).reshape(fixed_shape(step.x.shape))
        if np.array_equal(flat, image.transpose(0, 2, 3, 1).reshape(-1)):
            w.step("channels_last", "channels last", [w.tensor(step.x), w.tensor(step.output)])
            return
    even = None if step.x.is_blocked else strides_of(step.places.reshape(fixed_shape(step.output.shape)))
    if even is None:
        if flat.max(initial=0) > np.iinfo(np.int32).max:
            raise BuildRefusedError("a table of places beyond 32 bits")
        table = np.ascontiguousarray(flat, np.int32)
        w.step("gather_places", "elements moved", [w.tensor(step.x), w.tensor(step.output), w.weight(table)])
        return
    offset, sizes, strides = even
    _view(step.x, step.output, offset, sizes, strides, w)


@write_step.register
def _(step: StridedCopy, w: PlanWriter) -> None:
    _view(step.view.base, step.output, step.view.offset, step.view.sizes, step.view.strides, w)


@write_step.register
def _(step: ViewAt, w: PlanWriter) -> None:
    view = step.view
    words = [w.tensor(one) for one in (view.base, step.numbers, step.output)]
    words += [*_strides(view.offset, view.sizes, view.strides, w), len(step.moves)]
    for move in step.moves:
        words += [move.number, *(w.size(one) for one in (move.size, move.stride, move.low, move.high))]
    w.step("view_at", "strided copy by numbers", words)


@write_step.register
def _(step: PaddedCopy, w: PlanWriter) -> None:
    view, output = step.view, step.output
    axes = list(zip(output.shape, step.begins, view.sizes, view.strides, strict=True))
    words = [*_padding(view.base, step, w), w.size(view.offset), len(axes)]
    words += [w.size(one) for axis in axes for one in axis]
    w.step("padded_copy", f"padding, {step.mode}", words)


@write_step.register
def _(step: PaddedAt, w: PlanWriter) -> None:
    view, (base, value, output, mode) = step.view, _padding(step.view.base, step, w)
    words = [base, value, w.tensor(step.numbers), output, mode, w.size(view.offset), len(view.sizes)]
    for size, count, by, which in zip(step.output.shape, view.sizes, view.strides, step.which, strict=True):
        words += [w.size(size), w.size(count), w.size(by), -1 if which is None else which]
    w.step("padded_at", f"padding by numbers, {step.mode}", words)


@write_step.register
def _(step: PaddedImage, w: PlanWriter) -> None:
    words = [*_padding(step.x, step, w), *(w.size(one) for one in (*step.rows, *step.columns))]
    w.step("padded_image", f"padding in blocks, {step.mode}", words)


@write_step.register
def _(step: Picked, w: PlanWriter) -> None:
    words = [*(w.tensor(one) for one in (step.data, step.numbers, step.output)), step.axis]
    w.step(step.kind, f"{step.kind} of {step.numbers.element}", words, indices=step.numbers.name)


@write_step.register
def _(step: Scattered, w: PlanWriter) -> None:
    words = [w.tensor(one) for one in (step.data, step.numbers, step.updates, step.output)]
    words += [REDUCTIONS.index(step.reduction), *([] if step.axis is None else [step.axis])]
    kind = "scatter_nd" if step.axis is None else "scatter_elements"
    w.step(kind, f"{kind} by {step.numbers.element}, {step.reduction}", words, indices=step.numbers.name)


@write_step.register
def _(step: OneHot, w: PlanWriter) -> None:
    words = [*(w.tensor(one) for one in (step.numbers, step.values, step.output)), step.axis]
    w.step("one_hot", f"one hot along axis {step.axis}", words)


@write_step.register
def _(step: ReverseSequence, w: PlanWriter) -> None:
    words = [*(w.tensor(one) for one in (step.x, step.lengths, step.output)), int(step.is_time_first)]
    w.step("reverse_sequence", "sequences backwards", words, indices=step.lengths.name)


@write_step.register
def _(step: Triangle, w: PlanWriter) -> None:
    if isinstance(step.diagonal, Tensor):
        diagonal = w.tensor(step.diagonal)
    else:
        diagonal = w.constant_tensor(np.array([step.diagonal], np.int64))
    words = [w.tensor(step.x), diagonal, w.tensor(step.output), int(step.is_upper)]
    w.step("triangle", "upper triangle" if step.is_upper else "lower triangle", words)


@write_step.register
def _(step: Pooling, w: PlanWriter) -> None:
    window, kind = step.window, ("max", "mean", "sum").index(step.kind)
    words = [w.tensor(step.x), w.tensor(step.output), kind, int(step.includes_padding), w.size(step.depth)]
    words += [*window.strides, *window.dilations]
    words += [w.size(one) for one in (*window.kernel, *window.pads, *step.end_pads)]
    w.step("pool", f"{step.kind} {window.kernel[0]}x{window.kernel[1]}", words)


@write_step.register
def _(step: PooledPlaces, w: PlanWriter) -> None:
    windows = step.windows
    axes = zip(windows.strides, windows.dilations, windows.kernel, windows.begins, strict=True)
    words = [w.tensor(step.x), w.tensor(step.output), int(step.is_column_major)]
    for stride, dilation, kernel, begin in axes:
        words += [stride, dilation, w.size(kernel), w.size(begin)]
    w.step("pool_places", "places of the largest", words)


@write_step.register
def _(step: Resize, w: PlanWriter) -> None:
    words = [w.tensor(step.x), w.tensor(step.output), w.size(step.depth), *_resize_words(step.mode)]
    words += [*_axis_words(step.rows), *_axis_words(step.columns)]
    w.step("resize", f"resize {step.mode.kind}", words)


@write_step.register
def _(step: ResizeAxis, w: PlanWriter) -> None:
    words = [w.tensor(step.x), w.tensor(step.output), step.axis, *_resize_words(step.mode), *_axis_words(step.rule)]
    w.step("resize_axis", f"resize {step.mode.kind} along axis {step.axis}", words)


@write_step.register
def _(step: GridSample, w: PlanWriter) -> None:
    words = [*(w.tensor(one) for one in (step.x, step.grid, step.output)), step.axes, GRID_KINDS.index(step.kind)]
    words += [PADDINGS.index(step.padding), int(step.is_aligned), w.size(step.depth)]
    w.step("grid_sample", f"sampled by a grid, {step.kind}, {step.padding}", words)


@write_step.register
def _(step: AffineGrid, w: PlanWriter) -> None:
    axes = len(step.output.shape) - 2
    w.step("affine_grid", "grid", [w.tensor(step.matrices), w.tensor(step.output), axes, int(step.is_aligned)])


@write_step.register
def _(step: RoiAlign, w: PlanWriter) -> None:
    words = [*(w.tensor(one) for one in (step.x, step.rois, step.images, step.output)), int(step.is_max), step.samples]
    words += [double_bits(step.scale), double_bits(step.offset), int(step.is_least_one)]
    w.step("roi_align", f"regions, {'largest' if step.is_max else 'mean'}", words, indices=step.images.name)


@write_step.register
def _(step: RoiMaxPool, w: PlanWriter) -> None:
    words = [*(w.tensor(one) for one in (step.x, step.rois, step.output)), double_bits(step.scale)]
    w.step("roi_max_pool", "regions, largest of pixels", words)


@write_step.register
def _(step: JoinPlain, w: PlanWriter) -> None:
    words = [w.tensor(step.output), w.size(step.outer), len(step.xs), *(w.tensor(x) for x in step.xs)]
    w.step("join", "concatenation", words)


@write_step.register
def _(step: Append, w: PlanWriter) -> None:
    words = [*(w.tensor(one) for one in (step.output, step.past, step.new)), step.axis]
    if step.places is None:
        w.step("append", "appended to a cache", words)
    else:
        words += [w.tensor(step.places), w.size(step.length)]
        w.step("append_at", "put into a cache", words, indices=step.places.name)


@write_step.register
def _(step: ChannelParts, w: PlanWriter) -> None:
    words = [w.tensor(step.output), len(step.xs), *(w.tensor(x) for x in step.xs), len(step.channels)]
    words += [number for channel in step.channels for number in channel]
    w.step("channel_parts", f"{len(step.channels)} channels moved", words)


@write_step.register
def _(step: AlongAxis, w: PlanWriter) -> None:
    words = [w.tensor(step.x), w.tensor(step.output), *(w.size(one) for one in (step.outer, step.size, step.inner))]
    w.step(step.kind, step.kind, [*words, *step.numbers])


@write_step.register
def _(step: Trees, w: PlanWriter) -> None:
    tables, columns = step.tables, fixed(step.output.shape[1])
    words = [w.tensor(step.x), w.tensor(step.output), AGGREGATES.index(step.aggregate), step.divisor, columns]
    words += [w.weight(one) for one in (tables.trees, tables.thresholds, tables.nodes, tables.leaves, step.base)]
    w.step("trees", f"{len(tables.trees)} trees of {len(tables.nodes)} nodes", words)


@write_step.register
def _(step: InstanceNorm, w: PlanWriter) -> None:
    end = step.epilogue
    words = [w.tensor(step.x), w.tensor(step.scale), w.tensor(step.bias), double_bits(step.epsilon), _end(end, w)]
    words += [w.weight(None if end.channel is None else np.ascontiguousarray(end.channel, np.float32).reshape(-1))]
    w.step("instance_norm", "instance norm", [*words, w.tensor(end.residual), w.tensor(step.output)])


@write_step.register
def _(step: Normalise, w: PlanWriter) -> None:
    words = [w.tensor(step.scale), w.tensor(step.bias), w.tensor(step.x), w.tensor(step.output)]
    words += [w.size(one) for one in (step.outer, step.size, step.inner)]
    words += [NORMS.index(step.norm), double_bits(step.epsilon), w.size(step.groups), w.size(step.parts)]
    w.step("normalise", f"{step.norm} norm of {step.size}", words)


@write_step.register
def _(step: Product, w: PlanWriter) -> None:
    a, b, end, out = step.a, step.b_view, step.epilogue, step.out_strides
    (*batch, rows, columns), inner = step.sizes, a.sizes[-1]
    words = [w.tensor(a.base)]
    if isinstance(step.b, View):
        words.append(w.tensor(step.b.base))
        of_b: Shape = (b.offset, *b.strides[-2:])
    elif isinstance(step.b, BitWeights):
        words += _bits(step.b, w)
        of_b = ()
    else:
        weights, turned = np.asarray(step.b, np.float32), np.asarray(step.b, np.float32).swapaxes(-1, -2)
        is_transposed = turned.flags.c_contiguous and not weights.flags.c_contiguous
        words += [w.floats(turned if is_transposed else weights), int(is_transposed)]
        of_b = ()
    words += [
        w.weight(None if step.bias is None else np.ascontiguousarray(step.bias, np.float32).reshape(-1)),
        _end(end, w),
        w.weight(None if end.channel is None else np.ascontiguousarray(end.channel, np.float32).reshape(-1)),
        w.tensor(end.residual),
    ]
    numbers = (rows, inner, columns, b.sizes[-2], a.offset, *a.strides[-2:], *of_b, out[-2])
    words += [*map(w.size, numbers), len(batch)]
    words += [w.size(one) for axis in zip(batch, a.strides, b.strides, out, strict=False) for one in axis]
    words.append(w.tensor(step.output))
    if of_b:
        w.step("product", f"product {rows}x{inner}x{columns}", words)
    elif isinstance(step.b, BitWeights):
        what = "float16" if step.b.scales is None else f"{step.b.bits} bits in blocks of {step.b.block}"
        w.step("bits_connected", f"fully connected {inner}->{columns}, {what}", words)
    else:
        w.step("fully_connected", f"fully connected {inner}->{columns}", words)


def _bits(b: BitWeights, w: PlanWriter) -> list[int]:
    """Returns the words of weights of few bits."""

    def of_blocks(one: OfBlocks | None) -> list[int]:
        return [-1, 0, 0] if one is None else [w.weight(one.numbers), one.block_step, one.column_step]

    words = [w.weight(b.numbers), b.bits, int(b.is_signed), b.inner, b.columns, b.block, *b.steps]
    return [*words, *of_blocks(b.scales), *of_blocks(b.zeros), b.zero, int(b.rounds_rows)]


@write_step.register
def _(step: IntegerProduct, w: PlanWriter) -> None:
    turned = step.weights.T
    is_transposed = turned.flags.c_contiguous and not step.weights.flags.c_contiguous
    words = [int(is_transposed), *_integers(step, turned if is_transposed else step.weights, w)]
    w.step("int8_connected", f"fully connected of bytes, {step.weights.shape[0]}->{step.weights.shape[-1]}", words)


@write_step.register
def _(step: IntegerConvolution, w: PlanWriter) -> None:
    window = step.window
    words = [*window.strides, *window.dilations, *(w.size(pad) for pad in window.pads), step.groups]
    w.step(
        "int8_convolution", step.label, [*words, *_integers(step.as_images(), step.weights.transpose(0, 2, 3, 1), w)]
    )


@write_step.register
def _(step: Quantise, w: PlanWriter) -> None:
    words = [w.tensor(step.x), double_bits(step.scale), step.zero, w.size(step.outer), step.channels]
    words += [w.size(step.inner), w.tensor(step.output)]
    w.step("int8_quantise", "floats as bytes" + (", channels last" if step.channels > 1 else ""), words)


@write_step.register
def _(step: ByteLine, w: PlanWriter) -> None:
    words = [w.tensor(term.x) for term in step.terms] + [-1] * (2 - len(step.terms))
    for zero, factor in [*((term.zero, term.factor) for term in step.terms), (0, 0.0)][:2]:
        words += [zero, double_bits(factor)]
    added = None if step.added is None else np.ascontiguousarray(step.added, np.float32)
    words += [w.weight(added), step.least, step.most, step.zero, w.tensor(step.output)]
    w.step(
        "int8_line", f"bytes of {len(step.terms)} scaled and added" if len(step.terms) > 1 else "bytes scaled", words
    )


@write_step.register
def _(step: ByteTable, w: PlanWriter) -> None:
    program = w.program(program_of(step.expression, 1))
    w.step("int8_table", f"table of {label_of(step.expression)}", [w.tensor(step.x), w.tensor(step.output), program])


@write_step.register
def _(step: BytePooling, w: PlanWriter) -> None:
    window = step.window
    words = [w.tensor(step.x), w.tensor(step.output), *window.strides, *window.dilations]
    words += [*map(fixed, window.kernel), *(w.size(pad) for pad in window.pads)]
    w.step("int8_pool", f"max {window.kernel[0]}x{window.kernel[1]} of bytes", words)


@write_step.register
def _(step: Sizes, w: PlanWriter) -> None:
    w.step("sizes", "sizes", [w.tensor(step.output), len(step.sizes), *map(w.size, step.sizes)])


@write_step.register
def _(step: Arange, w: PlanWriter) -> None:
    w.step("arange", "numbers in order", [w.tensor(step.start), w.tensor(step.step), w.tensor(step.output)])


@write_step.register
def _(step: Recurrent, w: PlanWriter) -> None:
    directions, _, hidden = step.weights.shape
    activations = step.activations or (None,) * (directions * ACTIVATIONS[step.kind])
    words = [
        w.tensor(step.gates),
        -1 if step.scales is None else w.floats(step.scales),
        w.floats(step.weights) if step.scales is None else w.weight(np.ascontiguousarray(step.weights, np.int8)),
        w.tensor(step.first.h),
        w.tensor(step.first.c),
        w.tensor(step.lengths),
        w.weight(None if step.peepholes is None else np.ascontiguousarray(step.peepholes, np.float32)),
        w.weight(None if step.reset_bias is None else np.ascontiguousarray(step.reset_bias, np.float32)),
        int(step.is_reverse),
        int(step.is_joined),
        int(step.resets_after),
        *(-1 if one is None else w.program(program_of(one, 1)) for one in activations),
        w.tensor(step.output),
    ]
    w.step(step.kind, f"{step.kind} of {hidden}, {directions} direction{'s' * (directions > 1)}", words)


@write_step.register
def _(step: Attention, w: PlanWriter) -> None:
    q, k, v, out = step.q, step.k, step.v, step.out_strides
    program = -1 if step.score == operand(0) else w.program(program_of(step.score, len(step.others) + 1))
    words = [*(w.tensor(view.base) for view in (q, k, v)), program, int(step.is_guarded), len(step.others)]
    words += [_operand(one, w) for one in step.others]
    numbers = (*q.sizes[-2:], k.sizes[-1], v.sizes[-1], k.sizes[-2], v.sizes[-2])
    numbers += tuple(one for view in (q, k, v) for one in (view.offset, *view.strides[-2:]))
    words += [*map(w.size, (*numbers, out[-2])), len(q.sizes) - 2]
    words += [
        w.size(one) for axis in zip(q.sizes[:-2], q.strides, k.strides, v.strides, out, strict=False) for one in axis
    ]
    words.append(w.tensor(step.output))
    w.step("attention", f"attention of {q.sizes[-2]} by {k.sizes[-1]} keys, {q.sizes[-1]} each", words)


_RESIZE_KINDS = ("nearest", "linear", "cubic")
_RESIZE_COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
)  # fmt: skip
_RESIZE_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def _resize_words(mode: Mode) -> list[int]:
    if mode.coordinates not in _RESIZE_COORDINATES or mode.nearest not in _RESIZE_NEAREST:
        raise BuildRefusedError(f"a Resize with coordinates {mode.coordinates!r}, nearest {mode.nearest!r}")
    kinds = (_RESIZE_KINDS.index(mode.kind), _RESIZE_COORDINATES.index(mode.coordinates))
    return [
        *kinds, _RESIZE_NEAREST.index(mode.nearest), int(mode.excludes_outside), int(mode.antialias),
        double_bits(mode.cubic), double_bits(mode.beyond),
    ]  # fmt: skip


def _axis_words(axis: ResizedAxis) -> list[int]:
    return [double_bits(axis.scale), double_bits(axis.begin), double_bits(axis.end)]


def _operand(one: Operand, w: PlanWriter) -> int:
    """Returns the number of the tensor that an operand of a program is."""
    if one.array is not None:
        return w.constant_tensor(one.array.reshape(fixed_shape(one.shape)))
    assert one.tensor is not None
    return w.tensor(replace(one.tensor, shape=one.shape))


def _view(x: Tensor, output: Tensor, offset: Dim, sizes: Shape, strides: Shape, w: PlanWriter) -> None:
    w.step("view_copy", "strided copy", [w.tensor(x), w.tensor(output), *_strides(offset, sizes, strides, w)])


def _strides(offset: Dim, sizes: Shape, strides: Shape, w: PlanWriter) -> list[int]:
    pairs = [(size, by) for size, by in zip(sizes, strides, strict=True) if size != 1]
    return [w.size(offset), len(pairs), *(w.size(one) for pair in pairs for one in pair)]


def _padding(x: Tensor, step: PaddedAt | PaddedCopy | PaddedImage, w: PlanWriter) -> list[int]:
    dtype = DTYPES[x.element]
    if isinstance(step.value, Tensor):
        value = w.tensor(step.value)
    else:
        value = w.constant_tensor(np.zeros(1, dtype) if step.value is None else step.value.reshape(1).astype(dtype))
    return [w.tensor(x), value, w.tensor(step.output), PAD_MODES.index(step.mode)]


def _chain(operator: str, convolutions: Sequence[Convolution], w: PlanWriter) -> None:
    last = len(convolutions) - 1
    words = [
        word
        for number, one in enumerate(convolutions)
        for word in _conv(one, w, reads=number == 0, writes=number == last)
    ]
    sides = ("NCHWc" if one.is_blocked else "NCHW" for one in (convolutions[0].x, convolutions[-1].output))
    label = " then ".join(one.label for one in convolutions)
    w.step(operator, label, words, window=WINDOW_OF_BOX, layout=" to ".join(dict.fromkeys(sides)))


def _integers(step: IntegerSums, weights: Array, w: PlanWriter) -> list[int]:
    """Returns what steps that sum products of bytes have in common."""
    end = step.epilogue
    zero = step.zero if isinstance(step.zero, Tensor) or step.zero is None else w.constant_tensor(step.zero)
    words = [w.tensor(step.a), zero if isinstance(zero, int) else w.tensor(zero), w.weight(weights)]
    words += [w.weight(step.zeros), w.weight(step.whole_bias), w.weight(step.factors), w.tensor(step.factor)]
    words += [w.weight(step.bias), _end(end, w), w.weight(end.channel), w.tensor(end.residual)]
    table = -1 if step.table is None else w.program(program_of(step.table, 1))
    return [*words, step.output_zero, table, w.tensor(step.output)]


def _conv(step: Convolution, w: PlanWriter, *, reads: bool, writes: bool) -> list[int]:
    window, end = step.window, step.epilogue
    return [
        w.tensor(step.x, is_stored=reads),
        w.tensor(step.output, is_stored=writes),
        w.floats(step.weights),
        w.weight(None if step.bias is None else np.ascontiguousarray(step.bias, np.float32).reshape(-1)),
        _end(end, w),
        w.weight(None if end.channel is None else np.ascontiguousarray(end.channel, np.float32).reshape(-1)),
        w.tensor(end.residual),
        *window.strides,
        *window.dilations,
        *(w.size(pad) for pad in window.pads),
        step.groups,
    ]


def _end(end: Epilogue, w: PlanWriter) -> int:
    """Returns the program of an end, -1 where nothing becomes of its sums."""
    expression: Expression = end.expression
    if expression == operand(0):
        return -1
    return w.program(program_of(expression, 3))

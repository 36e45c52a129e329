# SPDX-License-Identifier: Apache-2.0
"""A model in float64: ONNX's reference evaluator, with what it computes pixel by pixel in Python done by NumPy."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from native_models import Array
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from nndeploy.backend_kit.kernels.resize_tables import Mode, axis_table


def outputs_in_float64(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Returns every value that a node makes, by name: all that was float32 is float64."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for one in wide.graph.initializer:
        if one.data_type == onnx.TensorProto.FLOAT:
            one.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(one).astype(np.float64), one.name))
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.DOUBLE
            elif attribute.t.data_type == onnx.TensorProto.FLOAT:
                attribute.t.CopyFrom(
                    onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(attribute.t).astype(float))
                )
    names = [name for node in wide.graph.node for name in node.output if name]
    evaluator = ReferenceEvaluator(wide, new_ops=NEW_OPERATORS)
    given = {name: one.astype(np.float64) if one.dtype == np.float32 else one for name, one in inputs.items()}
    return dict(zip(names, evaluator.run(names, given, intermediate=False), strict=True))


def _axes(attribute: Sequence[int] | None, rank: int, default: int) -> tuple[int, ...]:
    return tuple(attribute) if attribute else (default,) * rank


def _windows(x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Returns (N, C, out..., kernel...) of a padded input (N, C, in...)."""
    axes = tuple(range(2, x.ndim))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    places = [slice(None)] * 2 + [slice(None, None, s) for s in strides] + [slice(None, None, d) for d in dilations]
    return view[tuple(places)]


def _padded(x: Array, pads: Sequence[int], value: float = 0.0) -> Array:
    rank = x.ndim - 2
    return np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)], constant_values=value)


class Conv(OpRun):
    """Source: ONNX Conv."""

    def _run(self, x: Array, w: Array, b: Array | None = None, **attributes: Any) -> tuple[Array]:
        rank, groups = x.ndim - 2, attributes.get("group") or 1
        strides, dilations = (_axes(attributes.get(name), rank, 1) for name in ("strides", "dilations"))
        x = _padded(x, _axes(attributes.get("pads"), 2 * rank, 0))
        views = np.split(_windows(x, w.shape[2:], strides, dilations), groups, axis=1)
        axes = (1, *range(2 + rank, 2 + 2 * rank))
        parts = [
            np.moveaxis(np.tensordot(view, one, (axes, (1, *range(2, 2 + rank)))), -1, 1)
            for view, one in zip(views, np.split(w, groups), strict=True)
        ]
        result = np.concatenate(parts, 1)
        return (result if b is None else result + b.reshape(-1, *[1] * rank),)


class ConvTranspose(OpRun):
    """Source: ONNX ConvTranspose, by pads."""

    def _run(self, x: Array, w: Array, b: Array | None = None, **attributes: Any) -> tuple[Array]:
        rank, groups = x.ndim - 2, attributes.get("group") or 1
        strides, dilations = (_axes(attributes.get(name), rank, 1) for name in ("strides", "dilations"))
        pads, more = _axes(attributes.get("pads"), 2 * rank, 0), _axes(attributes.get("output_padding"), rank, 0)
        reach = [(w.shape[2 + i] - 1) * dilations[i] + 1 for i in range(rank)]
        full = [(x.shape[2 + i] - 1) * strides[i] + reach[i] + more[i] for i in range(rank)]
        result = np.zeros((x.shape[0], groups, w.shape[1], *full))
        grouped = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
        weights = w.reshape(groups, -1, *w.shape[1:])
        for tap in np.ndindex(*w.shape[2:]):
            begins = [one * dilation for one, dilation in zip(tap, dilations, strict=True)]
            places = tuple(
                slice(begins[i], begins[i] + (x.shape[2 + i] - 1) * strides[i] + 1, strides[i]) for i in range(rank)
            )
            part = np.einsum("ngi...,gio->ngo...", grouped, weights[(..., *tap)], optimize=True)
            result[(slice(None),) * 3 + places] += part
        result = result.reshape(x.shape[0], -1, *full)
        result = result[(..., *(slice(pads[i], full[i] - pads[rank + i]) for i in range(rank)))]
        return (result if b is None else result + b.reshape(-1, *[1] * rank),)


class MaxPool(OpRun):
    """Source: ONNX MaxPool, without indices."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        return (_pooled_windows(x, -np.inf, attributes).max(-1),)


class AveragePool(OpRun):
    """Source: ONNX AveragePool: elements beyond the padding, where sizes are rounded up, are not counted."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        ones, pads = np.ones((1, 1, *x.shape[2:])), _axes(attributes.get("pads"), 2 * (x.ndim - 2), 0)
        given = attributes
        if attributes.get("count_include_pad"):
            rank = x.ndim - 2
            ones = _padded(ones, pads, 1.0)
            given = {**attributes, "pads": [0] * (2 * rank)}
        return (_pooled_windows(x, 0.0, attributes).sum(-1) / _pooled_windows(ones, 0.0, given).sum(-1),)


class LpPool(OpRun):
    """Source: ONNX LpPool."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        p = attributes.get("p") or 2
        return ((np.abs(_pooled_windows(x, 0.0, attributes)) ** p).sum(-1) ** (1 / p),)


class GlobalLpPool(OpRun):
    """Source: ONNX GlobalLpPool, which the evaluator has not."""

    op_domain = ""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        p, axes = attributes.get("p") or 2, tuple(range(2, x.ndim))
        return ((np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p),)


def _pooled_windows(x: Array, value: float, attributes: Mapping[str, Any]) -> Array:
    """Returns the elements, `value` in padding, of each window: (N, C, out..., elements)."""
    rank, kernel = x.ndim - 2, attributes["kernel_shape"]
    strides, dilations = (_axes(attributes.get(name), rank, 1) for name in ("strides", "dilations"))
    x = _padded(x, _axes(attributes.get("pads"), 2 * rank, 0), value)
    if attributes.get("ceil_mode"):  # a last window that begins behind the input and its begin padding is left out
        pads = _axes(attributes.get("pads"), 2 * rank, 0)
        more = []
        for i in range(rank):
            room = x.shape[2 + i] - (kernel[i] - 1) * dilations[i] - 1
            last = min(-(-room // strides[i]), (x.shape[2 + i] - pads[rank + i] - 1) // strides[i])
            more.append(max(0, last * strides[i] - room))
        x = _padded(x, [*[0] * rank, *more], value)
    windows = _windows(x, kernel, strides, dilations)
    return windows.reshape(*windows.shape[: 2 + rank], -1)


class Resize(OpRun):
    """Source: ONNX Resize; the evaluator's is one place off where a place is whole but for rounding."""

    def _run(
        self, x: Array, _: Array | None = None, scales: Array | None = None, sizes: Array | None = None, **named: Any
    ) -> tuple[Array]:
        mode = Mode(
            named["mode"], named["coordinate_transformation_mode"], "round_prefer_floor", -0.75, False,
            bool(named["antialias"]),
        )  # fmt: skip
        for number, axis in enumerate(named.get("axes") or range(x.ndim)):
            size = x.shape[axis]
            scale = sizes[number] / size if sizes is not None else float(scales[number])  # type: ignore[index]
            out_size = sizes[number] if sizes is not None else int(size * scale)
            places, weights = axis_table(size, out_size, scale, mode)
            lines = np.moveaxis(x, axis, -1)[..., places] * weights
            x = np.moveaxis(lines.sum(-1), -1, axis)
        return (x,)


class GatherElements(OpRun):
    """Source: ONNX GatherElements, which ONNX's own cannot do beyond 64 places."""

    def _run(self, x: Array, indices: Array, axis: int = 0) -> tuple[Array]:
        near = x[tuple(slice(None) if i == axis % x.ndim else slice(size) for i, size in enumerate(indices.shape))]
        return (np.take_along_axis(near, indices.astype(np.int64), axis),)


def _standard(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    mean = x.mean(axes, keepdims=True)
    made: Array = (x - mean) / np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + epsilon)
    return made


class GroupNormalization(OpRun):
    """Source: ONNX GroupNormalization, opset 21."""

    def _run(self, x: Array, scale: Array, bias: Array, **attributes: Any) -> tuple[Array]:
        made = _standard(x.reshape(x.shape[0], attributes["num_groups"], -1), (2,), attributes["epsilon"])
        ones = [1] * (x.ndim - 2)
        return (made.reshape(x.shape) * scale.reshape(-1, *ones) + bias.reshape(-1, *ones),)


class MeanVarianceNormalization(OpRun):
    """Source: ONNX MeanVarianceNormalization."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        return (_standard(x, tuple(attributes["axes"]), 1e-18),)


class LRN(OpRun):
    """Source: ONNX LRN; ONNX's own counts images where it means channels."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        size = attributes["size"]
        before, beta = (size - 1) // 2, attributes["beta"]
        squares = np.pad(x**2, [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
        sums = sum(squares[:, k : k + x.shape[1]] for k in range(size))
        return (x / (attributes["bias"] + attributes["alpha"] / size * sums) ** beta,)


class Pad(OpRun):
    """Source: ONNX Pad: widths that are negative, which ONNX's own refuses, take elements away before any are put."""

    def _run(self, x: Array, pads: Array, value: Array | None = None, axes: Array | None = None, mode: str = "") -> Any:
        count = len(pads) // 2
        widths = np.zeros((x.ndim, 2), np.int64)
        widths[np.arange(x.ndim) if axes is None else axes] = np.stack([pads[:count], pads[count:]], 1)
        kept = tuple(
            slice(max(0, -a), size - max(0, -b)) for (a, b), size in zip(widths.tolist(), x.shape, strict=True)
        )
        options: dict[str, Any] = {"mode": mode}
        if mode == "constant":
            options["constant_values"] = 0 if value is None else value.reshape(-1)[0]
        return (np.pad(x[kept], np.maximum(widths, 0), **options),)


NEW_OPERATORS: list[type[OpRun]] = [
    AveragePool, Conv, ConvTranspose, GatherElements, GlobalLpPool, GroupNormalization, LRN, LpPool, MaxPool,
    MeanVarianceNormalization, Pad, Resize,
]  # fmt: skip

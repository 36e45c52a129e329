# SPDX-License-Identifier: Apache-2.0
"""Calls of the kernel templates (c/templates.h), for the steps whose epilogues they know; others stay plain calls."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nndeploy_native.activations import Activation, activation_of, needs_channel
from nndeploy_native.isa import Isa
from nndeploy_native.kernels.inverted_residual import (
    InvertedResidual as InvertedShape,
)
from nndeploy_native.kernels.inverted_residual import (
    choose_inverted_window,
    inverted_buffer_bytes,
)
from nndeploy_native.kernels.isa import ISAS
from nndeploy_native.kernels.isa import Isa as TemplateIsa
from nndeploy_native.kernels.packing import pack_convolution, pack_pointwise
from nndeploy_native.kernels.separable import Activation as TemplateActivation
from nndeploy_native.kernels.separable import Axis
from nndeploy_native.kernels.separable import Separable as PairShape
from nndeploy_native.steps.step import Call, Machine
from nndeploy_native.tensors import Array, padded
from nndeploy_native.windows import buffer_bytes, window_for

if TYPE_CHECKING:
    from nndeploy_native.steps.convolution import Convolution
    from nndeploy_native.steps.inverted_residual import InvertedResidual
    from nndeploy_native.steps.separable import Separable

STREAM_FROM_BYTES = 16 << 20
"""Outputs from this size on are stored past the caches. Zen 5, 2026-11-20 (design page)."""
DEFAULT_L2_BYTES = 1 << 20


def templated_convolution(step: "Convolution", call: Call, machine: Machine) -> Call:
    """Returns the template's call of a pointwise, depthwise or dense convolution, or `call` where there is none."""
    activation = _activation(step)
    if activation is None:
        return call
    x, weights, bias, residual, channel = call.arguments
    if step.is_depthwise and residual is None:
        return replace(call, kernel="fast_depthwise", activations=(activation,), epilogues=(),
                       arguments=(x, weights, bias, channel))  # fmt: skip
    if call.kernel in ("dense", "dense_plain") and not (step.is_pointwise and step.x.is_blocked):
        packed = pack_convolution(step.weights, _template_isa(machine.isa))
        return replace(call, kernel=f"fast_{call.kernel}", sizes={**call.sizes, **_streams(step, machine)},
                       activations=(activation,), epilogues=(),
                       arguments=(x, packed, bias, residual, channel))  # fmt: skip
    if not step.is_pointwise:
        return call
    pixels = step.output.shape[2] * step.output.shape[3]
    capacity = buffer_bytes(machine, step.x.num_bytes(machine.isa.lanes))
    window = window_for(capacity, 1, pixels, step.x.shape[1], machine.isa.lanes)
    sizes = {**call.sizes, **_streams(step, machine), "window_columns": window.columns}
    packed = _pointwise_weights(step, machine.isa)
    return replace(call, kernel="fast_pointwise", sizes=sizes, activations=(activation,), epilogues=(),
                   arguments=(x, packed, bias, residual, channel))  # fmt: skip


def templated_separable(step: "Separable", call: Call, machine: Machine) -> Call:
    """Returns the template's call of a pair, or `call` where there is none."""
    first, second = _activation(step.first), _activation(step.second)
    if first is None or second is None:
        return call
    arguments = list(call.arguments)
    arguments[4] = _pointwise_weights(step.second, machine.isa)
    l2 = machine.l2_bytes or DEFAULT_L2_BYTES
    sizes = {**call.sizes, **_streams(step.second, machine)}
    sizes["prefetch_input"] = step.first.x.num_bytes(machine.isa.lanes) > l2
    return replace(call, kernel="fast_separable", sizes=sizes, activations=(first, second), epilogues=(),
                   arguments=tuple(arguments))  # fmt: skip


def templated_inverted_residual(step: "InvertedResidual", call: Call, machine: Machine, capacity: int) -> Call:
    """Returns the template's call of a triple, with the ring that it keeps, or `call` where there is none."""
    convolutions = (step.expand, step.pair.first, step.pair.second)
    activations = tuple(found for one in convolutions if (found := _activation(one)) is not None)
    if len(activations) != len(convolutions):
        return call
    isa = _template_isa(machine.isa)
    shape = InvertedShape(step.expand.x.shape[1], _shape_of(step.pair), TemplateActivation())
    window = choose_inverted_window(shape, isa, capacity)
    arguments = list(call.arguments)
    arguments[1] = _pointwise_weights(step.expand, machine.isa)
    arguments[7] = _pointwise_weights(step.pair.second, machine.isa)
    sizes = {**call.sizes, **_streams(step.pair.second, machine)}
    sizes.update(window_rows=window.rows, window_channels=window.group_panels)
    channels = min(window.group_panels * machine.isa.panel, padded(step.expand.output.shape[1], machine.isa.lanes))
    notes = {**call.notes, "window": f"{window.rows}x{step.output.shape[3]}x{channels}"}
    return replace(call, kernel="fast_inverted_residual", sizes=sizes, activations=activations, epilogues=(),
                   arguments=tuple(arguments), notes=notes,
                   scratch_bytes=inverted_buffer_bytes(shape, window, isa))  # fmt: skip


def _shape_of(pair: "Separable") -> PairShape:
    first, second = pair.first, pair.second
    return PairShape(first.x.shape[0], first.x.shape[1], second.output.shape[1], _axis(first, 0), _axis(first, 1))


def _axis(step: "Convolution", axis: int) -> Axis:
    window = step.window
    size, out_size = step.x.shape[2 + axis], step.output.shape[2 + axis]
    kernel, stride, dilation = window.kernel[axis], window.strides[axis], window.dilations[axis]
    begin = window.pads[axis]
    end = (out_size - 1) * stride + (kernel - 1) * dilation + 1 - size - begin
    return Axis(size, kernel, stride, dilation, begin, end)


def _activation(step: "Convolution") -> Activation | None:
    """Returns the step's activation; None where it has none of the templates', or reads numbers that it does not."""
    activation = activation_of(step.epilogue)
    if activation is None or needs_channel(activation) != (step.epilogue.channel is not None):
        return None
    return activation


def _streams(step: "Convolution", machine: Machine) -> dict[str, int]:
    l2 = machine.l2_bytes or DEFAULT_L2_BYTES
    return {
        "has_residual": step.epilogue.residual is not None,
        "stream": step.output.num_bytes(machine.isa.lanes) > STREAM_FROM_BYTES,
        "prefetch_weights": 4 * step.weights.size > l2 // 2,
    }


def _pointwise_weights(step: "Convolution", isa: Isa) -> Array:
    return pack_pointwise(np.ascontiguousarray(step.weights[:, :, 0, 0]), _template_isa(isa))


def _template_isa(isa: Isa) -> TemplateIsa:
    return next(one for one in ISAS if one.lanes == isa.lanes)

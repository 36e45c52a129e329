# SPDX-License-Identifier: Apache-2.0
"""Calls of the kernel templates (c/templates.h), for the steps whose epilogues they know; others stay plain calls."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nndeploy_native.activations import Activation, activation_of, needs_channel
from nndeploy_native.isa import Isa
from nndeploy_native.kernels.isa import ISAS
from nndeploy_native.kernels.isa import Isa as TemplateIsa
from nndeploy_native.kernels.packing import pack_pointwise
from nndeploy_native.steps.step import Call, Machine
from nndeploy_native.tensors import Array
from nndeploy_native.windows import buffer_bytes, window_for

if TYPE_CHECKING:
    from nndeploy_native.steps.convolution import Convolution
    from nndeploy_native.steps.separable import Separable

STREAM_FROM_BYTES = 16 << 20
"""Outputs from this size on are stored past the caches. Zen 5, 2026-11-20 (design page)."""
DEFAULT_L2_BYTES = 1 << 20


def templated_convolution(step: "Convolution", call: Call, machine: Machine) -> Call:
    """Returns the template's call of a pointwise or depthwise convolution, or `call` where there is none."""
    activation = _activation(step)
    if activation is None or not step.x.is_blocked:
        return call
    x, weights, bias, residual, channel = call.arguments
    if step.is_depthwise and residual is None:
        return replace(call, kernel="fast_depthwise", activations=(activation,), epilogues=(),
                       arguments=(x, weights, bias, channel))  # fmt: skip
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

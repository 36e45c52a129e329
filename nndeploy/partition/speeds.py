# SPDX-License-Identifier: Apache-2.0
"""How long a plan takes: each backend's cost of a call, of a node and of bytes that cross, and its speed by operator.

    seconds(plan) = sum over regions of (call + crossing bytes / BYTES_PER_S)
                  + sum over nodes of (node overhead + estimate(node) * slowness(backend, kind of operator))

`estimate` is `nndeploy.partition.cost`'s, for one ordinary core; the slowness says how many times longer the backend
takes. Only comparisons between plans of one model mean something: who is hopeless is not built, who is left is
measured. Where nothing can be measured the least prediction decides.

The figures are rounded guesses from a few models (one thread, ONNX Runtime 1.31, OpenVINO 2026.4.1), not calibrated:
they tell who is hopeless, not who wins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from nndeploy.graph.nodes import bodies, node_name
from nndeploy.graph.regions import Region
from nndeploy.graph.submodels import region_inputs, region_outputs, values_between
from nndeploy.pacing.estimate import BYTES_PER_S
from nndeploy.partition.cost import Costs

CONVOLUTION, DEPTHWISE, PRODUCT, RECURRENT, QUANTISED, OTHER = (
    "convolution", "depthwise", "product", "recurrent", "quantised", "other",
)  # fmt: skip

_KINDS = {
    "Conv": CONVOLUTION, "ConvTranspose": CONVOLUTION, "FusedConv": CONVOLUTION, "DeformConv": CONVOLUTION,
    "MatMul": PRODUCT, "Gemm": PRODUCT, "FusedMatMul": PRODUCT, "Attention": PRODUCT, "MatMulNBits": QUANTISED,
    "LSTM": RECURRENT, "GRU": RECURRENT, "RNN": RECURRENT,
    "QLinearConv": QUANTISED, "QLinearMatMul": QUANTISED, "ConvInteger": QUANTISED, "MatMulInteger": QUANTISED,
    "QuantizeLinear": QUANTISED, "DequantizeLinear": QUANTISED, "DynamicQuantizeLinear": QUANTISED,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Speed:
    """What a backend costs: seconds a call and a node, and how many times the estimate an operator of a kind takes.

    `node_of_any_size` are the seconds of a node whose sizes are only known in a call.
    """

    call: float
    node: float
    node_of_any_size: float
    slowness: Mapping[str, float] = field(default_factory=dict)
    otherwise: float = 1.0


SPEEDS = {
    "openvino": Speed(20e-6, 1.0e-6, 4.0e-6, {PRODUCT: 1.2, RECURRENT: 2.0, QUANTISED: 1.5}, 1.0),
    "onnxruntime": Speed(8e-6, 1.5e-6, 1.5e-6, {CONVOLUTION: 1.3, DEPTHWISE: 3.0, QUANTISED: 1.0}, 1.2),
    "native": Speed(10e-6, 0.3e-6, 0.5e-6, {CONVOLUTION: 0.95, DEPTHWISE: 0.6, PRODUCT: 1.3}, 1.0),
    "reference": Speed(200e-6, 40e-6, 40e-6, {CONVOLUTION: 100.0, DEPTHWISE: 100.0, RECURRENT: 50.0}, 10.0),
}
UNKNOWN = Speed(8e-6, 1.0e-6, 1.0e-6)
"""A backend of somebody else's, and those of GPUs: as fast as any, so that it is measured or the tiers decide."""


def speed_of(backend: str) -> Speed:
    """Returns what is known of a backend's speed."""
    return SPEEDS.get(backend, UNKNOWN)


def prepares_for_sizes(regions: Sequence[Region]) -> bool:
    """Returns whether some region is of a backend that prepares itself for each new size of its inputs."""
    speeds = [speed_of(region.backend) for region in regions]
    return any(speed.node_of_any_size > 2 * speed.node for speed in speeds)


def kind_of(node: ir.Node) -> str:
    """Returns the kind of a node's operator by which backends differ in speed."""
    kind = _KINDS.get(node.op_type, OTHER)
    if kind == CONVOLUTION and "group" in node.attributes and node.attributes["group"].as_int() > 1:
        return DEPTHWISE
    return kind


def node_seconds(node: ir.Node, backend: str, estimate: float) -> float:
    """Returns how long a backend takes for a node that an ordinary core computes in `estimate` seconds."""
    speed = speed_of(backend)
    num_nodes = 1 + sum(len(body) for body in bodies(node))
    has_any_size = any(value.shape is None or not value.shape.is_static() for value in node.outputs)
    return (speed.node_of_any_size if has_any_size else speed.node) * num_nodes + estimate * speed.slowness.get(
        kind_of(node), speed.otherwise
    )


def region_seconds(region: Region, backend: str, costs: Costs) -> float:
    """Returns how long a backend takes for the nodes of a region, the call apart."""
    return sum(node_seconds(node, backend, costs.seconds[node_name(node)]) for node in region.nodes)


def crossing_seconds(region: Region, between: set[int], costs: Costs) -> float:
    """Returns how long the values that enter and leave a region take to cross."""
    values = [*region_inputs(region), *region_outputs(region, between)]
    return sum(costs.value_bytes.get(value.name or "", 0) for value in values) / BYTES_PER_S


def chain_seconds(regions: Sequence[Region], graph: ir.Graph, costs: Costs) -> float:
    """Returns how long a call of the regions, one after the other, is predicted to take."""
    between = values_between(list(regions), graph)
    return sum(
        speed_of(region.backend).call
        + region_seconds(region, region.backend, costs)
        + crossing_seconds(region, between, costs)
        for region in regions
    )

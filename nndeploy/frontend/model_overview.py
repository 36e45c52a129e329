# SPDX-License-Identifier: Apache-2.0
"""What a model is, before anything of it is compiled: its inputs and outputs, sizes, operators, opsets and weights.

Comes in: a model file. Goes out: `ModelOverview`. Law: no library that parses models is loaded; what the gate refuses
is refused here by the same line.
"""

from dataclasses import dataclass
from pathlib import Path

from nndeploy.errors import NndeployError
from nndeploy.frontend.declared_inputs import DeclaredValue, declared_metadata, declared_values
from nndeploy.graph.operator_rules import ANY_DOMAIN, shown_operator
from nndeploy.onnx_gate.gate import check_file


@dataclass(frozen=True, slots=True)
class ModelOverview:
    """A model file of `size_bytes`, with `weight_bytes` of weights, which may lie in files of their own.

    `symbols` maps each size that has a name to the axes of inputs that have it ("x[0]"), by which a call binds it.
    `operators` maps operators, with their domain where it is not ONNX's own, to how many nodes have them, most first.
    `metadata` are the texts that its exporter noted, by key.
    """

    size_bytes: int
    weight_bytes: int
    has_external_data: bool
    ir_version: int
    opsets: dict[str, int]
    inputs: tuple[DeclaredValue, ...]
    outputs: tuple[DeclaredValue, ...]
    symbols: dict[str, tuple[str, ...]]
    operators: dict[str, int]
    metadata: dict[str, str]

    @property
    def num_nodes(self) -> int:
        """How many nodes there are, each body and function counted once."""
        return sum(self.operators.values())


def overview_of(path: Path) -> ModelOverview:
    """Returns what a model file holds.

    Raises:
        MissingInputError: there is no such file.
        InputOutputError: it cannot be read.
        ModelError: it is no model, or malformed.
        PolicyError: it uses an operator that is not allowed.
    """
    try:
        data, facts = check_file(path, extra_domains=ANY_DOMAIN)
        (inputs, outputs), metadata = declared_values(data), declared_metadata(data)
    except NndeployError as err:
        raise err.within(str(path)) from None
    counts = {shown_operator(domain, name): count for (domain, name), count in facts.operators.items()}
    return ModelOverview(
        size_bytes=len(data),
        weight_bytes=facts.num_weight_bytes,
        has_external_data=facts.has_external_data,
        ir_version=facts.ir_version,
        opsets={domain or "ai.onnx": version for domain, version in facts.opset_imports.items()},
        inputs=inputs,
        outputs=outputs,
        symbols=_symbols(inputs),
        operators=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        metadata=metadata,
    )


def _symbols(inputs: tuple[DeclaredValue, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for value in inputs:
        for number, axis in enumerate(value.axes or ()):
            if axis != "?" and not axis.lstrip("-").isdecimal():
                found[axis] = (*found.get(axis, ()), f"{value.name}[{number}]")
    return found

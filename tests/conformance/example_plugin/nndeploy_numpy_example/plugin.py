# SPDX-License-Identifier: Apache-2.0
"""A whole backend on one page: it takes Add and Relu of float32 tensors and runs them with numpy.

An artifact is the list of steps (plain data) and one file of raw float32 values for each constant.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nndeploy.errors import BuildRefusedError, UnavailableError
from nndeploy.plugin.interface import (
    API_VERSION,
    TAKEN,
    Artifact,
    BuildOptions,
    Json,
    OpenOptions,
    Probe,
    Support,
    Transform,
)
from nndeploy.target.target import Target
from nndeploy.values.types import Value

if TYPE_CHECKING:
    import onnx_ir as ir

OPERATORS = {"Add": np.add, "Relu": lambda x: np.maximum(x, 0)}


class Plugin:
    """The backend `numpy-example`."""

    name = "numpy-example"
    tier = 5
    device_kind = "cpu"
    api_version = API_VERSION
    extra_domains: tuple[str, ...] = ()

    def probe(self, target: Target) -> Probe:
        return Probe(True, True, np.__version__)

    def transforms(self, target: Target) -> Sequence[Transform]:
        return ()

    def supports(self, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:
        return [_support(node) for node in model.graph]

    def build(self, submodel: "ir.Model", target: Target, options: BuildOptions, workdir: Path) -> Artifact:
        for node in submodel.graph:
            if not _support(node).ok:
                raise BuildRefusedError(_support(node).reason)
        constants = [value for value in submodel.graph.initializers.values() if value.const_value is not None]
        return Artifact(
            files={
                "version": b"1",
                **{f"c{i}.bin": value.const_value.numpy().tobytes() for i, value in enumerate(constants)},
            },
            metadata={
                "constants": [[value.name, list(value.const_value.numpy().shape)] for value in constants],
                "steps": [[n.op_type, [v.name for v in n.inputs], n.outputs[0].name] for n in submodel.graph],
                "outputs": [value.name for value in submodel.graph.outputs],
            },
        )

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> "Session":
        if options.device != "cpu":
            raise UnavailableError(f"numpy runs on the CPU, not on {options.device!r}")
        constants = {
            name: np.frombuffer(files[f"c{i}.bin"], np.float32).reshape(shape)
            for i, (name, shape) in enumerate(metadata["constants"])
        }
        return Session(metadata["steps"], metadata["outputs"], constants)


class Session:
    """The steps of one submodel, and its constants."""

    def __init__(self, steps: list[Any], outputs: list[str], constants: Mapping[str, Value]) -> None:
        self._steps = steps
        self._outputs = outputs
        self._constants = constants

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        known = {**self._constants, **inputs}
        for op_type, names, output in self._steps:
            known[output] = np.asarray(OPERATORS[op_type](*(known[name] for name in names)))
        return {name: np.array(known[name]) for name in self._outputs}

    def close(self) -> None:
        self._constants = {}


def _support(node: "ir.Node") -> Support:
    if node.domain not in ("", "ai.onnx") or node.op_type not in OPERATORS:
        return Support(False, f"numpy-example has no {node.op_type}")
    for value in (*node.inputs, *node.outputs):
        if value is None or value.dtype is None or value.dtype.name != "FLOAT":
            return Support(False, "numpy-example computes float32 alone")
    return TAKEN

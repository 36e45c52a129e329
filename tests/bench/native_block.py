# SPDX-License-Identifier: Apache-2.0
"""One depthwise-separable block through the backend `native`, and the time of its kernels alone.

The model is what a user would give (ordinary input and output), so a run also converts layouts. To see the kernels
alone, conversions stay steps of their own, and a clock is read before and after each step (step_clock.py). The session
is the product's, and the block reads what the step before it has just written.
"""

import ctypes
import dataclasses
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import nndeploy_native.build as native_build
import numpy as np
import onnx_ir as ir
import step_clock
from interleaved import Array
from nndeploy_native.library import library_from_source
from nndeploy_native.plugin import Plugin
from nndeploy_native.steps.step import Machine
from onnx import ModelProto, TensorProto, helper, numpy_helper

from nndeploy.files.shared_object import library_from_bytes
from nndeploy.frontend.load import load_model
from nndeploy.plugin.interface import Artifact, BuildOptions, OpenOptions, Session
from nndeploy.target.target import Target

KERNEL = 3


@dataclass(frozen=True)
class Block:
    """Depthwise 3 x 3 of `channels`, ReLU6, pointwise to `outputs`, ReLU6, on `batch` images of size x size."""

    channels: int
    outputs: int
    size: int
    stride: int
    batch: int = 1

    def __str__(self) -> str:
        return f"{self.channels}->{self.outputs}@{self.size}/{self.stride}" + f" x{self.batch}" * (self.batch > 1)

    @property
    def out_size(self) -> int:
        """Rows and columns of the output."""
        return (self.size - 1) // self.stride + 1

    def inputs(self) -> dict[str, Array]:
        """Returns the seeded input."""
        shape = (self.batch, self.channels, self.size, self.size)
        return {"x": np.random.default_rng(1).standard_normal(shape, dtype=np.float32)}

    def model(self) -> ModelProto:
        """Returns the block as a model from "x" to "y", with seeded weights."""
        r, c, o = np.random.default_rng(0), self.channels, self.outputs
        weights = {
            "dw": r.standard_normal((c, 1, KERNEL, KERNEL)) / KERNEL,
            "db": r.standard_normal(c) * 0.1,
            "pw": r.standard_normal((o, c, 1, 1)) * np.sqrt(2 / c),
            "pb": r.standard_normal(o) * 0.1,
            "zero": np.array(0.0),
            "six": np.array(6.0),
        }
        pads = [KERNEL // 2] * 4
        nodes = [
            helper.make_node("Conv", ["x", "dw", "db"], ["a"], group=c, strides=[self.stride] * 2, pads=pads),
            helper.make_node("Clip", ["a", "zero", "six"], ["b"]),
            helper.make_node("Conv", ["b", "pw", "pb"], ["c"]),
            helper.make_node("Clip", ["c", "zero", "six"], ["y"]),
        ]
        shapes = {"x": (self.batch, c, self.size, self.size), "y": (self.batch, o, self.out_size, self.out_size)}
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
        constants = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()]
        graph = helper.make_graph(nodes, "block", [x], [y], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def machine_for(target: Target, buffer_bytes: int, fuses: bool = True) -> Machine:
    """Returns the machine that steps are made for: one thread, a buffer of so many bytes (0: by the backend's rule)."""
    machine = native_build.machine_of(target, BuildOptions(threads=1))
    return dataclasses.replace(machine, buffer_bytes=buffer_bytes, fuses=fuses)


def built(block: Block, machine: Machine, head: str = step_clock.HEAD) -> Artifact:
    """Returns the artifact of a block; `head` defines what is done before and after each step (c/program.h)."""

    def edited(source: str, *rest: Any, **named: Any) -> bytes:
        return library_from_source(head + source, *rest, **named)

    model: ir.Model = load_model(block.model()).model
    inside = mock.patch("nndeploy_native.fusion.fuse_layout", lambda steps, *_: steps)  # conversions stay steps
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("nndeploy_native.build.library_from_source", edited),
        inside,
    ):
        return native_build.build(model, machine, {}, Path(folder))


@dataclass
class TimedBlock:
    """A block's artifact, opened with one thread; `steps` are the numbers of those that compute."""

    artifact: Artifact
    session: Session
    steps: tuple[int, ...]
    window: str

    def run(self, inputs: Mapping[str, Array]) -> Array:
        """Returns the output."""
        return np.asarray(self.session.run(inputs)["y"])

    def seconds(self, inputs: Mapping[str, Array]) -> float:
        """Runs once; returns what the block's kernels took."""
        self.session.run(inputs)
        return sum(step_clock.nanoseconds(self._library())[step] for step in self.steps) / 1e9

    def counted(self, inputs: Mapping[str, Array], descriptor: int) -> int:
        """Runs once; returns by how much the counter behind a file descriptor grew during the block's kernels."""
        counter = step_clock.counter(self._library())
        counter.value = descriptor
        try:
            self.session.run(inputs)
        finally:
            counter.value = -1
        return sum(step_clock.counts(self._library())[step] for step in self.steps)

    def _library(self) -> ctypes.CDLL:
        return library_from_bytes(self.artifact.files["kernels.so"])  # equal bytes are the session's own library


def opened(artifact: Artifact) -> TimedBlock:
    """Returns an artifact of `built` as something that can be run and timed."""
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = Plugin().open(files, artifact.metadata, OpenOptions(threads=1))
    steps, window = computing_steps(artifact)
    return TimedBlock(artifact, session, steps, window)


def computing_steps(artifact: Artifact) -> tuple[tuple[int, ...], str]:
    """Returns the numbers of the steps that multiply and add, and the window of the fused one ("" without one)."""
    steps = json.loads(artifact.files["plan.json"])["steps"]
    numbers = tuple(number for number, step in enumerate(steps) if "multiply_adds" in step)
    return numbers, next((step["window"] for step in steps if "window" in step and "separable" in step["kernel"]), "")

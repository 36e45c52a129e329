# SPDX-License-Identifier: Apache-2.0
"""What tests of the native backend share: a model as text -> built for this machine -> run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from nndeploy_native.build import build
from nndeploy_native.isa import ISAS, Isa
from nndeploy_native.library import zig_missing
from nndeploy_native.session import open_session
from nndeploy_native.steps.step import Machine

from nndeploy.plugin.interface import Artifact, OpenOptions
from nndeploy.target.target import host_target

Array = np.ndarray[Any, Any]
HEADER = '<ir_version: 10, opset_import: ["" : 21]>'


def runnable_isas(precision: str = "fp32") -> list[Isa]:
    """Returns the instruction sets of a precision that this machine has."""
    host = host_target()
    isas = [isa for isa in ISAS if isa.arch == host.arch and isa.precision == precision]
    return [isa for isa in isas if set(host.cpu_features).issuperset(isa.cpu_features)]


def needs_zig() -> None:
    """Skips where there is no compiler, or nothing that it compiles would run here."""
    if reason := zig_missing():
        pytest.skip(reason)
    if not runnable_isas():
        pytest.skip("no kernels for this machine")


def model_of(text: str, constants: Mapping[str, Array] | None = None) -> ir.Model:
    """Returns a model from ONNX text, with inferred shapes; `constants` become initializers."""
    proto = onnx.parser.parse_model(HEADER + text)
    for name, array in (constants or {}).items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))


def built(model: ir.Model, workdir: Path, machine: Machine | None = None) -> Artifact:
    """Returns the artifact for a machine, or for this one."""
    needs_zig()
    return build(model, machine or Machine(runnable_isas()[0]), {}, workdir)


def run(artifact: Artifact, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Returns the outputs of an artifact on this machine."""
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = open_session(files, artifact.metadata, OpenOptions(threads=1))
    return session.run(inputs)


def reals(*shape: int, seed: int = 0) -> Array:
    """Returns reproducible normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def convolved(
    x: Array,
    w: Array,
    bias: Array | None = None,
    stride: int = 1,
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: int = 1,
    groups: int = 1,
) -> Array:
    """Returns a convolution in float64: pads are (top, left, bottom, right). Source: ONNX Conv."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    (n, c, h, width), (o, per_group, kh, kw) = x.shape, w.shape
    out_h, out_w = ((size - (k - 1) * dilation - 1) // stride + 1 for size, k in ((h, kh), (width, kw)))
    out = np.zeros((n, groups, o // groups, out_h, out_w))
    grouped, weights = x.reshape(n, groups, c // groups, h, width), w.reshape(groups, o // groups, per_group, kh, kw)
    for ky in range(kh):
        for kx in range(kw):
            rows = slice(ky * dilation, ky * dilation + (out_h - 1) * stride + 1, stride)
            columns = slice(kx * dilation, kx * dilation + (out_w - 1) * stride + 1, stride)
            out += np.einsum("ngchw,goc->ngohw", grouped[:, :, :, rows, columns], weights[:, :, :, ky, kx])
    out = out.reshape(n, o, out_h, out_w)
    return out if bias is None else out + bias.astype(np.float64)[None, :, None, None]

# SPDX-License-Identifier: Apache-2.0
"""One tier on its own: is it usable here, and a model built for this machine and opened on its GPU.

Nothing of the core stands in between, so what is seen is the backend's.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from gpucheck.options import Options
from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import Artifact, Backend, BuildOptions, OpenOptions, Session
from nndeploy.plugin.registry import backend
from nndeploy.target.target import Target, host_target

DEVICE = "cuda:0"


class RefusedError(Exception):
    """The tier does not take it; `str(error)` is its reason."""


def why_unusable(tier: str, target: Target | None = None) -> str:
    """Returns why a tier can neither build for nor run on this machine, or ""."""
    probe = backend(tier).probe(target or host_target())
    return "" if probe.can_build and probe.can_run else " ".join(filter(None, (probe.reason, probe.hint)))


def target_of(options: Options, tuned: bool = False) -> Target:
    """Returns this machine; without measured tiles, which take several compilations a kernel, unless asked for."""
    return replace(host_target(), is_host=tuned or options.tune)


def built(tier: str, proto: onnx.ModelProto, target: Target) -> Artifact:
    """Returns the artifact of a whole model.

    Raises:
        RefusedError: the tier refuses a node, even after its transforms, or the build.
    """
    model, options, plugin = named_model(proto), BuildOptions(), backend(tier)
    refused = _refusals(plugin, model, target)
    if refused and sum(rewrite(model, lambda node: node.name in refused) for rewrite in plugin.transforms(target)):
        _name_nodes(model)
        refused = refused if _refusals(plugin, model, target) else {}
    if refused:
        raise RefusedError(next(iter(refused.values())))
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        try:
            return plugin.build(model, target, options, Path(folder))
        except BuildRefusedError as err:
            raise RefusedError(f"build: {err}") from err


def _refusals(plugin: Backend, model: ir.Model, target: Target) -> dict[str, str]:
    """Returns for each node that a tier does not take, by name, its operator and the reason."""
    answers = plugin.supports(model, target, BuildOptions())
    pairs = zip(model.graph, answers, strict=True)
    return {node.name or "": f"{node.op_type}: {answer.reason}" for node, answer in pairs if not answer.ok}


def opened(tier: str, artifact: Artifact) -> Session:
    """Returns a session over an artifact on the GPU."""
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    return backend(tier).open(files, artifact.metadata, OpenOptions(device=DEVICE))


def named_model(proto: onnx.ModelProto) -> ir.Model:
    """Returns the model as backends get it: with inferred shapes, every node named."""
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    _name_nodes(model)
    return model


def _name_nodes(model: ir.Model) -> None:
    for number, node in enumerate(model.graph):
        node.name = f"node{number}"


def library_versions() -> dict[str, str]:
    """Returns what is installed, by distribution."""
    from importlib.metadata import PackageNotFoundError, version

    names = (
        "nndeploy-toolchain", "numpy", "onnx", "onnx-ir", "onnxruntime", "onnxruntime-gpu", "cuda-bindings",
        "tensorrt-rtx-cu13-bindings", "tensorrt", "nvidia-cudnn-cu13", "nvidia-cuda-nvrtc", "nvidia-cublas",
        "triton", "torch", "cupy-cuda13x", "onnx2torch",
    )  # fmt: skip
    found: dict[str, Any] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found

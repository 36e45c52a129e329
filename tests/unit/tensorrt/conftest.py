# SPDX-License-Identifier: Apache-2.0
"""What the tests of the TensorRT backend share: the real library where it is, and a pretended one with a GPU."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import onnx.parser
import onnx.shape_inference
import onnx_ir as ir
import pytest
from nndeploy_tensorrt.library import RTX, is_installed, loaded, log_of
from tests_tensorrt_fake import FakeTensorRt, run_kernel

from nndeploy.cuda.current_driver import injected_driver
from nndeploy.target.target import Target, target_from_toml
from nndeploy.testing.host_driver import HostDriver

TARGETS = Path(__file__).resolve().parents[3] / "configs" / "targets"
HEADER = '<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1, "nobody.knows" : 1]>\n'


@pytest.fixture
def rtx4090() -> Target:
    """A box with one GPU of compute capability 8.9."""
    return target_from_toml(TARGETS / "rtx4090.toml")


@pytest.fixture
def with_gpu(rtx4090: Target) -> Callable[..., Target]:
    """Returns a function: compute capabilities -> a box with such GPUs."""

    def box(*capabilities: str, arch: str = "x86_64") -> Target:
        gpus = tuple(replace(rtx4090.gpus[0], compute_capability=capability) for capability in capabilities)
        return replace(rtx4090, arch=arch, gpus=gpus)

    return box


@pytest.fixture
def library() -> None:
    """Skips where TensorRT-RTX is not installed."""
    if not is_installed(RTX.flavour):
        pytest.skip(f"{RTX.title} is not installed: {RTX.hint}")


@pytest.fixture
def model() -> Callable[..., ir.Model]:
    """Returns a function: a graph as text -> a model as backends get it: inferred types, every node named."""

    def parse(text: str, opset: int = 21) -> ir.Model:
        proto = onnx.parser.parse_model(HEADER.format(opset=opset) + text)
        found = ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))
        for i, node in enumerate(found.graph):
            node.name = f"n{i}_{node.op_type}"
        return found

    return parse


@pytest.fixture
def driver() -> Iterator[HostDriver]:
    """A GPU whose memory is on the host, and which can run the engines of the pretended library."""
    found = HostDriver(run_kernel=run_kernel)
    with injected_driver(found):
        yield found


@pytest.fixture
def fake(driver: HostDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTensorRt]:
    """The pretended library in the place of TensorRT-RTX and of the classic one."""
    found = FakeTensorRt(driver)
    for module in ("tensorrt_rtx_bindings", "tensorrt"):
        monkeypatch.setitem(sys.modules, module, found)
    _forget_libraries()
    yield found
    _forget_libraries()


def _forget_libraries() -> None:
    for cached in (loaded, log_of, is_installed):
        cached.cache_clear()

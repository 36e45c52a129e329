# SPDX-License-Identifier: Apache-2.0
"""The plugin itself: found by its entry point, quick to probe, clear where it cannot."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from nndeploy_tensorrt import probe as probing
from nndeploy_tensorrt import serving
from nndeploy_tensorrt.library import RTX
from nndeploy_tensorrt.plugin import Plugin

from nndeploy.plugin.registry import backend
from nndeploy.target.target import Target

_PROBES = """
import sys
from nndeploy_tensorrt.plugin import Plugin
from nndeploy.target.target import host_target
Plugin().probe(host_target())
print(sorted({"onnx", "onnx_ir", "tensorrt", "tensorrt_rtx_bindings", "numpy.linalg"} & sys.modules.keys()))
"""

Box = Callable[..., Target]


def test_entry_point_gives_the_plugin() -> None:
    found = backend("tensorrt")
    assert (found.name, found.tier) == ("tensorrt", 1)


def test_probe_loads_no_library() -> None:
    done = subprocess.run([sys.executable, "-c", _PROBES], capture_output=True, text=True, check=True)
    assert "tensorrt" not in done.stdout
    assert "onnx" not in done.stdout


@pytest.mark.usefixtures("library")
def test_box_with_an_rtx_gpu_can_be_built_for_anywhere(rtx4090: Target) -> None:
    found = Plugin().probe(rtx4090)
    assert found.can_build
    assert "TensorRT-RTX 1." in found.version


def test_target_without_a_gpu_can_not(with_gpu: Box) -> None:
    found = Plugin().probe(with_gpu())
    assert not found.can_build
    assert (found.hint, found.absent_hardware) == ("", "NVIDIA GPU")


def test_missing_library_says_what_to_install(rtx4090: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (probing, serving):
        monkeypatch.setattr(module, "is_installed", lambda _flavour: False)
    found = Plugin().probe(rtx4090)
    assert not found.can_build
    assert not found.can_run
    assert (found.hint, found.absent_hardware) == (RTX.hint, "")


def test_transforms_are_offered_only_where_there_is_a_gpu(rtx4090: Target, with_gpu: Box) -> None:
    assert [transform.name for transform in Plugin().transforms(rtx4090)] == ["lower-quantised", "expand-function"]
    assert list(Plugin().transforms(with_gpu())) == []


def test_turing_gets_its_matrix_products_as_convolutions(with_gpu: Box) -> None:
    assert "matmul-as-convolution" in [transform.name for transform in Plugin().transforms(with_gpu("8.9", "7.5"))]

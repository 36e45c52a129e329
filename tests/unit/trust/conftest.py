# SPDX-License-Identifier: Apache-2.0
"""A small bundle that is not signed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nndeploy.bundle.manifest import Manifest, NamedType, Submodel, Variant
from nndeploy.bundle.writer import write_bundle
from nndeploy.values.types import TensorType

F32 = TensorType("float32", (1,))
MODEL = "submodels/a/v/model.onnx"


@pytest.fixture
def make_bundle(tmp_path: Path) -> Callable[[str, bytes], Path]:
    """Returns a function: a file's name, the bytes of its model -> the bundle that was written there."""

    def make(name: str, model: bytes) -> Path:
        manifest = Manifest(
            model_name="m",
            model_sha256="0" * 64,
            inputs=(NamedType("x", F32),),
            outputs=(NamedType("y", F32),),
            submodels=(Submodel("a", ("x",), ("y",), (Variant("v", "onnxruntime", "host", {"model.onnx": MODEL}),)),),
            values={"x": F32, "y": F32},
            provenance={"tools": {"nndeploy": "0.1.0"}, "options": {"threads": None}, "backends": {}},
        )
        write_bundle(tmp_path / name, manifest, {MODEL: model}, {})
        return tmp_path / name

    return make


@pytest.fixture
def bundle(make_bundle: Callable[[str, bytes], Path]) -> Path:
    """A bundle that is not signed."""
    return make_bundle("m.nnd", b"model")

# SPDX-License-Identifier: Apache-2.0
"""A small manifest with everything in it, and the members that it needs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nndeploy.bundle.manifest import (
    Golden,
    ImageInput,
    Manifest,
    Member,
    NamedType,
    Submodel,
    TargetChain,
    Tolerance,
    Variant,
)
from nndeploy.bundle.values import encode_values
from nndeploy.bundle.writer import write_bundle
from nndeploy.values.types import DimRange, MapType, OptionalType, SequenceType, TensorType

IMAGE = TensorType("float32", ("N", 3, 8, 8))
SCORES = TensorType("float32", ("N", None))
LABELS = SequenceType(MapType("int64", TensorType("float32", ())))


def small_manifest() -> Manifest:
    head = Variant(
        id="portable", backend="onnxruntime", target="host",
        files={"model.onnx": "submodels/head/portable/model.onnx", "parts/weights.bin": "weights/shared.bin"},
        metadata={"opset": 20, "names": ["x"], "nested": {"deep": None}},
        requires={"arch": "x86_64", "cpu_features": ["avx2"], "custom_ops": ["com.example"]}, native_code=True,
        deterministic=False,
    )  # fmt: skip
    tail = Variant("portable", "reference", "host", {"model.onnx": "submodels/tail/portable/model.onnx"})
    return Manifest(
        model_name="Digits \N{LATIN SMALL LETTER E WITH ACUTE}",
        model_sha256="ab" * 32,
        inputs=(NamedType("image/:0", IMAGE), NamedType("mask", OptionalType(TensorType("bool", None)))),
        outputs=(
            NamedType("scores", SCORES), NamedType("labels", LABELS), NamedType("same", IMAGE),
            NamedType("always", TensorType("string", (2,))),
        ),
        submodels=(
            Submodel("head", ("image/:0", "mask"), ("features",), (head,)),
            Submodel("tail", ("features", "image/:0"), ("scores", "labels"), (tail,)),
        ),
        values={
            "image/:0": IMAGE, "mask": OptionalType(TensorType("bool", None)),
            "features": TensorType("bfloat16", ("N", 16)), "scores": SCORES, "labels": LABELS, "same": IMAGE,
            "always": TensorType("string", (2,)),
        },
        ranges={"N": DimRange(1, 8, 4)},
        aliases={"same": "image/:0"},
        constants="tables/constants.safetensors",
        goldens=(Golden("goldens/0/inputs.safetensors", "goldens/0/outputs.safetensors", "", "generated"),),
        tolerances={"float32": Tolerance(1e-4, 1e-5)},
        checks=({"scope": "whole", "ok": True},),
        image_input=ImageInput("image/:0", 8, 8, "RGB", "NCHW", (0.0, 0.5, 1.0), (255.0, 1.0, 2.5), ("zero", "one")),
        provenance={"nndeploy": "0.1.0", "options": {"threads": None}},
    )  # fmt: skip


def target_chain(manifest: Manifest) -> TargetChain:
    """A chain of one submodel for a GPU, in the place of both of the portable one."""
    engine = Variant(
        "engine", "tensorrt", "RTX 4090", {"engine.trt": "weights/shared.bin"},
        requires={"arch": "x86_64", "compute_capability": ["8.9"]}, native_code=True,
    )  # fmt: skip
    values = {name: kind for name, kind in manifest.values.items() if name != "features"}
    submodel = Submodel("rtx.s0", ("image/:0", "mask"), ("scores", "labels"), (engine,))
    return TargetChain("rtx", "RTX 4090", (submodel,), values)


def small_members() -> dict[str, bytes]:
    return {
        "submodels/head/portable/model.onnx": bytes(range(256)) * 20,
        "submodels/tail/portable/model.onnx": b"tail",
        "weights/shared.bin": b"",
        "tables/constants.safetensors": encode_values({"always": np.array(["a", "b"], dtype=object)}),
        "goldens/0/inputs.safetensors": encode_values({"image/:0": np.ones((1, 3, 8, 8), np.float32), "mask": None}),
        "goldens/0/outputs.safetensors": encode_values({"scores": np.zeros((1, 2), np.float32)}),
    }


@pytest.fixture
def manifest() -> Manifest:
    return small_manifest()


@pytest.fixture
def manifest_with_chains(full_manifest: Manifest) -> Manifest:
    return replace(full_manifest, target_chains=(target_chain(full_manifest),))


@pytest.fixture
def full_manifest() -> Manifest:
    """The manifest with its members listed, though with made-up hashes."""
    listed = {name: Member("00" * 32, len(data)) for name, data in small_members().items()}
    return replace(small_manifest(), members={**listed, "report.json": Member("11" * 32, 2)})


@pytest.fixture
def members() -> dict[str, bytes]:
    return small_members()


@pytest.fixture
def bundle_path(tmp_path: Path) -> Path:
    path = tmp_path / "small.nnd"
    write_bundle(path, small_manifest(), small_members(), {"model": "digits"})
    return path

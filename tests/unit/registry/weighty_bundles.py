# SPDX-License-Identifier: Apache-2.0
"""Bundles of which weights are the most, as they are pushed and pulled."""

import random
from pathlib import Path

from nndeploy.bundle.manifest import Manifest, NamedType, Submodel, Variant
from nndeploy.bundle.writer import write_bundle
from nndeploy.registry.options import RegistryOptions
from nndeploy.values.types import TensorType

QUICK = RegistryOptions(timeout=5)


def write_weights(path: Path, seeds: tuple[int, ...], size: int = 300_000, plan: bytes = b"plan") -> bytes:
    """Writes a bundle of one submodel with a file of weights for each seed, and returns its bytes."""
    value = TensorType("float32", (1, 3))
    files = {f"weights{number}.bin": f"weights/{number}.bin" for number in range(len(seeds))}
    variant = Variant("portable", "native", "host", {"plan": "submodels/s0/plan", **files})
    manifest = Manifest(
        "faces", "ab" * 32, (NamedType("x", value),), (NamedType("y", value),),
        (Submodel("s0", ("x",), ("y",), (variant,)),), {"x": value, "y": value},
    )  # fmt: skip
    weights = {files[f"weights{n}.bin"]: random.Random(seed).randbytes(size) for n, seed in enumerate(seeds)}  # noqa: S311
    write_bundle(path, manifest, {"submodels/s0/plan": plan, **weights}, {"model": "faces"})
    return path.read_bytes()

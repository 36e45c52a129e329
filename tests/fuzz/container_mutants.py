# SPDX-License-Identifier: Apache-2.0
"""A small bundle, what damage does to its bytes, and whether the reader takes what came of it."""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from nndeploy.bundle.compress_member import copy, encode, literal
from nndeploy.bundle.container import encode_container
from nndeploy.bundle.manifest import Compressed, Manifest, Member, NamedType, Submodel, Variant
from nndeploy.bundle.manifest_json import encode_manifest
from nndeploy.bundle.reader import Bundle
from nndeploy.errors import BundleError
from nndeploy.values.types import TensorType

FLOAT = TensorType("float32", (1,))
MODEL = "submodels/a/v/model.onnx"


def small_contents() -> dict[str, bytes]:
    """The members of a small bundle with one submodel, the manifest included."""
    small = encode([literal(memoryview(b"model")), copy(0, 10, 90)])
    contents = {"report.json": b"{}", MODEL: small, "weights/w": bytes(range(100))}
    variant = Variant("v", "onnxruntime", "host", {"model.onnx": MODEL})
    real = b"model" + bytes(range(10, 100))
    manifest = Manifest(
        model_name="m", model_sha256="0" * 64, inputs=(NamedType("x", FLOAT),), outputs=(NamedType("y", FLOAT),),
        submodels=(Submodel("a", ("x",), ("y",), (variant,)),), values={"x": FLOAT, "y": FLOAT},
        compressed={MODEL: Compressed(hashlib.sha256(real).hexdigest(), len(real), ("weights/w",))},
    )  # fmt: skip
    return sealed(manifest, contents)


def sealed(manifest: Manifest, contents: dict[str, bytes]) -> dict[str, bytes]:
    members = {name: Member(hashlib.sha256(data).hexdigest(), len(data)) for name, data in contents.items()}
    return {**contents, "manifest.json": encode_manifest(replace(manifest, members=members))}


BUNDLE = b"".join(encode_container(small_contents()))


def is_taken(data: bytes) -> bool:
    """Whether the reader takes the bytes for a whole bundle; any exception but BundleError is a failed test."""
    try:
        Bundle(data, Path("x.nnd")).verify()
    except BundleError:
        return False
    return True


def changed_bytes(all_values: bool = False) -> Iterator[tuple[str, bytes]]:
    """Gives the bundle with each byte changed, to several values or to each, and says which it is."""
    mutant = bytearray(BUNDLE)
    for position, byte in enumerate(BUNDLE):
        flips = [byte ^ 1 << bit for bit in range(8)]
        for value in {*flips, (byte + 1) % 256, 0, 0xFF, *(range(256) if all_values else ())} - {byte}:
            mutant[position] = value
            yield f"byte {position} = {value:#04x}", bytes(mutant)
        mutant[position] = byte


def damaged(rng: random.Random) -> bytes:
    """The bundle with 2 to 8 places changed: bytes, little-endian figures, runs copied, moved, dropped or filled."""
    mutant = bytearray(BUNDLE)
    for _ in range(rng.randint(2, 8)):
        at, length = rng.randrange(len(mutant)), rng.randint(1, 40)
        match rng.randrange(6):
            case 0:
                mutant[at] = rng.randrange(256)
            case 1:
                mutant[at : at + 4] = rng.choice((0, 1, 0xFFFF, 0xFFFFFFFF, len(BUNDLE))).to_bytes(4, "little")
            case 2:
                mutant[at : at + length] = bytes([rng.choice((0, 0xFF, 0x50))]) * length
            case 3:
                mutant[at : at + length] = mutant[(source := rng.randrange(len(mutant))) : source + length]
            case 4:
                del mutant[at : at + rng.randint(1, 3)]
            case _:
                mutant[at:at] = rng.randbytes(rng.randint(1, 3))
    return bytes(mutant)

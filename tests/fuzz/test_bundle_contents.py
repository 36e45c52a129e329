# SPDX-License-Identifier: Apache-2.0
"""Hostile contents in a container that is whole: damaged manifests and values are read or refused by one error.

Here nothing can be seen by hash or checksum, as after an attacker packed the bundle anew. A mutant may happen to be
another valid manifest; what counts is that no other exception than the project's ever comes out.
"""

import copy
import json
import random
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nndeploy.bundle.compress_member import copy as copied
from nndeploy.bundle.compress_member import encode, items, literal
from nndeploy.bundle.compressed_member import expand
from nndeploy.bundle.manifest import (
    Compressed,
    Golden,
    ImageInput,
    Manifest,
    Member,
    NamedType,
    PlacedSubmodel,
    Placing,
    Submodel,
    TargetChain,
    Tolerance,
    Variant,
)
from nndeploy.bundle.manifest_check import check_manifest
from nndeploy.bundle.manifest_json import decode_manifest, encode_manifest
from nndeploy.bundle.values import decode_values, encode_values
from nndeploy.errors import BundleError, DataError
from nndeploy.files.strict_json import canonical_json
from nndeploy.values.types import DimRange, MapType, OptionalType, SequenceType, TensorType

NUM_MUTANTS = 2_000
FLOAT = TensorType("float32", ("N", 3))
MEMBERS = {name: Member("0" * 64, 1) for name in ("report.json", "f", "g", "c")}
VARIANT = Variant("v", "onnxruntime", "host", {"f": "f"}, {"k": [1, None]}, {"arch": "x86_64", "cpu_features": ["avx"]})
GPU_VARIANT = Variant("v", "tensorrt", "box", {"f": "f"}, requires={"compute_capability": ["8.9"]})
CHAIN_VALUES = {
    "x": FLOAT, "o": OptionalType(FLOAT), "p": FLOAT, "c": FLOAT, "y": SequenceType(MapType("int64", FLOAT)),
}  # fmt: skip
MANIFEST = Manifest(
    model_name="m", model_sha256="0" * 64, inputs=(NamedType("x", FLOAT), NamedType("o", OptionalType(FLOAT))),
    outputs=(NamedType("y", SequenceType(MapType("int64", FLOAT))), NamedType("p", FLOAT), NamedType("c", FLOAT)),
    submodels=(Submodel("a", ("x", "o"), ("h",), (VARIANT,)), Submodel("b", ("h",), ("y",), (VARIANT,))),
    values={
        "x": FLOAT, "o": OptionalType(FLOAT), "h": FLOAT, "p": FLOAT, "c": FLOAT,
        "y": SequenceType(MapType("int64", FLOAT)),
    },
    target_chains=(TargetChain("g", "box", (Submodel("g.a", ("x", "o"), ("y",), (GPU_VARIANT,)),), CHAIN_VALUES),),
    ranges={"N": DimRange(1, 8, 4)}, aliases={"p": "x"}, constants="c", goldens=(Golden("g", "g", "g", "sample"),),
    tolerances={"float32": Tolerance(0.5, 0.25)}, checks=({"ok": True},),
    image_input=ImageInput("x", 8, 8, "L", "NCHW", (0.5,), (2.0,), ("zero",)), provenance={"tool": {"version": "1"}},
    members=MEMBERS, compressed={"g": Compressed("0" * 64, 5, ("f",))},
    placings={
        "portable": Placing(
            {"a": PlacedSubmodel("cpu:0", 1, 2), "b": PlacedSubmodel("cpu:1", 3, 4)}, {"x": 12, "h": 12},
        ),
        "g": Placing({"g.a": PlacedSubmodel("cuda:0", 1, 2)}, {"x": 12}),
    },
)  # fmt: skip
VALUES = encode_values({
    "x": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([True, False]),
    "s": np.array([["a", b"\xff"]], dtype=object),
    "l": [None, {1: np.int8(3), 5: "t"}, {"k": np.zeros((0, 2), np.complex64)}, 1.5, 2],
})  # fmt: skip
LEAVES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 7, 2**31, 2**63, 2**64, 10**300, 0.5, 1e308, "", "x", "a", "h", "f", "..", "\0", "N", "v",
    "float32", "int64", "string", "tensor", "sequence", "0", "0" * 64, [], [None], ["x"], [["x", 1]], {}, {"x": "x"},
    {"kind": "none"}, {"kind": "tensor"}, {"base64": "/w=="},
)  # fmt: skip


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    mutant = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not mutant:
            break
        at = rng.randrange(len(mutant))
        match rng.randrange(4):
            case 0:
                mutant[at] = rng.randrange(256)
            case 1:
                mutant[at : at + 1] = bytes([rng.choice(b'{}[]":,\\0-eE.tfn ')])
            case 2:
                del mutant[at : at + rng.randint(1, 20)]
            case _:
                mutant[at:at] = mutant[(start := rng.randrange(len(mutant))) : start + rng.randint(1, 30)]
    return bytes(mutant)


def nodes_of(node: Any) -> Iterator[tuple[Any, Any]]:
    for key, item in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(item, dict | list):
            yield from nodes_of(item)


def damaged_tree(data: Any, rng: random.Random) -> Any:
    data = copy.deepcopy(data)
    damage(data, rng)
    return data


def damage(data: Any, rng: random.Random) -> None:
    """Replaces one to three items of plain data by others of it or of `LEAVES`, removes or renames them."""
    for _ in range(rng.randint(1, 3)):
        places = list(nodes_of(data))
        if not places:
            break
        parent, key = rng.choice(places)
        source, source_key = rng.choice(places)
        match rng.randrange(4):
            case 0:
                parent[key] = copy.deepcopy(source[source_key])
            case 1:
                del parent[key]
            case 2 if isinstance(parent, dict):
                parent[rng.choice(("x", "y", "h", "o", "", "zz"))] = parent.pop(key)
            case _:
                parent[key] = copy.deepcopy(rng.choice(LEAVES))


BASE = bytes(range(256))
FLOATS = np.arange(40, dtype=np.float32).repeat(3).tobytes()
PIECES = [literal(memoryview(b"literal")), copied(0, 50, 100), items(memoryview(FLOATS), 4), items(memoryview(BASE), 2)]
SMALL = encode(PIECES)
REAL = b"literal" + BASE[50:150] + FLOATS + BASE


def refused(error: DataError) -> bool:
    assert str(error).isprintable()
    return False


def read_manifest(text: bytes) -> bool:
    """Whether the text is read as a manifest; then it must be the very text of that manifest."""
    try:
        manifest = decode_manifest(text)
        check_manifest(manifest)
    except BundleError as err:
        return refused(err)
    if b'"minor":0' in text or b'"minor":1' in text:
        assert json.loads(encode_manifest(manifest)) == json.loads(text)
    return True


def read_values(data: bytes) -> bool:
    """Whether the bytes are read as values; then they must be the very bytes of those values."""
    try:
        values = decode_values(data)
    except DataError as err:
        return refused(err)
    assert encode_values(values) == data
    return True


def read_compressed(stored: bytes, size: int = len(REAL)) -> bool:
    """Whether a member is expanded; then all of it was filled, and nothing outside of its base was read."""
    target = bytearray(size)

    def read_base(number: int, offset: int, part: memoryview) -> None:
        assert number == 0 <= offset <= offset + len(part) <= len(BASE)
        part[:] = BASE[offset : offset + len(part)]

    try:
        expand(memoryview(stored), memoryview(target), [len(BASE)], read_base)
    except BundleError as err:
        return refused(err)
    return True


def damaged_stream(rng: random.Random) -> bytes:
    """What a compressed member deflates to, with one to four words or bytes of it changed."""
    mutant = bytearray(zlib.decompress(SMALL))
    for _ in range(rng.randint(1, 4)):
        word = 8 * rng.randrange(1 + 4 * len(PIECES))
        match rng.randrange(4):
            case 0:
                mutant[rng.randrange(len(mutant))] ^= 1 << rng.randrange(8)
            case 1:
                number = rng.choice((0, 1, 2, 3, 4, 16, 255, 256, len(REAL), 2**31, 2**62, 2**63 - 1, -1, -(2**63)))
                mutant[word : word + 8] = number.to_bytes(8, "little", signed=True)
            case 2:
                other = 8 * rng.randrange(1 + 4 * len(PIECES))
                mutant[word : word + 8] = mutant[other : other + 8]
            case _:
                del mutant[(at := rng.randrange(len(mutant))) : at + rng.randint(1, 9)]
    return zlib.compress(mutant, 1)


def test_damaged_compressed_members_are_expanded_or_refused(rng: random.Random) -> None:
    assert read_compressed(SMALL)
    num_read = sum(read_compressed(damaged_bytes(SMALL, rng)) for _ in range(NUM_MUTANTS // 4))
    assert num_read < NUM_MUTANTS // 100
    num_read = sum(read_compressed(damaged_stream(rng)) for _ in range(NUM_MUTANTS))
    assert 0 < num_read < NUM_MUTANTS // 2
    assert not any(read_compressed(SMALL, size) for size in (0, 1, len(REAL) - 1, len(REAL) + 1, 1 << 20))


def test_the_undamaged_ones_are_read() -> None:
    assert read_manifest(encode_manifest(MANIFEST))
    assert read_values(VALUES)


@pytest.fixture
def rng() -> random.Random:
    return random.Random(20261120)  # noqa: S311 - the same mutants each time


def test_damaged_manifest_texts_are_read_or_refused(rng: random.Random) -> None:
    text = encode_manifest(MANIFEST)
    num_read = sum(read_manifest(damaged_bytes(text, rng)) for _ in range(NUM_MUTANTS))
    assert num_read < NUM_MUTANTS // 4


def test_manifests_that_say_something_else_are_read_or_refused(rng: random.Random) -> None:
    data = json.loads(encode_manifest(MANIFEST))
    num_read = sum(read_manifest(canonical_json(damaged_tree(data, rng))) for _ in range(NUM_MUTANTS // 4))
    assert 0 < num_read < NUM_MUTANTS // 8


def test_damaged_values_are_read_or_refused(rng: random.Random) -> None:
    num_read = sum(read_values(damaged_bytes(VALUES, rng)) for _ in range(NUM_MUTANTS))
    assert num_read < NUM_MUTANTS // 4


def test_values_whose_tree_says_something_else_are_read_or_refused(rng: random.Random) -> None:
    length = int.from_bytes(VALUES[:8], "little")
    header, body = json.loads(VALUES[8 : 8 + length]), VALUES[8 + length :]
    tree = json.loads(header["__metadata__"]["nndeploy.values.1"])
    num_read = 0
    for _ in range(NUM_MUTANTS // 2):
        header["__metadata__"]["nndeploy.values.1"] = canonical_json(damaged_tree(tree, rng)).decode()
        text = canonical_json(header)
        text += b" " * (-(len(text) + 8) % 64)
        num_read += read_values(len(text).to_bytes(8, "little") + text + body)
    assert 0 < num_read < NUM_MUTANTS // 8

# SPDX-License-Identifier: Apache-2.0
"""Whole bundles of which one member says something else, with every hash made right, as an attacker packs them.

Two seeds: one that was compiled, with a plan of `native`, an ONNX model, goldens, a report, a pipeline with its files
and what operators count, signed by a key that is trusted; and one put together by hand, whose manifest has all fields
that there are. `mutant(seeds, number)` is always the same one.
"""

import hashlib
import json
import random
import sys
import zlib
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

from nndeploy.bundle.compress_member import copy as copied
from nndeploy.bundle.compress_member import encode, literal
from nndeploy.bundle.container import encode_container
from nndeploy.bundle.manifest import Compressed, Member
from nndeploy.bundle.manifest_check import SIGNATURE_NAME
from nndeploy.bundle.manifest_json import MANIFEST_NAME, encode_manifest
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.values import encode_values
from nndeploy.cli.main import run_command
from nndeploy.files.strict_json import canonical_json

sys.path.append(str(Path(__file__).parent))

from fuzz_native_plans import changed_bytes, changed_plan, changed_words
from test_bundle_contents import MANIFEST, damage, damaged_bytes

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,1,8,8] image) => (float[N,4] y, float[N,1,8,8] same) {
  a = Conv<pads = [1,1,1,1], strides = [2,2]>(image, w) r = Relu(a) f = Flatten(r) y = MatMul(f, m)
  same = Identity(image) }"""
PIPELINE = """
[source]
kind = "images"
[[level]]
[[level.pipeline]]
name = "classes"
inputs = { image = "tensor" }
[[level.pipeline.loader]]
steps = [
    { use = "decode" },
    { use = "resize", width = 8, height = 8, out = ["small", "transform"] },
    { use = "normalise", in = ["small"], std = [16] },
    { use = "layout", channels = "L" },
]
[[level.pipeline.post]]
steps = [{ use = "softmax", in = ["y"] }, { use = "top-k", k = 1, labels = "labels.txt" }]
[[sink]]
kind = "json-lines"
"""
COUNTED = {
    "shapes": {"image": [2, 1, 8, 8]},
    "submodels": {"s0": {"values": [["image", 512], ["y", 32]], "operators": [["Conv", [0], [1], 576, 72]]}},
}
OPERATORS, LABELS = "pacing/operators.json", "pipeline/files/0"


@dataclass(frozen=True, slots=True)
class Seed:
    """A bundle in parts; `real` is what the member really is that is stored compressed."""

    name: str
    manifest: bytes
    members: Mapping[str, bytes]
    hashes: Mapping[str, Member]
    signature: bytes = b""
    real: bytes = b""

    def container(self, changed: Mapping[str, bytes], manifest: bytes, signature: bytes) -> bytes:
        """Returns the bundle with other members, another manifest and another signature."""
        members = {**self.members, **changed, MANIFEST_NAME: manifest}
        if signature:
            members[SIGNATURE_NAME] = signature
        return b"".join(encode_container(members))


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bundle that says something else in one place; `kind` is what, `truth` the members as they are."""

    kind: str
    seed: Seed
    data: bytes
    truth: Mapping[str, Member]


def member_of(data: bytes) -> Member:
    return Member(hashlib.sha256(data).hexdigest(), len(data))


def _seed(name: str, path: Path, real: bytes = b"") -> Seed:
    with open_bundle(path) as bundle:
        members = {one: bytes(bundle.stored(one)) for one in bundle.manifest.members}
        text = encode_manifest(bundle.manifest)
        return Seed(name, text, members, dict(bundle.manifest.members), bundle.signature, real)


def compiled_seed(folder: Path) -> Seed:
    """Returns a bundle that was compiled and signed, in a folder where the key is: farm.key, farm.pub."""
    numbers = np.random.default_rng(0)
    model = onnx.parser.parse_model(MODEL)
    for name, shape in {"w": (2, 1, 3, 3), "m": (32, 4)}.items():
        array = numbers.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    with chdir(folder):
        onnx.save(model, "m.onnx")
        Path("labels.txt").write_text("\n".join("abcd"))
        Path("p.toml").write_text(PIPELINE)
        options = ("--backends", "native,onnxruntime", "--objective", "priority", "--pipeline", "p.toml")
        assert run_command(["compile", "m.onnx", "-o", "m.nnd", "--shape", "image=1..4,1,8,8:2,1,8,8", *options]) == 0
        whole = _seed("compiled", Path("m.nnd"))
        manifest = json.loads(whole.manifest)
        manifest |= {
            "pace_operators": OPERATORS, "checks": manifest["checks"][:2], "provenance": {"tool": {"version": "1"}},
        }  # fmt: skip
        manifest["tolerances"] = {"float32": manifest["tolerances"]["float32"]}
        counted = canonical_json(COUNTED)
        hashes = {**whole.hashes, OPERATORS: member_of(counted)}
        manifest["members"] = {
            name: {"sha256": one.sha256, "size_bytes": one.size_bytes} for name, one in hashes.items()
        }
        Path("m.nnd").write_bytes(whole.container({OPERATORS: counted}, canonical_json(manifest), b""))
        assert run_command(["key", "new", "farm"]) == 0
        assert run_command(["sign", "m.nnd", "--key", "farm.key", "--release", "1.0"]) == 0
        return _seed("compiled", Path("m.nnd"))


def described_seed(folder: Path) -> Seed:
    """Returns a bundle that nothing runs, with all fields of the format and a member that is stored compressed."""
    base = bytes(range(256))
    real = encode_values({"x": np.frombuffer(base, np.uint8)})
    assert real.endswith(base)
    members = {
        "report.json": b"{}", "f": base, "c": encode_values({"c": np.zeros((1, 3), np.float32)}),
        "g": encode([literal(memoryview(real[:-256])), copied(0, 0, 200), literal(memoryview(real[-56:]))]),
    }  # fmt: skip
    compressed = {"g": Compressed(hashlib.sha256(real).hexdigest(), len(real), ("f",))}
    listed = {name: member_of(data) for name, data in members.items()}
    text = encode_manifest(replace(MANIFEST, members=listed, compressed=compressed))
    path = folder / "described.nnd"
    path.write_bytes(b"".join(encode_container({**members, MANIFEST_NAME: text})))
    return _seed("described", path, real)


# ---- what is changed


Made = tuple[bytes, Mapping[str, Member]]
"""A bundle, and its members as they are."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is changed of a seed, so often among all; the kind is under what it is counted."""

    often: int
    kind: str
    seed: str
    make: Callable[[Seed, random.Random], Made]


def _tree(seed: Seed, dice: random.Random) -> Made:
    """The manifest says something else; its list of members may be what is wrong."""
    manifest = json.loads(seed.manifest)
    damage(manifest, dice)
    return seed.container({}, canonical_json(manifest), seed.signature), seed.hashes


def _text(seed: Seed, dice: random.Random) -> Made:
    return seed.container({}, damaged_bytes(seed.manifest, dice), seed.signature), seed.hashes


def _signature(seed: Seed, dice: random.Random) -> Made:
    text = seed.signature
    if dice.random() < 0.5:
        text = damaged_bytes(text, dice)
    else:
        lines = text.splitlines(keepends=True)
        number = dice.randrange(len(lines))
        tree = json.loads(lines[number])
        damage(tree, dice)
        lines[number] = canonical_json(tree) + b"\n"
        text = b"".join(dice.sample(lines, dice.randint(1, len(lines))) if dice.random() < 0.2 else lines)
    return seed.container({}, seed.manifest, text), seed.hashes


def with_member(seed: Seed, name: str, data: bytes) -> Made:
    truth = {**seed.hashes, name: member_of(data)}
    before, now = (_listed(name, hashes[name]) for hashes in (seed.hashes, truth))
    assert seed.manifest.count(before) == 1
    return seed.container({name: data}, seed.manifest.replace(before, now), seed.signature), truth


def _listed(name: str, member: Member) -> bytes:
    return f'"{name}":{{"sha256":"{member.sha256}","size_bytes":{member.size_bytes}}}'.encode()


def _other_json(data: bytes, dice: random.Random) -> bytes:
    if dice.random() < 0.25:
        return damaged_bytes(data, dice)
    tree = json.loads(data)
    damage(tree, dice)
    return canonical_json(tree)


def _other_values(data: bytes, dice: random.Random) -> bytes:
    if dice.random() < 0.5:
        return damaged_bytes(data, dice)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    if dice.random() < 0.5:
        damage(header, dice)
    else:
        tree = json.loads(header["__metadata__"]["nndeploy.values.1"])
        damage(tree, dice)
        header["__metadata__"]["nndeploy.values.1"] = canonical_json(tree).decode()
    text = canonical_json(header)
    text += b" " * (-(len(text) + 8) % 64)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def _other_stream(data: bytes, dice: random.Random) -> bytes:
    if dice.random() < 0.3:
        return damaged_bytes(data, dice)
    stream = bytearray(zlib.decompress(data))
    for _ in range(dice.randint(1, 3)):
        word = 8 * dice.randrange(13)
        number = dice.choice((0, 1, 2, 4, 16, 50, 100, 256, 2**31, 2**62, 2**63 - 1, -1))
        if dice.random() < 0.5:
            stream[word : word + 8] = number.to_bytes(8, "little", signed=True)
        else:
            stream[dice.randrange(len(stream))] ^= 1 << dice.randrange(8)
    return zlib.compress(stream, 1)


def _of(name: str, change: Callable[[bytes, random.Random], bytes]) -> Callable[[Seed, random.Random], Made]:
    return lambda seed, dice: with_member(seed, name, change(seed.members[name], dice))


NATIVE, ONNX = "submodels/s0/v0-native", "submodels/s0/v1-onnxruntime/model.onnx"
GOLDENS = "goldens/0"

CHANGES: tuple[Change, ...] = (
    Change(360, "manifest with all fields", "described", _tree), Change(60, "manifest of a compile", "compiled", _tree),
    Change(60, "bytes of a manifest", "compiled", _text), Change(80, "signature", "compiled", _signature),
    Change(80, "report", "compiled", _of("report.json", _other_json)),
    Change(40, "goldens", "compiled", _of(f"{GOLDENS}/inputs.values", _other_values)),
    Change(20, "goldens", "compiled", _of(f"{GOLDENS}/outputs.values", _other_values)),
    Change(60, "constants", "described", _of("c", _other_values)),
    Change(100, "member stored compressed", "described", _of("g", _other_stream)),
    Change(60, "what operators count", "compiled", _of(OPERATORS, _other_json)),
    Change(20, "pipeline", "compiled", _of("pipeline/pipeline.toml", damaged_bytes)),
    Change(15, "names of a pipeline's files", "compiled", _of("pipeline/files.json", _other_json)),
    Change(5, "labels", "compiled", _of(LABELS, damaged_bytes)),
    Change(15, "plan.json", "compiled", _of(f"{NATIVE}/plan.json", lambda data, dice: changed_plan(data, dice)[0])),
    Change(10, "plan.bin", "compiled", _of(f"{NATIVE}/plan.bin", lambda data, dice: changed_words(data, dice)[0])),
    Change(5, "weights", "compiled", _of(f"{NATIVE}/weights.bin", lambda data, dice: changed_bytes(data, dice)[0])),
    Change(10, "ONNX model", "compiled", _of(ONNX, damaged_bytes)),
)  # fmt: skip
_OFTEN = [change.often for change in CHANGES]


def seeds_in(folder: Path) -> dict[str, Seed]:
    """Returns both seeds by name; the folder gets the pair of keys farm.key and farm.pub."""
    return {one.name: one for one in (compiled_seed(folder), described_seed(folder))}


def mutant(seeds: Mapping[str, Seed], number: int) -> Mutant:
    dice, change = _drawn(number)
    seed = seeds[change.seed]
    return Mutant(change.kind, seed, *change.make(seed, dice))


def kind_of(number: int) -> str:
    return _drawn(number)[1].kind


def _drawn(number: int) -> tuple[random.Random, Change]:
    dice = random.Random(number)  # noqa: S311 - no secret
    return dice, dice.choices(CHANGES, _OFTEN)[0]

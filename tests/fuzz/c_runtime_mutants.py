# SPDX-License-Identifier: Apache-2.0
"""Damaged bundles for the C runtime, hashes made right or not, and the program that opens them under sanitizers."""

import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
from member_mutants import Seed, mutant, seeds_in
from nndeploy_kernels import build_runtime
from nndeploy_kernels.build import level_here
from nndeploy_kernels.levels import precisions

import nndeploy
from nndeploy.bundle.container import encode_container
from nndeploy.bundle.manifest import ImageInput
from nndeploy.bundle.reader import Bundle
from nndeploy.bundle.writer import sealed_bundle

TRIALS = Path(__file__).with_name("c_runtime_trials.c")

GROWING = """<ir_version: 10, opset_import: ["" : 21]>
g (float[1,t,8] x, float[1,past,8] before, bool[1] first) => (float[1,t,8] y, float[1,all,8] after) {
  after = Concat<axis=1>(before, x) turned = Transpose<perm=[0,2,1]>(after) a = MatMul(x, turned)
  w = Softmax<axis=-1>(a) m = MatMul(w, after)
  y = If(first) <then_branch = t () => (float[1,t,8] p) { p = Relu(m) },
                 else_branch = e () => (float[1,t,8] q) { n = Neg(m) q = Exp(n) }> }"""


TABLE = """<ir_version: 8, opset_import: ["" : 19, "ai.onnx.ml" : 3]>
g (string[n,2] x, int64[n] k, float[n,2] s) =>
  (int64[n,2] a, string[m,4] r, string[2,n] t, string[n,2,2] q, bool[n,2] e, string[n] l, seq(map(string, float)) maps)
<int64[2] shape = {-1, 4}, int64[2,2] places = {0, -1, 1, 1}, string[2] words = {"b", "c"}> {
  a = ai.onnx.ml.LabelEncoder<keys_strings = ["b", "a"], values_int64s = [3, -1], default_int64 = 5>(x)
  l = ai.onnx.ml.LabelEncoder<keys_int64s = [3, -1], values_strings = ["three", "less"], default_string = "none">(k)
  t = Transpose<perm = [1, 0]>(x) c = Concat<axis = 1>(x, x) r = Reshape(c, shape) q = Gather<axis = 1>(c, places)
  e = Equal(x, words) maps = ai.onnx.ml.ZipMap<classlabels_strings = ["p", "q"]>(s) }"""


@dataclass(frozen=True, slots=True)
class Seeds:
    """Bundles that are damaged: those of member_mutants, one with a cache that grows, one of texts and maps."""

    members: Mapping[str, Seed]
    growing: bytes
    table: bytes


def all_seeds(folder: Path) -> Seeds:
    return Seeds(seeds_in(folder), growing_bundle(folder / "growing.nnd"), table_bundle(folder / "table.nnd"))


def table_bundle(bundle: Path) -> bytes:
    """Returns a bundle with steps of texts and maps."""
    sample = {"x": np.full((2, 2), "a", object), "k": np.arange(2), "s": np.ones((2, 2), np.float32)}
    return _compiled(onnx.parser.parse_model(TABLE), bundle, samples=[sample])


def growing_bundle(bundle: Path) -> bytes:
    """Returns a bundle with a cache that grows and a choice."""
    model = onnx.parser.parse_model(GROWING)
    model.graph.output[1].type.tensor_type.shape.dim[1].dim_param = "past + t"
    return _compiled(model, bundle)


def _compiled(model: onnx.ModelProto, bundle: Path, **options: Any) -> bytes:
    nndeploy.compile_model(model, bundle, backends=("native",), objective="priority", threads=1, **options)
    return bundle.read_bytes()


def other_documents(data: bytes, number: int) -> bytes:
    """Returns the bundle with another plan.json, hashes made right: its numbers, words and brackets stand elsewhere."""
    dice = random.Random(number)  # noqa: S311 - no secret
    with Bundle(data, Path("m.nnd")) as bundle:
        manifest = replace(bundle.manifest, compressed={}, goldens=())
        members = {name: bytes(bundle.member(name)) for name in manifest.members if name.startswith("submodels/")}
    name = next(name for name in members if name.endswith("plan.json"))
    tokens = re.findall(rb'"[^"]*"|-?\d+|[a-z]+|\S', members[name])
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(tokens))
        edge = str(dice.choice([-1, 0, 1, 2, 7, 255, 1 << 31, 1 << 40, 1 << 62])).encode()
        tokens[at] = edge if tokens[at].isdigit() and dice.random() < 0.7 else dice.choice(tokens)
    contents, _ = sealed_bundle(manifest, {**members, name: b" ".join(tokens)}, {})
    return b"".join(encode_container(contents))


def other_references(data: bytes, number: int) -> bytes:
    """Returns the bundle with other values in a golden, hashes made right: some of its bytes stand elsewhere too."""
    dice = random.Random(number)  # noqa: S311 - no secret
    with Bundle(data, Path("m.nnd")) as bundle:
        (golden,) = bundle.manifest.goldens
        manifest = replace(bundle.manifest, compressed={}, goldens=(replace(golden, boundaries=""),))
        kept = {golden.inputs, golden.outputs}
        names = [name for name in manifest.members if name in kept or name.startswith("submodels/")]
        members = {name: bytearray(bundle.member(name)) for name in names}
    changed = members[dice.choice((golden.inputs, golden.outputs))]
    for _ in range(dice.randint(1, 3)):
        changed[dice.randrange(len(changed))] = dice.choice(changed)
    contents, _ = sealed_bundle(manifest, {name: bytes(member) for name, member in members.items()}, {})
    return b"".join(encode_container(contents))


def other_images(seed: Seed, number: int) -> bytes:
    """Returns the bundle with some way in which images become its input; what fits the input or not."""
    dice = random.Random(number)  # noqa: S311 - no secret
    with Bundle(seed.container({}, seed.manifest, b""), Path("m.nnd")) as bundle:
        sizes, channels = [dice.choice([1, 7, 8, 8, 8, 300]) for _ in range(2)], dice.choice(["L", "L", "RGB", "BGR"])
        scale = tuple(dice.choice([-1.0, 0.5, 1e-30, 16.0]) for _ in channels)
        layout, labels = dice.choice(["NCHW", "NHWC"]), ("a", "b", "c", "d")[: dice.randint(0, 4)]
        how = ImageInput("image", *sizes, channels, layout, tuple(1.0 for _ in channels), scale, labels)
        manifest = replace(bundle.manifest, compressed={}, goldens=(), image_input=how)
        members = {name: bytes(bundle.member(name)) for name in manifest.members if name.startswith("submodels/")}
        if manifest.constants:
            members[manifest.constants] = bytes(bundle.member(manifest.constants))
    manifest = replace(manifest, pace_operators="", checks=())
    contents, _ = sealed_bundle(manifest, members, {})
    return b"".join(encode_container(contents))


def any_mutant(seeds: Seeds, number: int) -> bytes:
    """Returns one of each kind in turn: changed members, other plans, goldens, images, changed bytes; some are cut."""
    dice = random.Random(number)  # noqa: S311 - no secret
    seed = seeds.members["compiled"]
    if number % 4 == 0:
        data = bytearray(mutant(seeds.members, number).data)
    elif number % 4 == 1:
        data = bytearray(other_documents((seeds.growing, seeds.table)[number % 8 // 4], number))
    elif number % 4 == 2:
        data = bytearray(other_references(seeds.table, number))
    elif number % 8 == 3:
        data = bytearray(other_images(seed, number))
    else:
        data = bytearray(seed.container({}, seed.manifest, seed.signature))
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(data[: dice.randrange(len(data))] if number % 16 == 0 else data)


def sanitized_program(folder: Path) -> Path | None:
    """Returns a program that opens and runs bundles under sanitizers, None where there is no C compiler."""
    compiler = shutil.which("clang") or shutil.which("gcc")
    if compiler is None:
        return None
    kernels = build_runtime.build_levels(level_here().arch, precisions(level_here().arch)[-1])
    runtime = sorted(build_runtime.RUNTIME.rglob("*.c"))
    sources = [TRIALS, *(one for one in runtime if one.name not in ("level.c", "main.c"))]
    includes = ["-I", build_runtime.RUNTIME.parent, "-I", build_runtime.SOURCES]
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-pthread"]
    program = folder / "trials"
    subprocess.run([compiler, *flags, *includes, *sources, *kernels, "-lm", "-o", program], check=True)
    return program


def tried(program: Path, files: list[Path]) -> "subprocess.CompletedProcess[str]":
    """Returns how the program ended: it prints "N of M", how many of the bundles ran."""
    return subprocess.run([program, *files], capture_output=True, text=True, check=False)

# SPDX-License-Identifier: Apache-2.0
"""Damaged bundles for the C runtime, hashes made right or not, and the program that opens them under sanitizers."""

import hashlib
import random
import re
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.parser
from member_mutants import Seed, seeds_in
from nndeploy_kernels import build_runtime
from nndeploy_kernels.build import level_here
from nndeploy_kernels.build_runtime import RUNTIME
from nndeploy_kernels.levels import precisions
from sanitizer import FoundError

import nndeploy
from nndeploy.bundle.compress_member import copy as copied
from nndeploy.bundle.compress_member import encode, items, literal
from nndeploy.bundle.container import encode_container
from nndeploy.bundle.manifest import Compressed, ImageInput, Member
from nndeploy.bundle.manifest_json import MANIFEST_NAME, encode_manifest
from nndeploy.bundle.reader import Bundle
from nndeploy.bundle.writer import sealed_bundle
from nndeploy.cli.main import run_command

DRIVER = Path(__file__).with_name("bundle_mutants.c")

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


FOUND = """<ir_version: 8, opset_import: ["" : 19]>
g (float[1,n,4] b, float[1,2,n] s, bool[n] k) => (int64[3,f] p, float[1,m,4] r, float[m] l, int64[c,3] y)
<int64[1] most = {3}, float overlap = {0.5}, float least = {0.1}> {
  p = NonZero(s) r = Compress<axis = 1>(b, k) l = Compress(s, k) h = Relu(s)
  y = NonMaxSuppression(b, h, most, overlap, least) }"""


def seed_files(folder: Path) -> list[Path]:
    """Writes the bundles that are damaged; returns their files.

    Of member_mutants; with images; with a member that is compressed and has a part of another; with a cache that grows
    and a choice; with texts and maps; with steps that find elements.
    """
    with tempfile.TemporaryDirectory() as keys:
        seeds = seeds_in(Path(keys))
        signed = signed_bundle(seeds["compiled"], Path(keys))
    described, compiled = (seeds[name] for name in ("described", "compiled"))
    files = {"signed": signed, "described": described.container({}, described.manifest, b"")}
    files["image"], files["compressed"] = image_bundle(compiled), compressed_bundle(compiled)
    files["growing"] = lean(growing_bundle(folder / "growing.nnd"))
    files["table"] = lean(table_bundle(folder / "table.nnd"))
    files["found"] = lean(_compiled(onnx.parser.parse_model(FOUND), folder / "found.nnd"))
    for name, data in files.items():
        (folder / f"{name}.nnd").write_bytes(data)
    return [folder / f"{name}.nnd" for name in files]


def lean(data: bytes, **changed: Any) -> bytes:
    """Returns a bundle of what the C runtime looks at alone, with something else in its manifest."""
    with Bundle(data, Path("m.nnd")) as bundle:
        manifest, kept = bundle.manifest, ("submodels/", "goldens/")
        tolerances = {"float32": manifest.tolerances["float32"]}
        less = {"compressed": {}, "pace_operators": "", "checks": (), "provenance": {}, "tolerances": tolerances}
        members = {name: bytes(bundle.member(name)) for name in manifest.members if name.startswith(kept)}
    contents, _ = sealed_bundle(replace(manifest, **less, **changed), members, {})
    return b"".join(encode_container(contents))


def signed_bundle(seed: Seed, keys: Path) -> bytes:
    """Returns a bundle that the key of member_mutants signed, which lies in the folder."""
    bundle = keys / "signed.nnd"
    bundle.write_bytes(lean(seed.container({}, seed.manifest, b"")))
    if run_command(["sign", str(bundle), "--key", str(keys / "farm.key"), "--release", "1.0"]):
        raise AssertionError("it cannot be signed")
    return bundle.read_bytes()


def image_bundle(seed: Seed) -> bytes:
    """Returns a bundle with an image input, which is resized, and classes."""
    how = ImageInput("image", 8, 8, "L", "NCHW", (1.0,), (0.5,), ("a", "b", "c", "d"))
    return lean(seed.container({}, seed.manifest, b""), image_input=how)


def compressed_bundle(seed: Seed) -> bytes:
    """Returns a bundle whose outputs of a golden are pieces of each kind, one of them a part of its inputs.

    The stream is not deflated, so that what is changed of it is what is read.
    """
    with Bundle(lean(seed.container({}, seed.manifest, b"")), Path("m.nnd")) as bundle:
        members = {name: bytes(bundle.stored(name)) for name in bundle.manifest.members}
        manifest = bundle.manifest
    (golden,) = manifest.goldens
    base, real = members[golden.inputs], members[golden.outputs]
    image = base[-512:]
    at = real.index(image)
    head, rest = memoryview(real[:at]), memoryview(real[at + 512 :])
    pieces = [literal(head[:-128]), items(head[-128:-64], 1), items(head[-64:], 8), copied(0, len(base) - 512, 512)]
    stored = zlib.compress(zlib.decompress(encode([*pieces, *([literal(rest)] if rest else [])])), 0)
    members[golden.outputs] = stored
    whole = Compressed(hashlib.sha256(real).hexdigest(), len(real), (golden.inputs,))
    listed = {**manifest.members, golden.outputs: Member(hashlib.sha256(stored).hexdigest(), len(stored))}
    text = encode_manifest(replace(manifest, members=listed, compressed={golden.outputs: whole}))
    return b"".join(encode_container({**members, MANIFEST_NAME: text}))


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


_WATCH = (
    "-O2", "-std=gnu11", "-pthread", "-gdwarf-4", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
    "-fno-sanitize=function", "-fsanitize-trap=undefined", "-fsanitize-coverage=edge,inline-8bit-counters",
    "-DNND_SEPARATE",
)  # fmt: skip
_LEFT_OUT = ("level.c", "main.c", "platform.c", "appended.c")
"""What the driver has in its own way, or what is of a process of its own."""


def sanitized_program(folder: Path, changed: tuple[str, str, str] = ("", "", "")) -> Path:
    """Returns the driver of bundle_mutants.c with the runtime under sanitizers, compiled into a folder.

    ziglang instruments; gcc's libasan is the runtime. Kernels are those of every program. `changed` is a source of the
    runtime, a text of it, and what stands in its place.
    """
    level, (file_name, text, instead) = level_here(), changed
    sources = [one for one in sorted(RUNTIME.glob("*.c")) if one.name not in _LEFT_OUT]
    sources += [one for one in sorted((RUNTIME / "command").glob("*.c")) if one.name not in _LEFT_OUT]
    arguments = ["-target", level.zig_target, f"-mcpu={level.zig_cpu}", *_WATCH, "-I", ".", "-I", ".."]

    def compiled(source: Path) -> Path:
        made = folder / f"{source.parent.name}-{source.stem}.o"
        if source.name == file_name:
            assert text in source.read_text(encoding="utf-8"), f"{file_name} has no {text}"
            other = source.read_text(encoding="utf-8").replace(text, instead)
            source = made.with_name(file_name)
            source.write_text(other, encoding="utf-8")
        command = [sys.executable, "-m", "ziglang", "cc", *arguments, "-c", str(source), "-o", str(made)]
        subprocess.run(command, cwd=build_runtime.SOURCES, check=True, capture_output=True)
        return made

    with ThreadPoolExecutor(2) as pool:
        objects = [*pool.map(compiled, [DRIVER, *sources])]
    kernels = build_runtime.build_levels(level.arch, precisions(level.arch)[-1])
    program = folder / "bundle_mutants"
    command = ["gcc", "-fsanitize=address", *objects, *kernels, "-pthread", "-lm", "-o", program]
    subprocess.run([*map(str, command)], check=True, capture_output=True)
    return program


class Outcome(NamedTuple):
    """What became of mutants, in the order in which the driver says it; `edges` are all that the runtime has."""

    mutants: int
    opened: int
    ran: int
    reached: int
    edges: int
    reached_by_seeds: int
    corpus: int


def run_mutants(
    program: Path, seeds: list[Path], folder: Path, *, seed: int, count: int, seconds: float = 1e9
) -> Outcome:
    """Returns what became of so many mutants, or of those of some seconds; one that is found is kept in the folder.

    Raises:
        FoundError: one ended the program.
    """
    command = [program, "run", seed, count, seconds, folder / "finding", *seeds]
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise FoundError(f"exit {done.returncode}; replay {folder / 'finding.nnd'}")
    return Outcome(*map(int, re.findall(r"\d+", done.stdout)))

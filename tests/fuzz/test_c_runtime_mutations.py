# SPDX-License-Identifier: Apache-2.0
"""Bundles that are damaged, or say something else with all hashes made right, through the C library.

Each is refused with a code, or run without a crash; what Python takes too gives the same bits. `NNDEPLOY_FUZZ_C` sets
the number of mutants.
"""

import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from nndeploy_kernels import build_runtime
from nndeploy_kernels.build import level_here
from nndeploy_kernels.levels import precisions

import nndeploy
from nndeploy.bundle.container import encode_container
from nndeploy.bundle.manifest import ImageInput
from nndeploy.bundle.reader import Bundle
from nndeploy.bundle.writer import sealed_bundle
from nndeploy.errors import NndeployError

sys.path.append(str(Path(__file__).parent))

from c_runtime import CRuntime, RuntimeRefusalError
from forked_trials import outcomes
from member_mutants import Seed, mutant, seeds_in

HERE = Path(__file__).parent
COUNT = int(os.environ.get("NNDEPLOY_FUZZ_C", "400"))
SECONDS, MEMORY_BYTES = 60.0, 4 << 30
CODES = {65, 69, 71}
IMAGE = np.random.default_rng(5).standard_normal((2, 1, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def library() -> Path:
    return build_runtime.build_libraries(level_here().arch)[1]


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Seed]:
    return seeds_in(tmp_path_factory.mktemp("seeds"))


def found_by_c(library: Path, data: bytes) -> dict[str, Any] | None:
    """Returns the outputs, None where the bundle or the input is refused."""
    try:
        return CRuntime(library).run(data, {"image": IMAGE})
    except RuntimeRefusalError as err:
        if err.code not in CODES or not err.text.strip() or "\n" in err.text:
            raise
        return None


def found_by_python(data: bytes, path: Path) -> dict[str, Any] | None:
    """Returns the outputs, None where Python refuses it, or where it runs by another backend."""
    path.write_bytes(data)
    try:
        with nndeploy.load_bundle(path, threads=1) as program:
            is_native = all(choice.backend == "native" for choice in program.choices)
            return program.run({"image": IMAGE}) if is_native else None
    except NndeployError:
        return None


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_mutants_with_right_hashes_are_refused_or_give_what_python_gives(library, seeds, tmp_path) -> None:
    def trial(number: int) -> str:
        data = mutant(seeds, number).data
        c = found_by_c(library, data)
        if c is None:
            return "refused"
        python = found_by_python(data, tmp_path / f"{os.getpid()}.nnd")
        return "taken here alone" if python is None else "same" if is_same(c, python) else "OTHER BITS"

    found = Counter(line for _, line in outcomes(trial, range(COUNT), SECONDS, MEMORY_BYTES))
    assert set(found) <= {"refused", "same", "taken here alone"}, found
    assert found["same"]
    assert found["refused"]


def test_a_changed_byte_is_refused_or_changes_nothing(library, seeds) -> None:
    seed = seeds["compiled"]
    data = seed.container({}, seed.manifest, seed.signature)
    wanted = found_by_c(library, data)
    assert wanted is not None
    dice = random.Random(7)  # noqa: S311
    places = dice.sample(range(len(data)), COUNT)

    def trial(number: int) -> str:
        changed = bytearray(data)
        changed[places[number]] ^= 1 << dice.randrange(8)
        c = found_by_c(library, bytes(changed))
        return "refused" if c is None else "same" if is_same(c, wanted) else "OTHER BITS"

    found = Counter(line for _, line in outcomes(trial, range(COUNT), SECONDS, MEMORY_BYTES))
    assert set(found) <= {"refused", "same"}, found
    assert found["refused"]


def test_a_bundle_cut_anywhere_is_refused(library, seeds) -> None:
    seed = seeds["compiled"]
    data = seed.container({}, seed.manifest, seed.signature)

    def trial(number: int) -> str:
        return str(found_by_c(library, data[: len(data) * number // COUNT]))

    assert {line for _, line in outcomes(trial, range(COUNT), SECONDS, MEMORY_BYTES)} == {"None"}


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


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Returns a bundle with steps of texts and maps."""
    bundle = tmp_path_factory.mktemp("table") / "m.nnd"
    sample = {"x": np.full((2, 2), "a", object), "k": np.arange(2), "s": np.ones((2, 2), np.float32)}
    model = onnx.parser.parse_model(TABLE)
    nndeploy.compile_model(model, bundle, backends=("native",), objective="priority", threads=1, samples=[sample])
    return bundle.read_bytes()


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Returns a bundle with a cache that grows and a choice."""
    model, bundle = onnx.parser.parse_model(GROWING), tmp_path_factory.mktemp("growing") / "m.nnd"
    model.graph.output[1].type.tensor_type.shape.dim[1].dim_param = "past + t"
    nndeploy.compile_model(model, bundle, backends=("native",), objective="priority", threads=1)
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


def test_plans_that_say_something_else_are_refused_or_stay_in_their_memory(library, growing) -> None:
    draw = np.random.default_rng(9)
    x = draw.standard_normal((1, 3, 8)).astype(np.float32)
    each = [{"x": x, "before": np.zeros((1, 2, 8), np.float32), "first": np.array([True])}, {"x": x}]

    def trial(number: int) -> str:
        try:
            list(CRuntime(library).runs(other_documents(growing, number), each, {"before": "after"}))
        except RuntimeRefusalError as err:
            return "refused" if err.code in CODES else f"code {err.code}"
        return "taken"

    assert len(list(CRuntime(library).runs(growing, each, {"before": "after"}))) == len(each)
    found = Counter(line for _, line in outcomes(trial, range(COUNT), SECONDS, MEMORY_BYTES))
    assert set(found) <= {"refused", "taken"}, found
    assert found["refused"]


@pytest.mark.slow
def test_sanitizers_find_nothing_in_damaged_bundles(seeds, growing, table, tmp_path) -> None:
    """Of 20 times as many mutants: changed members, other plans, changed bytes, and cut files."""
    compiler = shutil.which("clang") or shutil.which("gcc") or pytest.skip("no C compiler")
    kernels = build_runtime.build_levels(level_here().arch, precisions(level_here().arch)[-1])
    runtime = sorted(build_runtime.RUNTIME.rglob("*.c"))
    sources = [HERE / "c_runtime_trials.c", *(one for one in runtime if one.name not in ("level.c", "main.c"))]
    includes = ["-I", build_runtime.RUNTIME.parent, "-I", build_runtime.SOURCES]
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-pthread"]
    program = tmp_path / "trials"
    subprocess.run([compiler, *flags, *includes, *sources, *kernels, "-lm", "-o", program], check=True)
    dice, seed = random.Random(11), seeds["compiled"]  # noqa: S311 - no secret
    whole = seed.container({}, seed.manifest, seed.signature)
    for block in range(20):
        names = []
        for number in range(COUNT):
            if number % 4 == 0:
                data = bytearray(mutant(seeds, block * COUNT + number).data)
            elif number % 4 == 1:
                data = bytearray(other_documents((growing, table)[number % 8 // 4], block * COUNT + number))
            elif number % 4 == 2:
                data = bytearray(other_references(table, block * COUNT + number))
            elif number % 8 == 3:
                data = bytearray(other_images(seed, block * COUNT + number))
            else:
                data = bytearray(whole)
                data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            names.append(tmp_path / f"{number}.nnd")
            names[-1].write_bytes(data[: dice.randrange(len(data))] if number % 16 == 0 else data)
        done = subprocess.run([program, *names], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]
        assert 0 < int(done.stdout.split(" of ")[0]) < COUNT

# SPDX-License-Identifier: Apache-2.0
"""Engines built by the real library, in a process of their own, on a machine without a GPU."""

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir
import pytest
from nndeploy_tensorrt import build as building
from nndeploy_tensorrt.artifact_facts import Binding, facts_from_metadata
from nndeploy_tensorrt.build_process import reproducible
from nndeploy_tensorrt.files import ENGINE_FILE
from nndeploy_tensorrt.library import installed_version
from nndeploy_tensorrt.plugin import Plugin

from nndeploy.cuda.facts import cuda_unavailable
from nndeploy.errors import BuildRefusedError, UnavailableError
from nndeploy.plugin.interface import Artifact, BuildOptions, OpenOptions
from nndeploy.target.target import Target
from nndeploy.values.types import DimRange

pytestmark = pytest.mark.usefixtures("library")

Model = Callable[..., ir.Model]
Build = Callable[..., Artifact]

SIMPLE = "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"
DYNAMIC = "g (float[N,3] x, float[N,1] u) => (float[N,3] y) { y = Add(x, u) }"
FIVE_OUTPUTS = """
g (float[1,4,8] x) => (float[1,4,8] a, float[1,4,8] b, float[1,4,8] c, float[1,4,8] d, float[1,4,8] e)
{ a = Softmax(x) b = Tanh(x) c = Exp(x) d = Softmax<axis=1>(x) e = Sigmoid(x) }"""


_made: dict[tuple[object, ...], Artifact] = {}


@pytest.fixture
def built(rtx4090: Target, tmp_path: Path) -> Build:
    """Returns a function: model, ranges -> its artifact for an RTX 4090; what was built before is not built again.

    With `anew` it is, in a folder with another name.
    """

    def build(model: ir.Model, target: Target = rtx4090, *, anew: bool = False, **ranges: DimRange) -> Artifact:
        key = (ir.to_proto(model).SerializeToString(deterministic=True), target, str(ranges))
        if anew or key not in _made:
            workdir = tmp_path / ("w" * (1 + len(list(tmp_path.iterdir())) * 40))
            workdir.mkdir()
            _made[key] = Plugin().build(model, target, BuildOptions(ranges=ranges), workdir)
        return _made[key]

    return build


def test_artifact_is_one_engine_with_what_it_needs(model: Model, built: Build) -> None:
    artifact = built(model(SIMPLE))
    assert list(artifact.files) == [ENGINE_FILE]
    assert artifact.requires == {"arch": "x86_64", "compute_capability": ["8.9"]}
    assert artifact.native_code
    facts = facts_from_metadata(json.loads(json.dumps(artifact.metadata)))
    assert (facts.library, facts.version, facts.capabilities) == ("rtx", installed_version("rtx"), ("8.9",))
    assert facts.inputs == (Binding("x", "float32", (2, 3)),)
    assert facts.outputs == (Binding("y", "float32", (2, 3)),)


def test_any_name_of_a_value_reaches_the_engine(model: Model, built: Build) -> None:
    asked = model(SIMPLE)
    asked.graph.inputs[0].name = "../in\n:0 é"
    asked.graph.outputs[0].name = "onnx::Relu_0"
    facts = facts_from_metadata(built(asked).metadata)
    assert [facts.inputs[0].name, facts.outputs[0].name] == ["../in\n:0 é", "onnx::Relu_0"]


def test_precision_is_that_of_the_graph(model: Model, built: Build) -> None:
    dtypes = ("float16", "bfloat16", "int8", "int32", "int64", "bool", "float")
    inputs = ", ".join(f"{dtype}[2] x{i}" for i, dtype in enumerate(dtypes))
    outputs = ", ".join(f"{dtype}[4] y{i}" for i, dtype in enumerate(dtypes))
    nodes = " ".join(f"y{i} = Concat<axis=0>(x{i}, x{i})" for i in range(len(dtypes)))
    facts = facts_from_metadata(built(model(f"g ({inputs}) => ({outputs}) {{ {nodes} }}")).metadata)
    assert [binding.dtype for binding in facts.inputs] == [*dtypes[:-1], "float32"]
    assert [binding.dtype for binding in facts.outputs] == [*dtypes[:-1], "float32"]


def test_declared_ranges_become_the_engines(model: Model, built: Build) -> None:
    artifact = built(model(DYNAMIC), N=DimRange(1, 8, 4))
    facts = facts_from_metadata(artifact.metadata)
    assert [binding.shape for binding in facts.inputs] == [(-1, 3), (-1, 1)]
    other = built(model(DYNAMIC), N=DimRange(1, 7, 4))
    assert other.files != artifact.files


ONLY_EVEN = """g (float[1,1,H,8] x) => (float[1,1,H,8] y) {
    half = MaxPool<kernel_shape=[2,1], strides=[2,1]>(x) whole = Concat<axis=2>(half, half) y = Add(x, whole) }"""


def test_pieces_that_the_network_cannot_have_become_one_profile(model: Model, built: Build) -> None:
    whole = built(model(ONLY_EVEN), H=DimRange(32, 1000, 1000))
    assert whole.log.startswith("one profile instead of 2: ")
    stepped = built(model(ONLY_EVEN), H=DimRange(32, 1000, 1000, step=2))
    assert "one profile" not in stepped.log
    assert len(stepped.files[ENGINE_FILE]) > len(whole.files[ENGINE_FILE])


def test_undeclared_range_is_refused_with_the_option(model: Model, built: Build) -> None:
    with pytest.raises(BuildRefusedError, match=r"axis 0 \(N\) of 'x' has no range: declare it with --shape"):
        built(model(DYNAMIC))


def test_builders_refusal_is_one_line_of_its_own_words(model: Model, built: Build) -> None:
    asked = model("g (float[2] x, float s, int8 z) => (int8[2] y) { y = QuantizeLinear(x, s, z) }")
    with pytest.raises(BuildRefusedError, match=r"has `zero_point` which is not an initializer$"):
        built(asked)


def test_parsers_refusal_is_one_line_of_its_own_words(model: Model, built: Build) -> None:
    with pytest.raises(BuildRefusedError, match=r"^TensorRT has no Det$"):
        built(model("g (float[2,3,3] x) => (float[2] y) { y = Det(x) }"))


def test_two_builds_give_the_same_bytes(model: Model, built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outputs of an engine are what two processes order differently where memory is laid out at random."""
    first = built(model(FIVE_OUTPUTS))
    if not first.deterministic:
        pytest.skip("the kernel does not let a process fix its memory layout")
    for length in (17, 3001):
        monkeypatch.setenv("NNDEPLOY_TEST_NOISE", "n" * length)
        assert built(model(FIVE_OUTPUTS), anew=True) == first


def test_engines_for_other_gpus_are_other_engines(model: Model, built: Build, with_gpu: Callable[..., Target]) -> None:
    engines = {
        key: built(model(SIMPLE), with_gpu(*key)).files[ENGINE_FILE] for key in (("8.9",), ("7.5", "8.9"), ("13.0",))
    }
    assert len(set(engines.values())) == len(engines)


def test_portable_engine_says_from_which_gpu_on(model: Model, built: Build, with_gpu: Callable[..., Target]) -> None:
    artifact = built(model(SIMPLE), with_gpu("13.0"))
    assert artifact.requires == {"arch": "x86_64", "compute_capability_min": "8.0"}
    assert facts_from_metadata(artifact.metadata).capabilities == ()


def test_target_that_nobody_serves_is_refused_with_the_reason(
    model: Model, built: Build, with_gpu: Callable[..., Target]
) -> None:
    with pytest.raises(BuildRefusedError, match=r"does not serve compute capability 9\.0"):
        built(model(SIMPLE), with_gpu("9.0"))


def test_log_tells_what_the_builder_did_but_not_how_long_it_took(model: Model, built: Build) -> None:
    log = built(model(SIMPLE)).log
    assert "Total Weights Memory" in log
    assert "seconds" not in log
    assert reproducible(["a took 0.3ms", "done in 2 s", "[MemUsageStats] x", "kept 12 bytes"]) == ["kept 12 bytes"]


def test_nothing_is_written_outside_the_working_folder(
    model: Model, rtx4090: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, workdir = tmp_path / "home", tmp_path / "work"
    for folder in (home, workdir):
        folder.mkdir()
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.chdir(home)
    Plugin().build(model(SIMPLE), rtx4090, BuildOptions(), workdir)
    assert list(home.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "work"]


@pytest.mark.parametrize(("script", "why"), [("kill -SEGV $$", "the builder was killed by signal 11"), (
    "echo something broke; exit 3", "the builder ended with 3: something broke",
)])  # fmt: skip
def test_builder_that_dies_is_a_refusal(
    model: Model, built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    broken = tmp_path / "python"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(stat.S_IRWXU)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(BuildRefusedError, match=why):
        built(model(SIMPLE), anew=True)


def test_environment_of_the_builder_has_nothing_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert set(building._environment()) == {"HOME", "TMPDIR", "LANG", "PYTHONHASHSEED", "CUDA_CACHE_DISABLE"}


@pytest.mark.skipif(not cuda_unavailable(), reason="this machine has a GPU")
def test_without_a_driver_opening_says_so_in_one_line(model: Model, built: Build) -> None:
    artifact = built(model(SIMPLE))
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    with pytest.raises(UnavailableError) as caught:
        Plugin().open(files, artifact.metadata, OpenOptions(device="cuda:0"))
    assert "no NVIDIA driver" in str(caught.value) or "no GPU" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not cuda_unavailable(), reason="this machine has a GPU")
@pytest.mark.usefixtures("driver")
def test_without_a_gpu_the_library_itself_says_what_is_missing(model: Model, built: Build) -> None:
    """The driver is pretended, so that the real library is reached; it then finds no CUDA."""
    artifact = built(model(SIMPLE))
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    with pytest.raises(
        UnavailableError, match="TensorRT cannot use the engine here: Error reading CUDA GPU properties"
    ) as caught:
        Plugin().open(files, artifact.metadata, OpenOptions(device="cuda:0"))
    assert "\n" not in str(caught.value)


def test_builder_imports_no_onnx() -> None:
    code = "import sys, nndeploy_tensorrt.build_process; print(sorted({'onnx', 'onnx_ir'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

# SPDX-License-Identifier: Apache-2.0
"""`BackendConformance`: each test is one promise of `nndeploy.plugin.interface`."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

from nndeploy.bundle.values import decode_values, encode_values
from nndeploy.checking.tolerances import OperatorClass, tolerance_for
from nndeploy.comparison.compare import compare_values
from nndeploy.errors import BuildRefusedError, UnavailableError
from nndeploy.plugin.interface import (
    API_VERSION,
    DEVICE_KINDS,
    Artifact,
    Backend,
    BuildOptions,
    OpenOptions,
    RewritesOwn,
    Session,
    Support,
    TellsCode,
)
from nndeploy.target.target import Target, host_target
from nndeploy.testing.case import Case
from nndeploy.testing.models import CASES, Array
from nndeploy.values.types import Value, dtype_name

FILE_NAME = re.compile(r"(?:[a-z0-9_-][a-z0-9_.-]*/)?[a-z0-9_-][a-z0-9_.-]*")
REQUIREMENTS = {
    "arch": str,
    "cpu_features": list,
    "custom_ops": list,
    "compute_capability": list,
    "compute_capability_min": str,
    "machines": list,
}
NUM_THREADS = 4

_LOADS_PLUGIN = """
import importlib, json, sys
plugin = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])()
from nndeploy.target.target import host_target
plugin.probe(host_target())
print(json.dumps(sorted(sys.modules)))
"""

_RUNS_ARTIFACT = """
import importlib, json, sys
from pathlib import Path
from nndeploy.bundle.values import decode_values, encode_values
from nndeploy.plugin.interface import OpenOptions
plugin = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])()
folder = Path(sys.argv[3])
names = json.loads((folder / "names.json").read_text())
files = {name: memoryview((folder / str(i)).read_bytes()) for i, name in enumerate(names)}
session = plugin.open(files, json.loads((folder / "metadata.json").read_text()), OpenOptions())
outputs = session.run(decode_values((folder / "inputs").read_bytes()))
(folder / "outputs").write_bytes(encode_values(outputs))
session.close()
print(json.dumps(sorted(sys.modules)))
"""

_UNKNOWN_OPERATOR = """
<ir_version: 10, opset_import: ["" : 21, "nobody.knows" : 1]>
g (float[2] x) => (float[2] y) { t = nobody.knows.Thing(x) y = Relu(t) }
"""

_BUSY = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[512,512] x) => (float[512,512] y) { a = MatMul(x, x) b = MatMul(a, x) y = MatMul(b, x) }
"""


class BackendConformance:
    """Derive from it, set `backend`, and let pytest collect the class.

    `heavy` are modules that the plugin must not load before `supports`, `build` or `open` is called.
    `library_is_onnx` allows the run half to load onnx, for a backend whose library that is. `limits_threads` is False
    for a backend that cannot limit the threads of its library.
    """

    backend: ClassVar[Backend]
    heavy: ClassVar[tuple[str, ...]] = (
        "onnx",
        "onnx_ir",
        "onnxruntime",
        "openvino",
        "torch",
        "tensorrt",
        "tensorrt_rtx_bindings",
        "cupy",
        "scipy",
    )
    library_is_onnx: ClassVar[bool] = False
    limits_threads: ClassVar[bool] = True

    @pytest.fixture
    def target(self) -> Target:
        """This machine; skips where the backend cannot build or run on it, with the probe's reason."""
        probe = self.backend.probe(host_target())
        if not (probe.can_build and probe.can_run):
            pytest.skip(probe.reason)
        return host_target()

    def test_says_who_it_is(self) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9_-]*", self.backend.name)
        assert self.backend.tier in range(1, 6)
        assert self.backend.api_version == API_VERSION
        assert self.backend.device_kind in DEVICE_KINDS
        assert all(isinstance(domain, str) and domain for domain in self.backend.extra_domains)

    def test_probe_gives_a_reason_where_it_says_no(self) -> None:
        probe = self.backend.probe(host_target())
        assert isinstance(probe.version, str)
        if not (probe.can_build and probe.can_run):
            assert is_one_line(probe.reason)

    def test_probe_has_no_hint_where_hardware_is_absent(self) -> None:
        probe = self.backend.probe(host_target())
        assert not probe.hint or is_one_line(probe.hint)
        assert not (probe.absent_hardware and probe.hint), f"nothing brings a {probe.absent_hardware}: {probe.hint!r}"

    def test_plugin_and_probe_load_nothing_heavy(self) -> None:
        loaded = _in_fresh_process(_LOADS_PLUGIN, self._plugin())
        assert not loaded.intersection(self.heavy), f"loaded before asked: {loaded.intersection(self.heavy)}"

    def test_transforms_have_names(self) -> None:
        own = self.backend.rewrites(host_target()) if isinstance(self.backend, RewritesOwn) else ()
        for transform in (*self.backend.transforms(host_target()), *own):
            assert re.fullmatch(r"[a-z][a-z0-9-]*", transform.name)
            assert callable(transform)

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    def test_answers_for_each_node_and_changes_nothing(self, case: Case, target: Target) -> None:
        model = case.model()
        before = ir.to_proto(model).SerializeToString(deterministic=True)
        answers = self.backend.supports(model, target, BuildOptions())
        assert len(answers) == len(model.graph)
        for answer in answers:
            assert isinstance(answer, Support)
            assert answer.ok or is_one_line(answer.reason), f"a refusal needs a reason of one line: {answer.reason!r}"
        assert ir.to_proto(model).SerializeToString(deterministic=True) == before

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    def test_what_it_takes_it_gets_right(self, case: Case, target: Target, tmp_path: Path) -> None:
        artifact = self._artifact(case.model(), target, tmp_path / "first")
        if artifact is None:
            return
        check_artifact(artifact)
        if artifact.deterministic:
            again = self._artifact(case.model(), target, tmp_path / "second")
            assert again == artifact, "says that it is deterministic, and is not"
        session = self._open(artifact)
        try:
            check_calls(case, session)
            check_calls_from_several_threads(case, session)
        finally:
            session.close()
            session.close()

    def test_what_it_rewrites_it_gets_right(self, target: Target, tmp_path: Path) -> None:
        if not isinstance(self.backend, RewritesOwn):
            pytest.skip("this backend does not rewrite what it takes")
        for case in CASES:
            model = case.model()
            if not all(answer.ok for answer in self.backend.supports(model, target, BuildOptions())):
                continue
            if not sum(rewrite(model, lambda _: True) for rewrite in self.backend.rewrites(target)):
                continue
            workdir = tmp_path / case.name
            workdir.mkdir(parents=True)
            session = self._open(self.backend.build(model, target, BuildOptions(), workdir))
            check_calls(case, session)
            session.close()

    def test_takes_something(self, target: Target) -> None:
        taken = [
            case for case in CASES if all(a.ok for a in self.backend.supports(case.model(), target, BuildOptions()))
        ]
        assert taken, "refuses every model of the suite"

    def test_unknown_operator_is_refused(self, target: Target, tmp_path: Path) -> None:
        model = ir.from_proto(onnx.parser.parse_model(_UNKNOWN_OPERATOR))
        first, *_ = self.backend.supports(model, target, BuildOptions())
        assert not first.ok
        assert is_one_line(first.reason)
        with pytest.raises(BuildRefusedError) as caught:
            self.backend.build(model, target, BuildOptions(), tmp_path)
        assert is_one_line(str(caught.value))

    def test_device_that_is_not_there_is_unavailable(self, target: Target, tmp_path: Path) -> None:
        artifact = self._any_artifact(target, tmp_path)[1]
        with pytest.raises(UnavailableError):
            self._open(artifact, OpenOptions(device="cuda:4096"))

    def test_tells_code_as_its_artifact_does(self, target: Target, tmp_path: Path) -> None:
        if not isinstance(self.backend, TellsCode):
            pytest.skip("this backend does not tell which files are code: all of them count")
        artifact = self._any_artifact(target, tmp_path)[1]
        files = {name: memoryview(bytes(data)) for name, data in artifact.files.items()}
        code = self.backend.code_files(files)
        assert code.names <= files.keys()
        assert bool(code.names) == artifact.native_code, "the artifact says otherwise than the files"
        if not code.is_needed:
            others = {name: data for name, data in artifact.files.items() if name not in code.names}
            self._open(replace(artifact, files=others)).close()

    def test_runs_in_a_fresh_process_without_onnx(self, target: Target, tmp_path: Path) -> None:
        case, artifact = self._any_artifact(target, tmp_path / "build")
        inputs, wanted = case.samples()[0]
        _write_call(tmp_path, artifact, inputs)
        loaded = _in_fresh_process(_RUNS_ARTIFACT, (*self._plugin(), str(tmp_path)))
        check_outputs(case, decode_values((tmp_path / "outputs").read_bytes()), wanted)
        if not self.library_is_onnx:
            assert not loaded.intersection({"onnx", "onnx_ir"}), "the run half loads onnx"

    def test_one_thread_is_one_thread(self, target: Target, tmp_path: Path) -> None:
        if not self.limits_threads:
            pytest.skip("this backend cannot limit the threads of its library")
        model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(_BUSY)))
        artifact = self._artifact(model, target, tmp_path)
        if artifact is None:
            return
        session = self._open(artifact, OpenOptions(threads=1))
        inputs = {"x": np.eye(512, dtype=np.float32)}
        session.run(inputs)
        wall, busy = time.perf_counter(), time.process_time()
        while time.perf_counter() - wall < 0.3:
            session.run(inputs)
        used = (time.process_time() - busy) / (time.perf_counter() - wall)
        session.close()
        assert used < 1.5, f"threads=1 kept {used:.1f} cores busy"

    def _plugin(self) -> tuple[str, str]:
        return type(self.backend).__module__, type(self.backend).__qualname__

    def _artifact(self, model: ir.Model, target: Target, workdir: Path) -> Artifact | None:
        """Returns what the backend builds, or None where it refuses, each with a reason."""
        workdir.mkdir(parents=True, exist_ok=True)
        if not all(answer.ok for answer in self.backend.supports(model, target, BuildOptions())):
            return None
        try:
            return self.backend.build(model, target, BuildOptions(), workdir)
        except BuildRefusedError as err:
            reason = str(err)
        assert is_one_line(reason)
        return None

    def _any_artifact(self, target: Target, workdir: Path) -> tuple[Case, Artifact]:
        for i, case in enumerate(CASES):
            artifact = self._artifact(case.model(), target, workdir / str(i))
            if artifact is not None:
                return case, artifact
        pytest.fail("builds no model of the suite")

    def _open(self, artifact: Artifact, options: OpenOptions | None = None) -> Session:
        files = {name: memoryview(bytes(data)) for name, data in artifact.files.items()}
        return self.backend.open(files, json.loads(json.dumps(artifact.metadata)), options or OpenOptions())


def is_one_line(text: str) -> bool:
    """Returns whether `text` is one line with something on it."""
    return bool(text.strip()) and "\n" not in text


def check_artifact(artifact: Artifact) -> None:
    """Asserts that an artifact keeps to the interface: names, plain data, requirements."""
    assert artifact.files, "an artifact without files"
    for name, data in artifact.files.items():
        assert FILE_NAME.fullmatch(name), f"not a file name of an artifact: {name!r}"
        assert isinstance(data, bytes)
    assert json.loads(json.dumps(artifact.metadata)) == artifact.metadata, "the metadata is not plain data"
    for key, value in artifact.requires.items():
        assert isinstance(value, REQUIREMENTS[key]), f"requires[{key!r}] is {value!r}"


def check_calls(case: Case, session: Session) -> None:
    """Asserts that each call gives the expected outputs, leaves its inputs alone and those of earlier calls as well."""
    earlier: list[tuple[Mapping[str, Value], Mapping[str, Value]]] = []
    given: list[Value] = []
    for inputs, wanted in case.samples():
        for prepared in (_each(_copy, inputs), _each(_read_only, inputs), _each(_strided, inputs)):
            outputs = session.run(prepared)
            check_outputs(case, outputs, wanted)
            for name, value in inputs.items():
                assert compare_values(prepared[name], value).ok, f"changed its input {name!r}"
            given += prepared.values()
            earlier.append((outputs, wanted))
    _overwrite(given)
    for before, wanted_before in earlier:
        check_outputs(case, before, wanted_before)


def check_calls_from_several_threads(case: Case, session: Session) -> None:
    """Asserts that calls at the same time give the expected outputs."""
    calls = list(case.samples()) * NUM_THREADS

    def call(sample: tuple[Mapping[str, Value], Mapping[str, Value]]) -> None:
        inputs, wanted = sample
        for _ in range(3):
            check_outputs(case, session.run(inputs), wanted)

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        list(pool.map(call, calls))


def check_outputs(case: Case, got: Mapping[str, Value], wanted: Mapping[str, Value]) -> None:
    """Asserts that outputs have the expected names, types, shapes and values."""
    assert set(got) == set(wanted)
    for name, value in wanted.items():
        _check_value(name, got[name], value, case.computed)


def _check_value(name: str, got: Value, want: Value, computed: OperatorClass) -> None:
    if want is None:
        assert got is None, f"{name}: {type(got).__name__} instead of nothing"
        return
    if isinstance(want, list):
        assert isinstance(got, list), f"{name}: {type(got).__name__} instead of a list"
        assert len(got) == len(want), f"{name}: {len(got)} elements instead of {len(want)}"
        for i, (one, other) in enumerate(zip(got, want, strict=True)):
            _check_value(f"{name}[{i}]", one, other, computed)
        return
    assert isinstance(got, np.ndarray), f"{name}: {type(got).__name__} instead of an array"
    want = np.asarray(want)
    assert dtype_name(got.dtype) == dtype_name(want.dtype), f"{name}: {got.dtype} instead of {want.dtype}"
    assert got.dtype.kind != "U", f"{name}: strings are object arrays"
    found = compare_values(got, want, tolerance_for(dtype_name(want.dtype), computed))
    assert found.ok, f"{name}: {found.note or f'off by {found.max_abs} (relative {found.max_rel})'}"


def _each(change: Callable[[Array], Array], inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the inputs with `change` made to every array among them."""

    def changed(value: Value) -> Value:
        if isinstance(value, list):
            return [changed(item) for item in value]
        return None if value is None else change(value)

    return {name: changed(value) for name, value in inputs.items()}


def _copy(array: Array) -> Array:
    return np.array(array)


def _read_only(array: Array) -> Array:
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def _strided(array: Array) -> Array:
    """Returns an equal array whose elements do not stand side by side."""
    if not array.ndim:
        return np.array(array)
    wide = np.repeat(array, 2, axis=-1)
    return wide[..., ::2]


def _overwrite(values: list[Value]) -> None:
    """Destroys inputs after the calls, so that an output that shares memory with one shows it."""
    for value in values:
        if isinstance(value, list):
            _overwrite(value)
        elif isinstance(value, np.ndarray) and value.flags.writeable and value.dtype.kind != "O":
            value[...] = np.zeros((), value.dtype)


def _write_call(folder: Path, artifact: Artifact, inputs: Mapping[str, Value]) -> None:
    (folder / "names.json").write_text(json.dumps(list(artifact.files)))
    (folder / "metadata.json").write_text(json.dumps(artifact.metadata))
    (folder / "inputs").write_bytes(encode_values(inputs))
    for i, data in enumerate(artifact.files.values()):
        (folder / str(i)).write_bytes(data)


def _in_fresh_process(script: str, arguments: tuple[str, ...]) -> set[str]:
    """Returns the names of the modules that a script, run on its own, has loaded at its end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))

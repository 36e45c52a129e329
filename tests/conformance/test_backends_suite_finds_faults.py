# SPDX-License-Identifier: Apache-2.0
"""The suite fails for a backend that breaks a promise: each test plants one fault in a backend that is right."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nndeploy_reference.plugin import Plugin

from nndeploy.plugin.interface import Probe, Support
from nndeploy.target.target import host_target
from nndeploy.testing import CASES, BackendConformance, Case

BY_NAME = {case.name: case for case in CASES}
TARGET = host_target()


class FaultySession:
    """The session of a right backend with something done to each call."""

    def __init__(self, session: Any, fault: Callable[[Any, Mapping[str, Any]], dict[str, Any]]) -> None:
        self._session = session
        self._fault = fault

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return self._fault(self._session, inputs)

    def close(self) -> None:
        self._session.close()


class Faulty(Plugin):
    """A right backend with one fault."""

    def __init__(self, **faults: Any) -> None:
        self._faults = faults
        self._num_builds = 0

    def probe(self, target: Any) -> Probe:
        return self._faults.get("probe", super().probe(target))

    def supports(self, model: Any, target: Any, options: Any) -> list[Support]:
        answers = super().supports(model, target, options)
        return self._faults["supports"](answers) if "supports" in self._faults else answers

    def build(self, *arguments: Any) -> Any:
        self._num_builds += 1
        artifact = super().build(*arguments)
        return self._faults["build"](artifact, self._num_builds) if "build" in self._faults else artifact

    def open(self, files: Any, metadata: Any, options: Any) -> Any:
        if "open" in self._faults:
            options = self._faults["open"](options)
        session = super().open(files, metadata, options)
        return FaultySession(session, self._faults["run"]) if "run" in self._faults else session


def suite(**faults: Any) -> BackendConformance:
    found = BackendConformance()
    found.backend = Faulty(**faults)  # type: ignore[misc]
    return found


def check(found: BackendConformance, case: str, folder: Path) -> None:
    found.test_what_it_takes_it_gets_right(BY_NAME[case], TARGET, folder)


def test_backend_without_faults_passes(tmp_path: Path) -> None:
    for case in ("two_inputs", "sequence_out", "optional_in", "names_of_every_kind"):
        check(suite(), case, tmp_path / case)


def test_an_artifact_that_hides_code_is_found(tmp_path: Path) -> None:
    suite().test_tells_code_as_its_artifact_does(TARGET, tmp_path / "right")
    hiding = suite(build=lambda artifact, _: replace(artifact, native_code=True))
    with pytest.raises(AssertionError, match="says otherwise than the files"):
        hiding.test_tells_code_as_its_artifact_does(TARGET, tmp_path / "wrong")


class Rewriting(Faulty):
    """A right backend that makes an operator of each Mul."""

    def __init__(self, op_type: str) -> None:
        super().__init__()
        self._op_type = op_type

    def rewrites(self, target: Any) -> list[Any]:
        return [self._rewrite]

    def _rewrite(self, model: Any, may_touch: Any) -> int:
        found = [node for node in model.graph if node.op_type == "Mul" and may_touch(node)]
        for node in found:
            node.op_type = self._op_type
        return len(found)


def test_a_rewrite_that_changes_numbers_is_found(tmp_path: Path) -> None:
    found = BackendConformance()
    found.backend = Rewriting("Mul")  # type: ignore[misc]
    found.test_what_it_rewrites_it_gets_right(TARGET, tmp_path / "right")
    found.backend = Rewriting("Add")  # type: ignore[misc]
    with pytest.raises(AssertionError, match="off by"):
        found.test_what_it_rewrites_it_gets_right(TARGET, tmp_path / "wrong")


Outputs = dict[str, Any]
Call = Callable[[Any, Mapping[str, Any]], Outputs]


def overwrites(kept: dict[tuple[int, ...], Any], session: Any, inputs: Mapping[str, Any]) -> Outputs:
    result = session.run(inputs)["z"]
    buffer = kept.setdefault(result.shape, result)
    buffer[...] = result
    return {"z": buffer}


def clears_its_input(session: Any, inputs: Mapping[str, Any]) -> Outputs:
    outputs: Outputs = session.run(inputs)
    if inputs["x"].flags.writeable:
        inputs["x"][...] = 0
    return outputs


def shares_its_inputs(state: Outputs, session: Any, inputs: Mapping[str, Any]) -> Outputs:
    state["inputs"] = inputs
    time.sleep(0.001)  # others come in between
    outputs: Outputs = session.run(state["inputs"])
    return outputs


def changed(change: Callable[[Any], Any]) -> Call:
    return lambda session, inputs: {name: change(value) for name, value in session.run(inputs).items()}


@pytest.mark.parametrize(("run", "case", "message"), [
    (lambda session, inputs: {**session.run(inputs), "same": inputs["x"]}, "handed_through", "same"),
    (partial(overwrites, {}), "two_inputs", "off by"), (clears_its_input, "two_inputs", "changed its input 'x'"),
    (partial(shares_its_inputs, {}), "two_inputs", "off by"), (lambda session, inputs: {}, "two_inputs", ".*"),
    (changed(lambda y: y + np.float32(1e-3)), "two_inputs", "off by"),
    (changed(lambda y: y.astype(np.float64)), "two_inputs", "instead of float32"),
    (changed(lambda y: y[None]), "two_inputs", "shape"),
    (changed(lambda y: y.tolist()), "two_inputs", "list instead of an array"),
], ids=["input handed out", "overwritten later", "input changed", "not to be shared", "missing", "number", "type",
        "shape", "list"])  # fmt: skip
def test_a_fault_of_a_call_is_found(run: Call, case: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=message):
        check(suite(run=run), case, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda artifact, _: replace(artifact, files={"Model.onnx": b""}), "not a file name"),
        (lambda artifact, _: replace(artifact, files={"../model": b""}), "not a file name"),
        (lambda artifact, _: replace(artifact, files={}), "without files"),
        (lambda artifact, _: replace(artifact, metadata={"a": (1, 2)}), "not plain data"),
        (lambda artifact, _: replace(artifact, requires={"cpu_features": "avx2"}), "requires"),
        (lambda artifact, n: replace(artifact, metadata={"n": n}), "deterministic"),
    ],
)
def test_artifact_that_breaks_a_rule_is_found(change: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=message):
        check(suite(build=change), "two_inputs", tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda answers: answers[1:],
        lambda answers: [Support(False, "")] * len(answers),
        lambda answers: [Support(False, "two\nlines")] * len(answers),
    ],
)
def test_answers_that_break_a_rule_are_found(change: Callable[[Sequence[Support]], list[Support]]) -> None:
    case: Case = BY_NAME["two_outputs_one_inside"]
    with pytest.raises(AssertionError):
        suite(supports=change).test_answers_for_each_node_and_changes_nothing(case, TARGET)


def test_backend_that_refuses_everything_is_found() -> None:
    refuses = suite(supports=lambda answers: [Support(False, "no")] * len(answers))
    with pytest.raises(AssertionError, match="refuses every model"):
        refuses.test_takes_something(TARGET)


def test_probe_without_a_reason_is_found() -> None:
    with pytest.raises(AssertionError):
        suite(probe=Probe(False, False)).test_probe_gives_a_reason_where_it_says_no()


@pytest.mark.parametrize(
    "probe",
    [
        Probe(False, False, reason="no GPU", hint="pip install gpu", absent_hardware="NVIDIA GPU"),
        Probe(False, False, reason="no library", hint="get it\nthen"),
    ],
)
def test_hint_that_breaks_a_rule_is_found(probe: Probe) -> None:
    with pytest.raises(AssertionError):
        suite(probe=probe).test_probe_has_no_hint_where_hardware_is_absent()


def test_device_that_is_ignored_is_found(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        suite(open=lambda options: replace(options, device="cpu")).test_device_that_is_not_there_is_unavailable(
            TARGET, tmp_path
        )


def test_run_half_that_loads_onnx_is_found(tmp_path: Path) -> None:
    found = BackendConformance()
    found.backend = Plugin()  # type: ignore[misc]
    with pytest.raises(AssertionError, match="the run half loads onnx"):
        found.test_runs_in_a_fresh_process_without_onnx(TARGET, tmp_path)


def test_plugin_that_loads_its_library_at_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Eager(BackendConformance):
        backend = Plugin()
        heavy = ("nndeploy_reference",)

    with pytest.raises(AssertionError, match="loaded before asked"):
        Eager().test_plugin_and_probe_load_nothing_heavy()

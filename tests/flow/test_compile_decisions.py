# SPDX-License-Identifier: Apache-2.0
"""`--decisions`: what a compile decided is kept, replayed without measuring, and refused where it does not fit."""

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from compile_with import compile_with
from faulty_backends import Install, changed_backend

import nndeploy
from nndeploy.bundle.report import report_for_bundle
from nndeploy.errors import DataError
from nndeploy.jobs.measuring import Measured
from nndeploy.jobs.workers import InProcessWorkers

TEXT = """<ir_version: 8, opset_import: ["": 18]>
g (float[4,16] x) => (float[4,16] y) { h = Relu(x) y = Tanh(h) }"""
OTHER = TEXT.replace("Tanh", "Sigmoid")


class Counting(InProcessWorkers):
    """Says that `hare` is ten times as fast as the others; counts how often it was asked."""

    def __init__(self) -> None:
        self.count = 0

    def measure(self, paths: Any, samples: Any, options: Any) -> Measured:
        self.count += 1
        return Measured([[0.01 if i == 0 else 0.001] * len(samples) for i, _ in enumerate(paths)])


def compiled(path: Path, text: str, decisions: Path, workers: InProcessWorkers, **options: Any) -> nndeploy.Report:
    return compile_with(
        onnx.parser.parse_model(text), path, backends=("tortoise", "hare"), objective="latency", decisions=decisions,
        **options, workers=workers,
    )  # fmt: skip


@pytest.fixture
def two(install: Install) -> None:
    """Installs two backends that take everything."""
    install(*(changed_backend(name, tier, lambda outputs: outputs) for tier, name in enumerate(("tortoise", "hare"))))


@pytest.mark.usefixtures("two")
def test_what_was_decided_is_replayed_without_measuring(tmp_path) -> None:
    first, second, file = Counting(), Counting(), tmp_path / "d.json"
    one = compiled(tmp_path / "a.nnd", TEXT, file, first)
    other = compiled(tmp_path / "b.nnd", TEXT, file, second)
    assert [submodel.backend for submodel in one.submodels] == ["hare"]
    assert (first.count, second.count) == (1, 0)
    assert report_for_bundle(one) == report_for_bundle(other)
    assert (tmp_path / "a.nnd").read_bytes() == (tmp_path / "b.nnd").read_bytes()


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("gates", [{"require": {"hare": 0.5}}, {"max_fallback": 1.0}, {"num_goldens": 3}])
def test_gates_and_samples_that_are_kept_have_no_part_in_decisions(gates, tmp_path) -> None:
    again, file = Counting(), tmp_path / "d.json"
    compiled(tmp_path / "a.nnd", TEXT, file, Counting())
    compiled(tmp_path / "b.nnd", TEXT, file, again, **gates)
    assert again.count == 0


@pytest.mark.usefixtures("two")
def test_decisions_for_something_else_are_refused_in_one_line(tmp_path) -> None:
    file = tmp_path / "d.json"
    compiled(tmp_path / "a.nnd", TEXT, file, Counting())
    kept = file.read_bytes()
    with pytest.raises(DataError, match="for another model"):
        compiled(tmp_path / "b.nnd", OTHER, file, Counting())
    with pytest.raises(DataError, match="with other compile options"):
        compiled(tmp_path / "b.nnd", TEXT, file, Counting(), threads=2)
    assert file.read_bytes() == kept
    assert not (tmp_path / "b.nnd").exists()


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("change", [
    lambda data: data | {"format": 1}, lambda data: data | {"chosen": {"name": "x"}},
    lambda data: data | {"chosen": data["chosen"] | {"graph": "any"}},
    lambda data: data | {"chosen": data["chosen"] | {"order": ["hare", 5]}},
    lambda data: data | {"chosen": data["chosen"] | {"order": ["absent"]}},
    lambda data: data | {"chosen": data["chosen"] | {"pins": [["a"]]}},
    lambda data: data | {"chosen": data["chosen"] | {"as_taken": [5]}},
    lambda data: data | {"candidates": [{"name": 1}]}, lambda data: data | {"more": 1}, lambda data: [data],
])  # fmt: skip
def test_malformed_decisions_are_refused(tmp_path, change) -> None:
    file = tmp_path / "d.json"
    compiled(tmp_path / "a.nnd", TEXT, file, Counting())
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(DataError):
        compiled(tmp_path / "b.nnd", TEXT, file, Counting())

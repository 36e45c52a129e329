# SPDX-License-Identifier: Apache-2.0
"""Items follow each other over the places of a chain: in streams, in services, with errors and with state."""

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx.numpy_helper
import onnx.parser
import pytest
from compile_with import compile_with
from layers_in_a_line import ROWS, SIZES
from test_places import BOTH, TWO_CORES, compiled

import nndeploy
from nndeploy.cli.main import run_command
from nndeploy.errors import DataError
from nndeploy.runtime.chain import ChainStep
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.served_bundle import ServedBundle
from nndeploy.serve.served_model import ServedModel
from nndeploy.stream.items import Outcome
from nndeploy.stream.stopping import Stop
from nndeploy.target.place_limits import places_in

pytestmark = TWO_CORES
NUM_ITEMS = 40
SECONDS = 30.0
"""Who waits longer for another item has waited in vain."""


def item(number: int) -> dict[str, np.ndarray[Any, Any]]:
    shape = (ROWS, SIZES[0])
    return {"v0": np.random.default_rng(number).standard_normal(shape).astype(np.float32)}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "m.nnd"
    compiled(path, BOTH)
    return path


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    for number in range(NUM_ITEMS):
        np.savez(folder / f"{number:02}.npz", **item(number))
    return folder


class Submodels:
    """Every call of a submodel goes through this: `around` sees its number and that of the call, and may fail."""

    def __init__(self) -> None:
        self.around: Callable[[str, int], None] = lambda submodel, number: None
        self.most_on, self.most_under_way = Counter[str](), 0
        self._on, self._begun, self.ended = Counter[str](), Counter[str](), Counter[str]()
        self._lock = threading.Lock()

    def called(self, step: ChainStep, values: Mapping[str, Any], run: Callable[..., Any]) -> Any:
        submodel = step.label.split()[1]
        with self._lock:
            number = self._begun[submodel]
            self._begun[submodel] += 1
            self._on[submodel] += 1
            self.most_on[submodel] = max(self.most_on[submodel], self._on[submodel])
            self.most_under_way = max(self.most_under_way, self._begun["s0"] - self.ended["s1"])
        try:
            self.around(submodel, number)
            return run(step, values)
        finally:
            with self._lock:
                self._on[submodel] -= 1
                self.ended[submodel] += 1


@pytest.fixture
def submodels(monkeypatch: pytest.MonkeyPatch) -> Submodels:
    watching, run = Submodels(), ChainStep.__call__
    monkeypatch.setattr(ChainStep, "__call__", lambda step, values: watching.called(step, values, run))
    return watching


def outcomes_of(bundle: Path, items: Path, **options: Any) -> list[Outcome]:
    found = list[Outcome]()
    nndeploy.run_pipeline(bundle, [items], options=nndeploy.RunOptions(**options), on_outcome=found.append)
    return found


def each_meets_the_next(submodel: str, number: int, begun: list[threading.Event]) -> None:
    """Holds each of the first items on the second place until another has come to the first.

    A later one may be the last under way: a thread that gets no processor is overtaken by others.
    """
    if submodel == "s0":
        begun[number].set()
    elif number < 8:
        assert begun[number + 1].wait(SECONDS), "the next item never came to the first place"


def test_an_item_enters_the_first_place_while_the_one_before_it_is_on_the_second(bundle, items, submodels) -> None:
    with nndeploy.load_bundle(bundle) as program:
        want = [program.run(item(number)) for number in range(NUM_ITEMS)]
    submodels.__init__()
    begun = [threading.Event() for _ in range(NUM_ITEMS)]
    submodels.around = lambda submodel, number: each_meets_the_next(submodel, number, begun)
    found = outcomes_of(bundle, items)
    assert [one.index for one in found] == list(range(NUM_ITEMS))
    for one, outputs in zip(found, want, strict=True):
        assert one.error is None
        np.testing.assert_array_equal(one.outputs["v6"], outputs["v6"], strict=True)
    assert submodels.most_on == {"s0": 1, "s1": 1}


def test_outputs_keep_their_order_and_few_items_are_under_way_whatever_a_place_takes(bundle, items, submodels) -> None:
    seconds = np.random.default_rng(1).choice([0, 0, 0.002, 0.01], (2, NUM_ITEMS))
    submodels.around = lambda submodel, number: time.sleep(seconds[int(submodel == "s1"), number])
    assert [one.index for one in outcomes_of(bundle, items)] == list(range(NUM_ITEMS))
    assert submodels.most_on == {"s0": 1, "s1": 1}
    assert submodels.most_under_way <= 3, "one on each place, and one that waits"


def fails_on(failing: str, at: int) -> Callable[[str, int], None]:
    def around(submodel: str, number: int) -> None:
        if (submodel, number) == (failing, at):
            raise DataError("planted")

    return around


@pytest.mark.parametrize("failing", ["s0", "s1"])
def test_an_error_on_a_place_is_that_of_one_item(bundle, items, submodels, failing) -> None:
    submodels.around = fails_on(failing, 4)
    found = outcomes_of(bundle, items)
    assert [one.index for one in found] == list(range(NUM_ITEMS))
    errors = [one.error for one in found if one.error is not None]
    assert [error.code for error in errors] == ["bad-data"]


def test_a_stream_that_stops_on_an_error_ends_with_it(bundle, items, submodels) -> None:
    submodels.around = fails_on("s1", 4)
    found = outcomes_of(bundle, items, on_error="stop")
    assert found[-1].error is not None
    assert [one.index for one in found] == list(range(len(found)))
    assert len(found) < NUM_ITEMS


def test_a_stop_finishes_what_is_on_the_places(bundle, items, submodels, tmp_path, monkeypatch) -> None:
    asked, request = threading.Event(), Stop.request

    def stops(submodel: str, number: int) -> None:
        if (submodel, number) == ("s1", 1):
            signal.raise_signal(signal.SIGINT)  # in this thread: it does not wake the main one
            assert asked.wait(SECONDS)

    monkeypatch.setattr(Stop, "request", lambda stop: (request(stop), asked.set()))
    submodels.around = stops
    code = run_command(["run", str(bundle), "--input", str(items), "--output", str(tmp_path / "out.jsonl"), "--json"])
    assert code == 130
    assert submodels.ended["s0"] == submodels.ended["s1"] < NUM_ITEMS


def test_requests_at_once_use_all_places(bundle, submodels) -> None:
    begun = [threading.Event() for _ in range(NUM_ITEMS)]
    options = ServeOptions(checks_goldens=False)
    model = ServedModel(
        "m", options, lambda path: ServedBundle(nndeploy.load_bundle(path), "m", options, lambda line: None), Counter()
    )
    model.open(bundle, "1")
    submodels.around = lambda submodel, number: each_meets_the_next(submodel, number, begun)
    try:
        answers = [model.submit(item(number)) for number in range(NUM_ITEMS)]
        found = [answer.result(SECONDS).outputs["v6"] for answer in answers]
    finally:
        model.close(SECONDS)
    submodels.around = lambda submodel, number: None
    with nndeploy.load_bundle(bundle) as program:
        for number, output in enumerate(found):
            np.testing.assert_array_equal(output, program.run(item(number))["v6"], strict=True)
    assert submodels.most_on == {"s0": 1, "s1": 1}


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def test_verbose_shows_a_stage_for_each_place(bundle, items, capsys) -> None:
    assert run_command(["run", str(bundle), "--input", str(items), "-v"]) == 0
    said = told(capsys)
    assert "up to 2 calls at once on cpu:0, cpu:1" in said
    for place in ("cpu:0", "cpu:1"):
        assert f"model: runner {place}: 1 worker" in said
        assert f"{NUM_ITEMS} records" in said.split(f"model: runner {place}: ")[1].splitlines()[0]


STATE = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,256] x, float[1,256] s) => (float[1,256] y) {
    a = Add(x, s)
    b = MatMul(a, w0)
    c = Tanh(b)
    y = MatMul(c, w1)
}"""
SESSIONS = """
[source]
kind = "json-lines"
fields = ["who", "x"]
[[level]]
[[level.pipeline]]
name = "one"
outputs = { y = "sum" }
carry = { y = "s" }
session = "who"
"""


@pytest.fixture
def with_state(tmp_path: Path) -> Path:
    model = onnx.parser.parse_model(STATE)
    weights = [np.eye(256, dtype=np.float32) / 2, np.eye(256, dtype=np.float32) / 4]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(one, f"w{i}") for i, one in enumerate(weights))
    places = places_in("cpu:0=270KiB,cpu:1=270KiB")
    compile_with(model, tmp_path / "s.nnd", backends=("native",), keep_fallback=False, places=places)
    return tmp_path / "s.nnd"


def test_records_of_a_session_wait_for_the_one_before_them_and_that_is_said(with_state, tmp_path, capsys) -> None:
    (tmp_path / "p.toml").write_text(SESSIONS)
    line = '{"who": "a", "x": [[' + ", ".join(["1"] * 256) + "]]}\n"
    (tmp_path / "x.jsonl").write_text(line * 6)
    command = ["run", str(with_state), "--pipeline", str(tmp_path / "p.toml"), "--input", str(tmp_path / "x.jsonl")]
    assert run_command([*command, "--output", str(tmp_path / "out.jsonl"), "-v"]) == 0
    said = told(capsys)
    state = 0.0
    for line in (tmp_path / "out.jsonl").read_text().splitlines():
        state = np.tanh((1 + state) / 2) / 4
        np.testing.assert_allclose(json.loads(line)["outputs"]["sum"], [[state] * 256], rtol=1e-6)
    assert "one call at a time on cpu:0, cpu:1: a record of a session needs" in said

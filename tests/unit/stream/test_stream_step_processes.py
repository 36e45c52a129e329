# SPDX-License-Identifier: Apache-2.0
"""Steps in processes of their own: the same results in the same order, errors of records, and no process is left."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_distribution import write_distribution

from nndeploy.errors import DataError
from nndeploy.plugin.entry_points import Plugins
from nndeploy.processors import registry
from nndeploy.sandbox.child_process import children_of
from nndeploy.stream.engine.engine import Stream, StreamOptions
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.pipeline.checked_plan import checked_plan
from nndeploy.stream.pipeline.pipeline_file import pipeline_from_toml
from nndeploy.stream.processes.plain_values import arrays_of, fields_in
from nndeploy.stream.processes.step_process import StepProcess, StepTables

STEP = '''
import os, time
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Own:
    """Gives what it was told to."""
    name: ClassVar[str] = "own"
    takes: ClassVar[tuple[str, ...]] = ("x",)
    gives: ClassVar[tuple[str, ...]] = ("y", "pid")
    factor: int = 1

    def __call__(self, x):
        print("steps may print")
        if x == 3:
            raise ValueError("three")
        if x == 5:
            os.kill(os.getpid(), 9)
        time.sleep(0.02 if x % 2 else 0.0)
        return self.factor * x, os.getpid()
'''
PIPELINE = """
[source]
kind = "json-lines"
fields = ["x"]
[[level]]
[[level.pipeline]]
runners = 0
[[level.pipeline.loader]]
{how}
steps = [{{ use = "own", factor = 2 }}]
"""


@pytest.fixture
def own_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installs a processor of somebody else in a folder that Python searches."""
    write_distribution(tmp_path, "own_step", STEP, registry.GROUP, "own:Own")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "PLUGINS", Plugins(registry.GROUP, "processor", DataError))
    registry.processor_class.cache_clear()
    yield
    registry.processor_class.cache_clear()


class Sink:
    """Keeps outcomes."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def write(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def finish(self) -> None:
        """Nothing is to be finished."""

    def discard(self) -> None:
        """Nothing is kept elsewhere."""


def outcomes(how: str, values: range, **options: Any) -> list[Outcome]:
    file = pipeline_from_toml(PIPELINE.format(how=how).encode(), "p.toml", Path.read_bytes)  # type: ignore[arg-type]
    plan, _ = checked_plan(file, {})
    sink = Sink()
    items = (Item(i, str(i), str(i), lambda value=value: {"x": value}) for i, value in enumerate(values))
    Stream(plan, {}, StreamOptions(**options)).run(items, sink)
    return sink.outcomes


@pytest.mark.usefixtures("own_step")
def test_records_come_in_order_from_several_processes_none_of_which_is_left() -> None:
    before = set(children_of(os.getpid()))
    found = outcomes("processes = 2", range(6, 30))
    assert [one.outputs["y"] for one in found] == [2 * x for x in range(6, 30)]  # type: ignore[index]
    pids = {one.outputs["pid"] for one in found}  # type: ignore[index]
    assert os.getpid() not in pids
    assert len(pids) == 2
    assert set(children_of(os.getpid())) <= before


@pytest.mark.usefixtures("own_step")
def test_an_error_of_a_step_is_that_of_its_record_as_without_a_process() -> None:
    here, there = (outcomes(how, range(2, 5)) for how in ("workers = 1", "processes = 1"))
    for one, other in zip(here, there, strict=True):
        assert str(one.error) == str(other.error)
        assert type(one.error) is type(other.error)
        assert (one.is_failed, one.stage) == (other.is_failed, other.stage)
    assert [one.is_failed for one in there] == [False, True, False]


@pytest.mark.usefixtures("own_step")
def test_a_process_that_ends_fails_its_record_alone() -> None:
    found = outcomes("processes = 1", range(4, 8))
    assert [one.is_failed for one in found] == [False, True, False, False]
    assert isinstance(found[1].error, DataError)
    assert "SIGKILL" in str(found[1].error)
    pids = [one.outputs["pid"] for one in found if one.outputs]
    assert pids[0] != pids[1] == pids[2]


@pytest.mark.usefixtures("own_step")
def test_a_process_ends_with_the_stream_that_it_is_of_also_where_that_fails() -> None:
    before = set(children_of(os.getpid()))
    found = outcomes("processes = 2", range(2, 40), stop_on_error=True)
    assert any(one.is_failed for one in found)
    assert set(children_of(os.getpid())) <= before


@pytest.mark.usefixtures("own_step")
def test_workers_and_processes_exclude_each_other() -> None:
    with pytest.raises(DataError):
        outcomes("workers = 2\nprocesses = 2", range(1))
    with pytest.raises(DataError):
        outcomes("processes = 0", range(1))


def test_files_that_steps_name_are_read_here_and_pass_to_the_process() -> None:
    text = PIPELINE.format(how="processes = 1").replace(
        '{ use = "own", factor = 2 }', '{ use = "labels", labels = "names.txt", in = ["x"], out = ["labels"] }'
    )
    file = pipeline_from_toml(text.encode(), "p.toml", {"names.txt": b"cat\ndog\n"}.__getitem__)
    (stage,) = file.pipelines[0].loaders
    assert stage.elsewhere is not None
    step = stage.elsewhere()
    try:
        assert step({"x": np.array([1, 0])})["labels"] == ["dog", "cat"]
    finally:
        step.close()
    step.close()


@pytest.mark.usefixtures("own_step")
def test_what_cannot_pass_is_an_error_of_its_record() -> None:
    step = StepProcess(
        [registry.processor_from_table({"use": "own"}, "p.toml")], StepTables((({"use": "own"}, ""),), {}, None)
    )
    try:
        with pytest.raises(DataError, match="'x'"):
            step({"x": object()})
        assert step({"x": 2})["y"] == 2
    finally:
        step.close()


@pytest.mark.parametrize("value", [
    None, True, 7, -(1 << 70), 2.5, float("inf"), "text é", b"\x00\xff", [], [1, "a", None], (1, (2,)),
    {1: "a", "b": [2.0]}, np.float32(2.5), np.bool_(True), np.int64(3),
])  # fmt: skip
def test_plain_values_are_what_they_were(value: object) -> None:
    found = fields_in(arrays_of({"x": value}))["x"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("make", [
    lambda: np.arange(6, dtype=np.uint8).reshape(2, 3),
    lambda: np.arange(6, dtype=np.float32).reshape(2, 3).T,
    lambda: np.zeros((0, 4), np.int64),
    lambda: np.array([["a", "bc"]], object),
    lambda: np.array(["a", "bc"]),
    lambda: np.array(3.5),
])  # fmt: skip
def test_arrays_keep_their_types_and_shapes(make: Callable[[], Any]) -> None:
    array = make()
    found = fields_in(arrays_of({"x": [array]}))["x"][0]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert np.array_equal(found, array)

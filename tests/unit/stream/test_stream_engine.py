# SPDX-License-Identifier: Apache-2.0
"""One outcome for each item, whatever the item does."""

import time
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from nndeploy.errors import BundleError, DataError, InputError
from nndeploy.stream.description import only_the_model
from nndeploy.stream.engine import schedule, workers
from nndeploy.stream.engine.engine import Stream, StreamOptions
from nndeploy.stream.engine.metrics import metrics_of, prometheus_text
from nndeploy.stream.engine.non_finite import non_finite_names
from nndeploy.stream.engine.workers import Stage
from nndeploy.stream.items import Item
from nndeploy.values.types import TensorType


class Collector:
    def __init__(self) -> None:
        self.outcomes = []
        self.ending = None

    def write(self, outcome) -> None:
        self.outcomes.append(outcome)

    def finish(self) -> None:
        self.ending = "finished"

    def discard(self) -> None:
        self.ending = "discarded"


def item(index, value):
    def load():
        if isinstance(value, Exception):
            raise value
        return {"x": value}

    return Item(index, f"{index}.npz", str(index), load)


def f32(*values):
    return np.array(values, np.float32)


@pytest.fixture
def program(make_manifest, fake_program):
    def run(x):
        if x[0] == 13:
            raise DataError("unlucky", where="submodel s0 (fake)")
        if x[0] == 666:
            raise BundleError("a lie")
        return {"y": x * 2}

    return fake_program(make_manifest({"x": TensorType("float32", (None,))}), run)


def stream(program, items, sink, on_outcome=None, **options):
    plan = only_the_model(program.manifest)
    return Stream(plan, {"model": [program]}, StreamOptions(**options)).run(items, sink, on_outcome)


def run(program, values, on_outcome=None, **options):
    sink = Collector()
    summary = stream(program, [item(i, value) for i, value in enumerate(values)], sink, on_outcome, **options)
    return sink, summary


def test_every_item_has_one_outcome_in_order(program) -> None:
    values = [f32(1), InputError("torn", where="1.npz"), f32(13), np.zeros(1), f32(2)]
    sink, summary = run(program, values)
    assert [outcome.index for outcome in sink.outcomes] == [0, 1, 2, 3, 4]
    assert [str(outcome.error) for outcome in sink.outcomes if outcome.error] == [
        "1.npz: torn",
        "2.npz: submodel s0 (fake): unlucky",
        "3.npz: input 'x' must be float32, got float64 (hint: convert it to float32)",
    ]
    assert sink.outcomes[4].outputs["y"].tolist() == [4]
    assert sink.ending == "finished"
    assert (summary.num_items, summary.num_failed) == (5, 3)
    assert summary.first_ns is not None  # of the two that were computed
    assert len(summary.latencies) == 1
    assert summary.rate_hz > 0


def test_stops_at_the_first_error_where_asked(program) -> None:
    sink, summary = run(program, [f32(1), f32(13), f32(2)], stop_on_error=True)
    assert [outcome.index for outcome in sink.outcomes] == [0, 1]
    assert sink.ending == "finished"
    assert summary.num_failed == 1


def test_nothing_is_an_empty_stream(program) -> None:
    sink, summary = run(program, [])
    assert (summary.num_items, summary.rate_hz, summary.latencies.percentiles_ms()) == (0, 0.0, {})
    assert sink.ending == "finished"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_passed_flagged_or_refused(program, bad) -> None:
    for nan, flagged, num_failed in (("pass", (), 0), ("flag", ("x",), 0), ("reject", (), 1)):
        sink, summary = run(program, [f32(1, bad), f32(1)], nan=nan)
        assert sink.outcomes[0].non_finite == flagged
        assert sink.outcomes[1].non_finite == ()
        assert (summary.num_failed, summary.num_non_finite) == (num_failed, len(flagged))
    assert "holds NaN or infinity in 'x'" in str(sink.outcomes[0].error)


def test_non_finite_values_are_found_wherever_they_are() -> None:
    values = {
        "a": f32(1), "b": [f32(1), f32(np.nan)], "c": {1: float("inf")}, "d": np.array([np.nan], ml_dtypes.bfloat16),
        "e": np.array([1], ml_dtypes.int4), "f": np.array(["nan"], object), "g": None,
        "h": np.array([complex(0, np.inf)]),
    }  # fmt: skip
    assert non_finite_names(values) == ("b", "c", "d", "h")


def test_the_latency_of_a_pipeline_is_that_of_an_item_and_the_first_stands_apart(make_manifest, fake_program) -> None:
    def run(x):
        time.sleep(0.002)
        return {"y": x}

    slow = fake_program(make_manifest({"x": TensorType("float32", (None,))}), run)
    sinks = [Collector(), Collector()]
    alone, pipeline = (replace(only_the_model(slow.manifest), is_named=named) for named in (False, True))
    for plan, sink in zip((alone, pipeline), sinks, strict=True):
        items = [item(i, f32(1)) for i in range(6)]
        summary = Stream(plan, {"model": [slow]}, StreamOptions()).run(items, sink)
        took = [outcome.item_ns if plan.is_named else outcome.run_ns for outcome in sink.outcomes]
        assert all(outcome.item_ns > outcome.run_ns > 1_000_000 for outcome in sink.outcomes)
        assert summary.first_ns == took[0]
        assert summary.latencies.to_json() == took[1:]


def test_a_stage_tells_how_much_of_its_time_it_waited_for_a_core(monkeypatch) -> None:
    stage, new = Stage("s", 1), iter([500_000, 10**12])
    monkeypatch.setattr(workers, "new_run_delay_ns", lambda: next(new))
    (clock,) = stage.clocks()
    clock.add(time.perf_counter_ns() - 2_000_000, (0,))
    assert clock.core_wait_ns == 500_000
    waited = clock.add(time.perf_counter_ns() - 3_000_000, (1,))  # no more than it was at work
    assert clock.core_wait_ns == 500_000 + waited
    clock.add(time.perf_counter_ns(), (2,))  # work that is short is not asked for
    assert clock.core_wait_ns == 500_000 + waited


def made(program) -> Stream:
    plan = only_the_model(program.manifest)
    found = Stream(plan, {"model": [program]})
    found.run([item(i, f32(1)) for i in range(3)], Collector())
    return found


def test_waits_of_threads_for_cores_are_told_also_when_these_have_ended(program, monkeypatch) -> None:
    monkeypatch.setattr(schedule, "thread_run_delay_ns", lambda: 7_000_000)
    monkeypatch.setattr(schedule, "run_delay_ns", lambda _thread: 7_000_000)
    found = made(program)
    waited = found.cores().core_wait_ns
    assert waited is not None
    assert waited >= 7_000_000
    assert waited % 7_000_000 == 0
    assert f"nndeploy_core_wait_seconds_total {waited / 1e9:g}" in prometheus_text(metrics_of(found))


def test_waits_for_cores_are_absent_where_the_system_does_not_count_them(program, monkeypatch) -> None:
    for module in (schedule, workers):
        monkeypatch.setattr(module, "thread_run_delay_ns", lambda: None)
    metrics = metrics_of(made(program))
    assert "core_wait" not in str(metrics)
    assert "core_wait" not in prometheus_text(metrics)

# SPDX-License-Identifier: Apache-2.0
"""Real LoadGen, short tests: it asks, a program answers, and no error on any thread is lost."""

import itertools
import threading
import time

import numpy as np
import pytest
from loadgen_programs import FakeProgram, samples

from nndeploy.errors import BusyError, CannotCreateError, InputError, UnavailableError
from nndeploy.loadgen import driver
from nndeploy.loadgen.accuracy import accuracy_from_log
from nndeploy.loadgen.answering import Answering
from nndeploy.loadgen.driver import drive, log_folder
from nndeploy.loadgen.library import LOG_NAMES, loadgen, run_test
from nndeploy.loadgen.settings import Pace, Request, Scenario, Settings, settings_from_request
from nndeploy.loadgen.verdict import verdict_from_log
from nndeploy.runtime.batching import JoinedCalls

SECONDS = 0.1
PACE = Pace(query_s=2e-5, samples_per_s=20_000)


@pytest.fixture(autouse=True)
def _installed() -> None:
    pytest.importorskip("mlperf_loadgen", reason="MLPerf's LoadGen is not installed (extra `loadgen`)")


def settings(scenario: str, **changes: object) -> Settings:
    fields = {"seconds": SECONDS, "target_qps": 6000 if scenario == "server" else None} | changes
    return settings_from_request(Request(Scenario(scenario), **fields), PACE)


@pytest.mark.parametrize("scenario", Scenario)
def test_each_scenario_is_answered_and_judged(scenario, tmp_path) -> None:
    program, request = FakeProgram(), Request(scenario)
    drive(
        JoinedCalls(program, request.most_rows), samples(5), settings(scenario), tmp_path,
        num_workers=request.num_workers,
    )  # fmt: skip
    verdict = verdict_from_log(tmp_path, scenario)
    asked = verdict.figures.get("samples") or verdict.figures["queries"] * request.query_size
    assert sum(program.rows) == asked
    assert verdict.version.startswith("6.")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(LOG_NAMES)
    if scenario in (Scenario.MULTI_STREAM, Scenario.OFFLINE):
        assert max(program.rows) == 8


@pytest.mark.parametrize(("queries", "is_valid"), [(63, False), (64, True)])
def test_early_stopping_agrees_with_our_count(queries, is_valid, tmp_path) -> None:
    slow = Pace(query_s=SECONDS, samples_per_s=1 / SECONDS)  # so few are prepared that the count decides
    asked = settings_from_request(Request(Scenario.SINGLE_STREAM, seconds=0.001, min_queries=queries), slow)

    def wait(x):
        time.sleep(0.0002)
        return x

    drive(JoinedCalls(FakeProgram(wait), 1), samples(1), asked, tmp_path, num_workers=0)
    verdict = verdict_from_log(tmp_path, Scenario.SINGLE_STREAM)
    assert (verdict.is_valid, verdict.figures["queries"]) == (is_valid, queries)
    assert is_valid or "at least 64 queries for early stopping" in verdict.reason


def test_server_that_is_too_slow_is_invalid_with_the_reason(tmp_path) -> None:
    def wait(x):
        time.sleep(0.002)
        return x

    asked = settings("server", target_qps=1000, target_latency_ms=1)
    drive(JoinedCalls(FakeProgram(wait), 1), samples(2), asked, tmp_path, num_workers=1)
    verdict = verdict_from_log(tmp_path, Scenario.SERVER)
    assert not verdict.is_valid
    assert verdict.reason.startswith("Reduce target QPS to improve latency.")
    assert verdict.figures["queries_too_late"] > 0


@pytest.mark.parametrize("scenario", Scenario)
@pytest.mark.parametrize("count", [1, 21])
def test_every_sample_s_bytes_arrive_whole(scenario, count, tmp_path) -> None:
    request = Request(scenario, accuracy=True, inflight=None if scenario == "single-stream" else 3)
    program = FakeProgram(lambda x: np.repeat(2 * x, 2000, axis=1), last=("N", 6000))
    given = samples(count)
    drive(
        JoinedCalls(program, request.most_rows), given, settings(scenario, accuracy=True), tmp_path,
        num_workers=request.num_workers,
    )  # fmt: skip
    accuracy = accuracy_from_log(tmp_path, JoinedCalls(program), given)
    assert accuracy.ok
    assert accuracy.num_answers >= count
    assert accuracy.outputs[0].worst.max_abs == 0


@pytest.mark.parametrize("scenario", Scenario)
def test_an_error_of_the_program_ends_the_test_and_is_raised(scenario, tmp_path, monkeypatch) -> None:
    calls = itertools.count(1)
    called_before: list[int] = []

    def fail_at_twenty(x):
        if next(calls) == 20:
            raise InputError("no more")
        return x

    class Watched(Answering):
        def abort(self, error):
            super().abort(error)
            called_before.append(len(program.rows))

    monkeypatch.setattr(driver, "Answering", Watched)
    program, request = FakeProgram(fail_at_twenty), Request(scenario)
    with pytest.raises(InputError, match="no more"):
        drive(JoinedCalls(program, 1), samples(3), settings(scenario), tmp_path, num_workers=request.num_workers)
    assert len(called_before) == 1
    assert len(program.rows) <= called_before[0] + request.num_workers  # one that each was about to make


def test_a_bug_is_raised_as_it_is(tmp_path) -> None:
    with pytest.raises(ZeroDivisionError):
        drive(JoinedCalls(FakeProgram(lambda x: 1 // 0), 1), samples(1), settings("offline"), tmp_path, num_workers=2)


def test_an_error_does_not_wait_for_the_end_of_server(tmp_path, monkeypatch) -> None:
    may_end = threading.Event()

    def refuse(x):
        raise InputError("never")

    def run_long(*arguments):
        """Runs a test that takes longer than anything that this thread may be held up by."""
        run_test(*arguments)
        may_end.wait(60)

    monkeypatch.setattr(driver, "run_test", run_long)
    asked = settings("server", target_qps=300, seconds=0.5)
    with pytest.raises(InputError, match="never"):
        drive(JoinedCalls(FakeProgram(refuse), 1), samples(1), asked, tmp_path, num_workers=1)
    left = [thread for thread in threading.enumerate() if thread.name == "loadgen"]
    assert [thread.daemon for thread in left] == [True]
    with pytest.raises(BusyError, match="another test"):
        drive(JoinedCalls(FakeProgram(), 1), samples(1), asked, tmp_path, num_workers=1)
    may_end.set()
    left[0].join(60)
    assert not left[0].is_alive()


def test_the_same_settings_ask_the_same_questions(tmp_path) -> None:
    orders = []
    for name in "ab":
        order: list[float] = []
        (tmp_path / name).mkdir()
        program = FakeProgram(lambda x, order=order: order.append(x[0, 0]) or x)
        drive(JoinedCalls(program, 1), samples(9), settings("single-stream"), tmp_path / name, num_workers=0)
        orders.append(order[:64])
    assert orders[0] == orders[1]
    assert len(set(orders[0])) == 9


def test_an_audit_config_in_the_current_folder_changes_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit.config").write_text("*.*.min_query_count = 100000\n*.*.performance_issue_same = 1\n")
    (tmp_path / "logs").mkdir()
    drive(JoinedCalls(FakeProgram(), 1), samples(1), settings("single-stream"), tmp_path / "logs", num_workers=0)
    assert "audit" not in (tmp_path / "logs" / "mlperf_log_detail.txt").read_text().lower()


def test_logs_appear_only_at_the_end_of_a_test_that_ended(tmp_path) -> None:
    target = tmp_path / "logs"
    with pytest.raises(InputError), log_folder(target):
        raise InputError("in between")
    assert list(target.iterdir()) == []
    with log_folder(target) as folder:
        for name in LOG_NAMES:
            (folder / name).write_text("new")
        assert list(target.glob("mlperf*")) == []
    assert sorted(path.name for path in target.iterdir()) == sorted(LOG_NAMES)


def test_a_folder_that_cannot_take_the_logs_is_refused_before_anything_runs(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotCreateError, match="cannot be made"), log_folder(tmp_path / "file"):
        pytest.fail("it ran")
    (tmp_path / "mlperf_log_detail.txt").mkdir()
    with pytest.raises(CannotCreateError, match=r"mlperf_log_detail.txt is a folder"), log_folder(tmp_path):
        pytest.fail("it ran")


def test_a_missing_package_names_the_extra(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mlperf_loadgen", None)
    with pytest.raises(UnavailableError, match=r"nndeploy-toolchain\[loadgen\]"):
        loadgen()

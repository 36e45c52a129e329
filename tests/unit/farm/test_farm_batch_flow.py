# SPDX-License-Identifier: Apache-2.0
"""A call of a batch from its file to its reports, with a stand-in for the compile: what is known, kept and left."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from fake_engine import FakeEngine, Heard, job, outcome_of, planned

from nndeploy.bundle.report import Report
from nndeploy.cli.views.batch_view import BatchView
from nndeploy.compiler import cached_compile
from nndeploy.errors import BusyError, CheckError, InputOutputError, ModelError, UnavailableError
from nndeploy.farm import batch_flow
from nndeploy.farm.batch_flow import DIGESTS, Ended, opened_batch, planned_batch
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.reports import Gates

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,2,3,%d}> { y = MatMul(x, w) }"""
REPORT = Report(backends=("native",), nodes=(), submodels=(), model="m", objective="latency", shapes=())
BAD = {"b": ModelError("no model"), "i": BusyError("changed")}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were compiled, by a stand-in for which "b" is bad."""
    found: list[str] = []

    def stand_in(
        source: str,
        out: str,
        given: Mapping[str, Any],
        _limits: Any,
        _onlooker: Any,
        keeper: Any = None,
        start: Any = None,
    ) -> Report:
        name = Path(source).stem
        found.append(name)
        if name in BAD:
            raise BAD[name]
        Path(out).write_text(f"bundle of {name} {given}")
        report = replace(REPORT, bundle=out, bundle_bytes=Path(out).stat().st_size, seconds={"build": 1.0})
        keeper.keep_bundle(report, {"bundle": Path(out)})
        return report

    monkeypatch.setattr(cached_compile, "compile_in_child", stand_in)
    return found


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Returns a function that writes models and their fleet file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def write(*names: str) -> Path:
        (tmp_path / "models").mkdir(exist_ok=True)
        for number, name in enumerate(names):
            onnx.save(onnx.parser.parse_model(MODEL % number), tmp_path / "models" / f"{name}.onnx")
        text = f'[farm]\ncache = ["{tmp_path}/cache"]\n[[models]]\nfiles = ["models/*.onnx"]\n'
        (tmp_path / "fleet.toml").write_text(f'{text}[report]\njson = "batch.json"\n')
        return tmp_path / "fleet.toml"

    return write


def run(fleet: Path, events: Heard | None = None, **options: Any) -> Ended:
    with opened_batch(fleet, BatchOptions(**options), Gates(), print) as opened:
        return opened.run(events or Heard(), {}, datetime.now(UTC))


def statuses(ended: Ended) -> dict[str, str]:
    return {one.model: one.status for one in ended.batch.outcomes}


def test_a_bad_job_costs_no_other_and_is_known_to_the_next_call(fleet: Any, built: list[str]) -> None:
    path = fleet("a", "b", "c")
    ended = run(path)
    assert statuses(ended) == {"a": "ok", "b": "failed", "c": "ok"}
    with pytest.raises(CheckError, match="1 job failed"):
        ended.raise_if_failed()
    assert sorted(built) == ["a", "b", "c"]
    assert statuses(run(path)) == {"a": "hit", "b": "failed", "c": "hit"}
    assert len(built) == 3
    run(path, retry_failed=True)
    assert built[3:] == ["b"]


def test_without_the_journal_the_cache_knows_what_was_built(fleet: Any, built: list[str], tmp_path: Path) -> None:
    path = fleet("a", "c")
    first = {one.model: Path(tmp_path, one.output).read_bytes() for one in run(path).batch.outcomes}
    (tmp_path / "dist").rename(tmp_path / "moved")
    ended = run(path, fresh=True)
    assert statuses(ended) == {"a": "hit", "c": "hit"}
    assert {one.model: Path(tmp_path, one.output).read_bytes() for one in ended.batch.outcomes} == first
    assert sorted(built) == ["a", "c"]


def test_what_others_may_write_to_says_nothing_of_models(fleet: Any, built: list[str], tmp_path: Path) -> None:
    """A digest that is planted in a cache would make one model's bundle another's."""
    path = fleet("a")
    run(path)
    assert not list((tmp_path / "cache").rglob(DIGESTS))
    found = (tmp_path / "models" / "a.onnx").stat()
    facts = [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    with opened_batch(path, BatchOptions(), Gates(), print) as opened:
        (before,) = planned_batch(opened)
        (tmp_path / "cache" / DIGESTS).write_text(json.dumps({before.job.source: [facts, "cd" * 32, []]}))
        (after,) = planned_batch(opened)
    assert after.key == before.key


@pytest.mark.parametrize(("in_file", "given", "strict"), [
    ("", {}, None), ("", {"strict_targets": False}, False), ("strict_targets = false", {}, False),
    ("strict_targets = false", {"strict_targets": True}, True), ("strict-targets = true", {}, True),
])  # fmt: skip
def test_gates_of_the_command_line_stand_before_those_of_the_file(fleet, in_file, given, strict) -> None:
    path = fleet("a")
    path.write_text(f'{path.read_text()}\n[gates]\nmax_slowdown = "5%"\n{in_file}\n')
    with opened_batch(path, BatchOptions(), Gates(**given), print) as opened:
        assert opened.gates == Gates(max_slowdown=0.05, strict_targets=strict)


def test_a_second_call_at_the_same_time_is_refused(fleet: Any, built: list[str]) -> None:
    path = fleet("a")

    class Calling(Heard):
        def finished(self, outcome: Outcome) -> None:
            with pytest.raises(BusyError):
                run(path)
            super().finished(outcome)

    heard = Calling()
    run(path, heard)
    assert heard.said[-1] == ("ok", "a")


def test_what_no_worker_can_build_ends_a_batch_by_its_code_and_the_rest_is_built(fleet, built, monkeypatch) -> None:
    path = fleet("a", "c")
    path.write_text(path.read_text() + '[[override]]\nmodel = "c"\nneeds = { site = "attic" }\n')
    with opened_batch(path, BatchOptions(), Gates(), print) as opened:
        assert list(opened.why_no_worker()) == ["c/host"]
    ended = run(path)
    assert (built, statuses(ended)) == (["a"], {"a": "ok", "c": "infra"})
    with pytest.raises(UnavailableError, match="1 job"):
        ended.raise_if_failed()
    path.write_text(path.read_text().replace("attic", "lab"))
    monkeypatch.setattr(batch_flow, "LocalEngine", lambda *_: FakeEngine())
    run(path).raise_if_failed()  # another call may have a worker


def rows(folder: Path) -> dict[str, str]:
    return {one["model"]: one["status"] for one in json.loads((folder / "batch.json").read_text())["jobs"]}


def test_a_filter_keeps_what_the_last_report_said_of_other_jobs(fleet, built, tmp_path, capsys) -> None:
    path = fleet("a", "b", "c")
    run(path)
    ended = run(path, filters=("model=c",))
    ended.raise_if_failed()  # that "b" failed before is no matter of this call
    assert statuses(ended) == {"a": "skipped", "b": "skipped", "c": "hit"}
    assert rows(tmp_path) == {"a": "ok", "b": "failed", "c": "hit"}
    run(path, filters=("model=a",))
    assert rows(tmp_path) == {"a": "hit", "b": "failed", "c": "hit"}
    assert capsys.readouterr().out == ""
    fleet("d")  # another fleet by now: what was said is of no use
    run(path, filters=("model=c",))
    assert rows(tmp_path) == {"a": "skipped", "b": "skipped", "c": "hit", "d": "skipped"}
    assert "batch.json" in capsys.readouterr().out


def test_a_skipped_job_has_the_bundle_that_is_there(fleet: Any, built: list[str], tmp_path: Path) -> None:
    path = fleet("a", "b", "c")
    run(path)
    (tmp_path / "batch.json").unlink()
    run(path, filters=("model=c",))
    sizes = {one["model"]: one["size"] for one in json.loads((tmp_path / "batch.json").read_text())["jobs"]}
    assert [sizes[name] > 0 for name in "abc"] == [True, False, True]


def test_what_was_not_begun_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchView() as view:
        view.planned([planned(name) for name in "abc"])
        view.started(job("a"), 1)
        for name in "abc":
            view.finished(outcome_of(job(name), "cancelled"))
    _, begun, rest = capsys.readouterr().err.splitlines()
    assert "a/host" in begun
    assert rest.startswith("2 ")


@pytest.mark.parametrize("error", [InputOutputError("the events cannot be written"), KeyboardInterrupt(), ValueError()])
def test_whatever_ends_a_batch_ends_what_it_runs_and_the_next_call_goes_on(fleet, built, monkeypatch, error) -> None:
    path = fleet("a", "c", "d")
    engine = FakeEngine(room=2)

    class Ending(Heard):
        def finished(self, outcome: Outcome) -> None:
            super().finished(outcome)
            if len([one for one in self.said if one[0] == "ok"]) == 1 and not engine.is_cancelled:
                raise error

    with monkeypatch.context() as patched:
        patched.setattr(batch_flow, "LocalEngine", lambda *_: engine)
        patched.setattr(batch_flow.signal, "signal", lambda *_: None)
        with pytest.raises(type(error)):
            run(path, Ending())
    assert engine.is_cancelled
    assert engine.running == {}
    assert sorted(rows(path.parent).values()) == ["cancelled", "cancelled", "ok"]
    assert statuses(run(path)) == dict.fromkeys("acd", "ok")

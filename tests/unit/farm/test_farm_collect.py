# SPDX-License-Identifier: Apache-2.0
"""A batch whose jobs are built one by one, here or on another machine, and what is collected and emitted of it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import onnx.parser
import pytest
from fake_engine import FakeEngine, outcome_of

from nndeploy.build_cache.entry import Entry
from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.bundle.report import Report, report_to_json
from nndeploy.compiler import cache_key
from nndeploy.errors import BusyError, CheckError, NndeployError, told_error
from nndeploy.farm import batch_flow
from nndeploy.farm.batch_flow import OpenedBatch, emitted, opened_batch, planned_batch
from nndeploy.farm.job import Job, limits_of
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.reports.batch_json import read_batch
from nndeploy.farm.reports.gates import Gates
from nndeploy.farm.run_batch import Events

NOW = datetime(2026, 11, 26, tzinfo=UTC)
FLEET = '[farm]\ncache = ["cache"]\n[[models]]\nfiles = ["*.onnx"]\n[report]\njson = "batch.json"\n'
RELU = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Relu(x) }'

Built = Callable[..., None]


def written(job: Job, number: int) -> Outcome:
    """Writes something in the place of a bundle; what is called `bad` fails."""
    if job.model == "bad":
        return outcome_of(job, "failed", exit_code=65, error=told_error(NndeployError("no model")))
    Path(job.output).parent.mkdir(parents=True, exist_ok=True)
    Path(job.output).write_text(job.id)
    return outcome_of(job, sha256="ab" * 32, size=len(job.id))


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(OpenedBatch, "_engine", lambda *_: FakeEngine(build=written))
    for name in ("a", "b", "bad"):
        onnx.save(onnx.parser.parse_model(RELU), tmp_path / f"{name}.onnx")
    (tmp_path / "fleet.toml").write_text(FLEET)
    return tmp_path / "fleet.toml"


@contextmanager
def opened(fleet: Path, **options: object) -> Iterator[OpenedBatch]:
    with opened_batch(fleet, BatchOptions(**options), Gates(), lambda line: pytest.fail(line)) as batch:  # type: ignore[arg-type]
        yield batch


@pytest.fixture
def build(fleet: Path) -> Built:
    """Returns a function that runs the batch, or one job of it, as `--only` does."""

    def run(only: str = "", **options: object) -> None:
        with opened(fleet, only=only, **options) as batch:
            batch.run(Events(), {}, NOW)

    return run


def emits(fleet: Path, **options: object) -> list[str]:
    with opened(fleet, **options) as batch:
        return [json.loads(line)["job"] for line in emitted(batch, "jsonl")[0].splitlines()]


def collects(fleet: Path, **options: object) -> dict[str, str]:
    """Returns the status of each job, which the report has too."""
    with opened(fleet, **options) as batch:
        found = {one.job: one.status for one in batch.collect({}, NOW).batch.outcomes}
    assert {one.job: one.status for one in read_batch(fleet.parent / "batch.json").outcomes} == found
    return found


def ends(fleet: Path, **options: object) -> None:
    with opened(fleet, **options) as batch:
        batch.collect({}, NOW).raise_if_failed()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Returns a function that makes this another machine, with other parts of keys."""

    def move() -> None:
        for module in (cache_key, batch_flow):
            monkeypatch.setattr(module, "parts_of_machine", lambda: {"machine:cpu": "another"})

    return move


def test_what_was_built_is_collected_and_no_longer_emitted(fleet: Path, build: Built) -> None:
    assert emits(fleet) == ["a/host", "b/host", "bad/host"]
    assert collects(fleet) == {"a/host": "skipped", "b/host": "skipped", "bad/host": "skipped"}
    with pytest.raises(BusyError, match=r"3 jobs are not built yet .*--emit"):
        ends(fleet)
    build("a/host")
    build("bad/host")
    assert emits(fleet) == ["b/host"]
    assert emits(fleet, retry_failed=True) == ["b/host", "bad/host"]
    assert collects(fleet) == {"a/host": "hit", "b/host": "skipped", "bad/host": "failed"}
    with pytest.raises(CheckError, match="1 job failed, 1 is not built yet"):
        ends(fleet)
    build("b/host")
    assert emits(fleet) == []
    ends(fleet, filters=("model=?",))


def test_a_job_alone_writes_no_reports_and_the_batch_knows_of_it(fleet: Path, build: Built) -> None:
    build("a/host")
    assert not (fleet.parent / "batch.json").exists()
    with opened(fleet) as batch:
        assert [one.state for one in planned_batch(batch)] == ["built", "build", "build"]
    build()
    assert [one.status for one in read_batch(fleet.parent / "batch.json").outcomes] == ["hit", "ok", "failed"]


def test_a_bundle_that_was_touched_or_whose_model_changed_is_to_be_built(fleet: Path, build: Built) -> None:
    build("a/host")
    build("b/host")
    (fleet.parent / "dist/a/host.nnd").write_text("touched")
    (fleet.parent / "b.onnx").write_bytes((fleet.parent / "b.onnx").read_bytes() + b"\x12\x01x")
    assert emits(fleet) == ["a/host", "b/host", "bad/host"]
    assert collects(fleet)["a/host"] == "skipped"


def test_what_another_machine_built_is_recognised(fleet: Path, build: Built, elsewhere: Callable[[], None]) -> None:
    build("a/host")
    build("bad/host")
    elsewhere()
    with opened(fleet) as batch:
        assert {one.state for one in planned_batch(batch)} == {"build"}, "for this machine nothing is built"
    assert collects(fleet) == {"a/host": "hit", "b/host": "skipped", "bad/host": "failed"}
    assert emits(fleet) == ["b/host"]
    (fleet.parent / "a.onnx").write_bytes((fleet.parent / "a.onnx").read_bytes() + b"\x12\x01x")
    assert collects(fleet)["a/host"] == "skipped", "no machine built this model"


def test_a_bundle_that_the_cache_has_is_brought_to_its_place(fleet: Path) -> None:
    with opened(fleet) as batch:
        assert batch.cache is not None
        (one,) = [one for one in planned_batch(batch) if one.job.id == "a/host"]
        report = Report(model="a", objective="priority", backends=(), nodes=(), submodels=(), bundle_bytes=6)
        for name, content in (("bundle", b"bundle"), ("report", json.dumps(report_to_json(report)).encode())):
            (fleet.parent / name).write_bytes(content)
        blobs = {name: batch.cache.add_file(fleet.parent / name) for name in ("bundle", "report")}
        parts = cache_key.parts_of(Path(one.job.source), one.job.given, limits_of(one.job), FileDigests())
        batch.cache.add(Entry(parts, blobs), one.job.source)
    assert emits(fleet) == ["b/host", "bad/host"]
    assert collects(fleet)["a/host"] == "hit"
    assert (fleet.parent / "dist/a/host.nnd").read_bytes() == b"bundle"

# SPDX-License-Identifier: Apache-2.0
"""A batch publishes what it built, and shares it through the cache that its fleet file names, and no other."""

import hashlib
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fake_engine import FakeEngine, outcome_of

from nndeploy.errors import BusyError, CheckError, MissingInputError
from nndeploy.farm.batch_flow import Ended, OpenedBatch, opened_batch, planned_batch
from nndeploy.farm.job import Job
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.reports import Gates
from nndeploy.farm.run_batch import Events
from nndeploy.trust.signers import new_key

sys.path.append(str(Path(__file__).parents[1] / "registry"))

from weighty_bundles import write_weights

MODELS = '[[models]]\nfiles = ["*.onnx"]\n'


def weights_of(job: Job, number: int) -> Outcome:
    Path(job.output).parent.mkdir(parents=True, exist_ok=True)
    data = write_weights(Path(job.output), (len(job.model),), size=1_000)
    return outcome_of(job, sha256=hashlib.sha256(data).hexdigest(), size=len(data))


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Stands in for what builds jobs: a bundle each, at once."""
    made = FakeEngine(room=9, build=weights_of)
    monkeypatch.setattr(OpenedBatch, "_engine", lambda *_: made)
    return made


@pytest.fixture
def fleet(tmp_path: Path) -> Callable[[str], Path]:
    """Returns a function that writes a fleet file for two models beside it."""
    for name in ("a", "bb"):
        (tmp_path / f"{name}.onnx").write_bytes(b"")

    def write(text: str) -> Path:
        (tmp_path / "fleet.toml").write_text(f'[farm]\ncache = ["cache"]\n{text}\n{MODELS}')
        return tmp_path / "fleet.toml"

    return write


def ran(path: Path, *filters: str) -> Ended:
    with opened_batch(path, BatchOptions(filters=filters), Gates(), lambda _line: None) as opened:
        return opened.run(Events(), {}, datetime(2026, 11, 26, tzinfo=UTC))


def test_what_was_built_is_published_with_a_page(builder, fleet, tmp_path) -> None:
    new_key(tmp_path / "farm.key")
    path = fleet('[publish]\nfolder = "site"\nsign = "farm.key"')
    ran(path).raise_if_failed()
    files = {str(one.relative_to(tmp_path / "site")) for one in (tmp_path / "site").rglob("*") if one.is_file()}
    assert files == {"a/host.nnd", "bb/host.nnd", "index.html"}
    assert (tmp_path / "site/a/host.nnd").read_bytes() != (tmp_path / "dist/a/host.nnd").read_bytes(), "it is signed"
    assert builder.order == ["a", "bb"]


def test_a_part_of_a_batch_is_published_and_leaves_the_page(builder, fleet, tmp_path) -> None:
    ran(fleet('[publish]\nfolder = "site"'), "model=a")
    assert [one.name for one in (tmp_path / "site").rglob("*") if one.is_file()] == ["host.nnd"]
    assert builder.order == ["a"]


def test_what_could_not_be_published_fails_and_the_next_call_publishes_it(builder, fleet, tmp_path) -> None:
    path = fleet('[publish]\nfolder = "site"')
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a").write_bytes(b"in the way")
    ended = ran(path)
    assert {one.job: one.status for one in ended.batch.outcomes} == {"a/host": "failed", "bb/host": "ok"}
    with pytest.raises(CheckError, match="1 job failed"):
        ended.raise_if_failed()
    (tmp_path / "site" / "a").unlink()
    ran(path).raise_if_failed()
    assert (tmp_path / "site" / "a" / "host.nnd").is_file()


@pytest.mark.usefixtures("builder")
def test_a_registry_that_nobody_reaches_is_busy(fleet: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("requests", reason="the extra `registry` is not installed")
    monkeypatch.setattr("nndeploy.registry.connection.FIRST_WAIT_SECONDS", 0.0)
    ended = ran(fleet('[publish]\noci = "oci://127.0.0.1:1/{model}:{target}"'))
    with pytest.raises(BusyError, match="2 jobs could not be built or published"):
        ended.raise_if_failed()


def test_a_key_that_is_not_there_ends_the_batch_before_it_begins(builder, fleet) -> None:
    with pytest.raises(MissingInputError):
        ran(fleet('[publish]\nfolder = "site"\nsign = "none.key"'))
    assert builder.begun == []


def test_the_address_of_the_fleet_file_is_the_shared_cache_of_all_jobs(fleet, tmp_path) -> None:
    path = fleet("")
    text = path.read_text().replace('["cache"]', '["cache", "https://cache.example/x"]\npush = "trusted"')
    path.write_text(text.replace("[[models]]", "\n[[models]]"))
    with opened_batch(path, BatchOptions(), Gates(), lambda _line: None) as opened:
        assert opened.remote is not None
        assert opened.remote.address == opened.caching.cache_remote == "https://cache.example/x"
        assert (opened.caching.cache_push, opened.caching.cache_dir) == ("trusted", str(tmp_path / "cache"))


def test_a_plan_asks_nobody(fleet: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> None:
        raise AssertionError("a plan spoke to the network")

    path = fleet("")
    path.write_text(path.read_text().replace('["cache"]', '["cache", "http://127.0.0.1:1/x"]'))
    monkeypatch.setattr("socket.socket.connect", connect)
    with opened_batch(path, BatchOptions(), Gates(), lambda _line: None) as opened:
        assert [bool(one.key) for one in planned_batch(opened)] == [True, True]

# SPDX-License-Identifier: Apache-2.0
"""A batch on a cluster: every job has its outcome whatever happens to workers, and no busy worker gets another."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra farm is not installed")

from farm_cluster import SECONDS, Farm, copied, good, job_of, machine

from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.errors import BusyError, UnavailableError
from nndeploy.farm.cluster import files as cluster_files
from nndeploy.farm.cluster.engine import ClusterEngine
from nndeploy.farm.cluster.place import Place
from nndeploy.farm.cluster.worker_builds import WITH_ROW_BYTES
from nndeploy.farm.job import Job
from nndeploy.farm.journal import Journal
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.planned import BUILD, Planned
from nndeploy.farm.run_batch import BatchRun, Events
from nndeploy.files.pieces import PIECE_BYTES

Jobs = Callable[[int], list[Job]]
MODEL = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path / "farm") as farm:
        yield farm


@pytest.fixture(autouse=True)
def _no_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is built here are no bundles; who checks those is tested with real ones."""
    monkeypatch.setattr(cluster_files, "_checked_and_signed", lambda path: "")


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    def made(count: int) -> list[Job]:
        found = [job_of(tmp_path / "mine", f"m{number}") for number in range(count)]
        for number, job in enumerate(found):
            Path(job.source).parent.mkdir(exist_ok=True)
            Path(job.source).write_bytes(MODEL.read_bytes())
            job.given["num_goldens"] = number  # no two alike
        return found

    return made


@pytest.fixture
def joined() -> Iterator[Callable[..., ClusterEngine]]:
    """Returns a function that connects to a place; what it heard is in `heard` of the engine."""
    engines: list[ClusterEngine] = []

    def join(place: Place, patience: float = SECONDS) -> ClusterEngine:
        heard: list[Any] = []
        engine = ClusterEngine(place, lambda *told: heard.append(told), heard.append, FileDigests(), patience)
        engine.heard = heard  # type: ignore[attr-defined]
        engines.append(engine)
        return engine

    yield join
    for engine in engines:
        engine.close()


def outcomes_of(engine: ClusterEngine, count: int) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    deadline = time.monotonic() + SECONDS
    while len(found) < count:
        assert time.monotonic() < deadline
        found |= {job.id: outcome for job, outcome in engine.wait(1.0)}
    return found


def run(engine: ClusterEngine, journal: Path, jobs: list[Job]) -> dict[str, Outcome]:
    with Journal(journal) as opened:
        batch = BatchRun(engine, opened, Events(), "fleet.toml")
        batch.run([Planned(job, f"{number:064x}", BUILD) for number, job in enumerate(jobs)])
    return {one.job: one for one in batch.outcomes}


def of_size(num_bytes: int) -> Callable[[Job], Outcome]:
    """Returns a build whose bundles have that size."""

    def build(job: Job) -> Outcome:
        Path(job.output).write_bytes(random.Random(num_bytes).randbytes(num_bytes))  # noqa: S311 - no secret
        return good(job, seconds=1.0, key="ab" * 32)

    return build


SIZES = [WITH_ROW_BYTES, WITH_ROW_BYTES + 1, 2 * PIECE_BYTES + 1]


@pytest.mark.parametrize("num_bytes", SIZES)
def test_files_travel_once_and_what_is_built_comes_back(farm, jobs, joined, tmp_path, num_bytes) -> None:
    worker = farm.worker("a", of_size(num_bytes))
    engine = joined(farm.place)
    found = run(engine, tmp_path / "journal", jobs(3))
    assert {one.status for one in found.values()} == {"ok"}
    for job in jobs(3):
        assert Path(job.output).read_bytes() == random.Random(num_bytes).randbytes(num_bytes)  # noqa: S311
        assert (found[job.id].worker, found[job.id].output, found[job.id].size) == ("a", job.output, num_bytes)
    model, bundle = sorted(path.stat().st_size for path in worker.builds.blobs._folder.iterdir())
    assert {model, bundle} == {MODEL.stat().st_size, num_bytes}, "three jobs of one model bring it once"
    assert list((tmp_path / "farm" / "a" / "jobs").iterdir()) == []
    assert worker.builds.heard_ends == []


def test_files_that_a_worker_forgot_are_sent_again(farm: Farm, jobs: Jobs, joined: Any) -> None:
    worker = farm.worker("a")
    engine, (first, second) = joined(farm.place), jobs(2)
    for job in (first, second):
        engine.start(job, 1)
        assert outcomes_of(engine, 1)[job.id].status == "ok"
        for path in (worker.builds.blobs._folder).iterdir():
            path.unlink()


def test_no_worker_gets_more_than_it_has_slots_for_and_all_get_some(farm, jobs, joined, tmp_path) -> None:
    lock, running = threading.Lock(), dict.fromkeys("ab", 0)
    most, together, order = dict(running), threading.Barrier(3), iter(range(8))

    def counting(name: str) -> Callable[[Job], Outcome]:
        def build(job: Job) -> Outcome:
            with lock:
                running[name] += 1
                most[name] = max(most[name], running[name])
                is_of_first = next(order) < 3
            if is_of_first:
                together.wait(SECONDS)
            with lock:
                running[name] -= 1
            return copied(job)

        return build

    farm.worker("a", counting("a"))
    farm.worker("b", counting("b"), machine(2))
    engine = joined(farm.place)
    found = run(engine, tmp_path / "journal", jobs(8))
    assert {one.status for one in found.values()} == {"ok"}
    assert most == {"a": 1, "b": 2}


def hanging() -> tuple[Callable[[Job], Outcome], threading.Event, threading.Event]:
    """Returns a build that waits, an event that says that it began, and one that lets it go on."""
    begun, go_on = threading.Event(), threading.Event()

    def build(job: Job) -> Outcome:
        begun.set()
        go_on.wait(SECONDS)
        return copied(job)

    return build, begun, go_on


def test_the_job_of_a_lost_worker_is_built_by_another(farm: Farm, jobs: Jobs, joined: Any, tmp_path: Path) -> None:
    hangs, begun, go_on = hanging()
    lost = farm.worker("a", hangs)
    engine = joined(farm.place)
    found: dict[str, Outcome] = {}
    thread = threading.Thread(target=lambda: found.update(run(engine, tmp_path / "journal", jobs(2))))
    thread.start()
    assert begun.wait(SECONDS)
    farm.worker("b")
    farm.lose(lost)
    thread.join(SECONDS)
    go_on.set()
    assert sorted((one.status, one.worker, one.tries) for one in found.values()) == [("ok", "b", 1), ("ok", "b", 2)]
    rows = (tmp_path / "journal" / "journal.jsonl").read_text()
    assert '"status": "infra"' in rows
    assert "its worker was lost" in rows


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a refused socket stays open
def test_a_scheduler_that_is_gone_ends_the_batch_and_the_next_one_goes_on(farm, jobs, joined, tmp_path) -> None:
    second, go_on = threading.Event(), threading.Event()
    built: list[str] = []

    def build(job: Job) -> Outcome:
        built.append(job.id)
        if len(built) == 2:
            second.set()
            go_on.wait(SECONDS)
        return copied(job)

    farm.worker("a", build)
    two, engine, ends = jobs(2), joined(farm.place), list[BaseException]()

    def batch() -> None:
        try:
            run(engine, tmp_path / "journal", two)
        except BusyError as err:
            ends.append(err)

    thread = threading.Thread(target=batch)
    thread.start()
    assert second.wait(SECONDS)
    farm.stop()
    thread.join(SECONDS)
    go_on.set()
    assert [str(err).partition(": ")[2][:21] for err in ends] == ["the scheduler is gone"]
    with Journal(tmp_path / "journal") as journal:
        known = [journal.known(job.id, "ab" * 32) for job in two]
    assert [one is not None and one.is_good for one in known] == [True, False]
    with Farm(tmp_path / "again") as another:
        another.worker("b")
        assert run(joined(another.place), tmp_path / "journal", two[1:])[two[1].id].status == "ok"


def test_a_bad_model_and_a_refusal_are_told_as_here(farm: Farm, jobs: Jobs, joined: Any, tmp_path: Path) -> None:
    def refuses(job: Job) -> Outcome:
        error = {"code": "bad-model", "exit_code": 65, "message": "no", "where": job.source, "hint": ""}
        return good(job, error=error, exit_code=65).__class__(
            job=job.id, model=job.model, target=job.target, variant="", status="failed", error=error, exit_code=65
        )

    farm.worker("a", refuses)
    engine = joined(farm.place)
    refused, gone = jobs(2)
    Path(gone.source).unlink()
    for job in (refused, gone):
        while not engine.has_room(job):
            outcomes_of(engine, 1)
        engine.start(job, 1)
        (outcome,) = outcomes_of(engine, 1).values()
        assert outcome.status == "failed"
        assert outcome.error is not None
        assert outcome.error["where"] == job.source, "a path of the worker's tree is told as the user knows it"


@pytest.mark.parametrize("num_bytes", SIZES)
def test_what_is_not_what_the_worker_said_is_no_output(farm, jobs, joined, monkeypatch, num_bytes) -> None:
    worker = farm.worker("a", of_size(num_bytes))
    read = worker.builds.blobs.read
    monkeypatch.setattr(worker.builds.blobs, "read", lambda blob, offset: bytes([1]) + read(blob, offset)[1:])
    engine, (job,) = joined(farm.place), jobs(1)
    engine.start(job, 1)
    assert outcomes_of(engine, 1)[job.id].status == "infra"
    assert not Path(job.output).exists()
    assert list(Path(job.output).parent.iterdir()) == []


def test_a_worker_that_is_lost_while_its_bundle_comes_costs_a_try(farm, jobs, joined, monkeypatch) -> None:
    farm.worker("a", of_size(2 * PIECE_BYTES))
    engine, (job,) = joined(farm.place), jobs(1)
    asked = engine._asked

    async def lost(address: str, op: str, **fields: Any) -> Any:
        if fields.get("offset"):
            raise OSError("the connection broke")
        return await asked(address, op, **fields)

    monkeypatch.setattr(engine, "_asked", lost)
    engine.start(job, 1)
    assert outcomes_of(engine, 1)[job.id].status == "infra"
    assert list(Path(job.output).parent.iterdir()) == []


def test_what_is_no_bundle_has_no_place(farm: Farm, jobs: Jobs, joined: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    farm.worker("a")
    engine, (job,) = joined(farm.place), jobs(1)
    engine.start(job, 1)
    assert outcomes_of(engine, 1)[job.id].status == "failed"
    assert not Path(job.output).exists()


def test_needs_choose_the_worker_and_what_none_has_is_refused(farm, jobs, joined, tmp_path) -> None:
    farm.worker("a")
    farm.worker("b", has=machine(gpu={"sm120": 1}))
    engine = joined(farm.place)
    (plain,) = jobs(1)
    on_gpu = job_of(tmp_path / "mine", "m0", needs={"gpu": "sm120"})
    assert engine.why_never(on_gpu) == ""
    engine.start(on_gpu, 1)
    assert outcomes_of(engine, 1)[plain.id].worker == "b"
    assert "sm90" in engine.why_never(job_of(tmp_path, needs={"gpu": "sm90"}))
    assert "bytes of memory" in engine.why_never(job_of(tmp_path, limits={"memory_limit": 1 << 40}))


def test_no_worker_for_too_long_is_said_so_that_it_is_tried_later(farm: Farm, joined: Any) -> None:
    with pytest.raises(BusyError, match="no worker"):
        joined(farm.place, 0.05)


def test_a_worker_of_another_release_is_not_used(farm: Farm, joined: Any) -> None:
    farm.worker("old", own_release="nndeploy 0.0.1 abc, distributed 1")
    with pytest.raises(UnavailableError, match=r"old .*release: it has nndeploy 0\.0\.1"):
        joined(farm.place)


def test_neither_comes_to_a_scheduler_of_another_release(farm, joined, monkeypatch) -> None:
    monkeypatch.setattr("nndeploy.farm.cluster.scheduler.release", lambda: "nndeploy 0.0.1")
    with pytest.raises(UnavailableError, match="another release"):
        joined(farm.place)
    with pytest.raises(UnavailableError, match="another release"):
        farm.worker("a")


def test_who_shows_a_certificate_of_another_authority_or_none_is_refused(farm, joined, tmp_path, monkeypatch) -> None:
    from nndeploy.farm.cluster import engine as cluster_engine
    from nndeploy.farm.cluster.certificates import CLIENT, certificates_in, make_certificates

    made: list[Any] = []

    class Seen(cluster_engine.Client):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            made.append(self)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(cluster_engine, "Client", Seen)
    monkeypatch.setattr(cluster_engine, "CONNECT_SECONDS", 1.0)
    make_certificates(tmp_path / "others")
    for place in (
        Place(farm.scheduler.address, certificates_in(tmp_path / "others", CLIENT)),
        Place(farm.scheduler.address.replace("tls", "tcp")),
    ):
        with pytest.raises(UnavailableError, match="no scheduler can be reached"):
            joined(place)
    assert [client.status for client in made] == ["closed"] * 2, "one that is left open would wait when it is collected"


def test_cancel_reaches_the_workers_and_so_does_the_end_of_a_coordinator(farm: Farm, jobs: Jobs, joined: Any) -> None:
    hangs, begun, go_on = hanging()
    worker = farm.worker("a", hangs)
    engine, (job,) = joined(farm.place), jobs(1)
    engine.start(job, 1)
    assert begun.wait(SECONDS)
    heard = worker.builds.heard_ends
    engine.cancel()
    wait_until(lambda: heard == [engine._client.id])
    engine.close()
    wait_until(lambda: heard == [engine._client.id] * 2)
    go_on.set()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_nothing_but_the_scheduler_and_the_workers_listens(farm: Farm) -> None:
    worker = farm.worker("a")
    assert not farm.scheduler.services
    assert not worker.services
    for one in (farm.scheduler, worker):
        assert [address for address in one.listeners if "127.0.0.1" not in str(address.listen_address)] == []

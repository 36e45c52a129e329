# SPDX-License-Identifier: Apache-2.0
"""A plan says of each job what is known of it, and orders what is to be built."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from batch_examples import outcome
from fake_engine import job

from nndeploy.build_cache.entry import Entry
from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.farm import planned
from nndeploy.farm.job import Job
from nndeploy.farm.journal import Journal
from nndeploy.farm.planned import AFTER, BUILD, BUILT, FAILED, HIT, LEAST_SECONDS, Planned, Planner
from nndeploy.trust.signers import new_key
from nndeploy.trust.trust_store import CODE, TrustedKey, TrustStore

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,2,3,%d}> { y = MatMul(x, w) }"""


@pytest.fixture
def cache(tmp_path: Path) -> LocalCache:
    signer = new_key(tmp_path / "farm.key")
    store = TrustStore({signer.public.id: TrustedKey(signer.public, "farm", frozenset((CODE,)))})
    return LocalCache(tmp_path / "cache", store, signer)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journals") as found:
        yield found


@pytest.fixture
def model(tmp_path: Path) -> Callable[..., Job]:
    """Returns a function that writes a model and returns a job of it."""

    def made(name: str, weight: int = 4, folder: str = ".", **fields: Any) -> Job:
        path = tmp_path / folder / f"{name}.onnx"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            onnx.save(onnx.parser.parse_model(MODEL % weight), path)
        one = job(f"{name}{fields.pop('tag', '')}", **fields)
        return replace(one, source=str(path))

    return made


def plan(
    jobs: Sequence[Job], cache: LocalCache | None = None, journal: Journal | None = None, *, retries: bool = False
) -> list[Planned]:
    return Planner(cache, journal, FileDigests()).planned(jobs, retries_failed=retries)


def states(found: Sequence[Planned]) -> dict[str, str]:
    return {one.job.model: one.state for one in found}


def keep(cache: LocalCache, tmp_path: Path, one: Job, seconds: float = 1.0) -> Entry:
    """Puts a build of a job into the cache."""
    parts = Planner(cache, None, FileDigests())._parts(one)
    (tmp_path / "built").write_bytes(b"bundle of " + one.id.encode())
    blob = cache.add_file(tmp_path / "built")
    entry = Entry(parts, {"bundle": blob, "report": blob}, seconds)
    cache.add(entry, one.source)
    return entry


def test_what_takes_longest_begins_first_and_what_is_known_before_all(model, cache, journal, tmp_path) -> None:
    slow, quick, large, hit, there = (model(name, number) for number, name in enumerate("bcade"))
    with Path(large.source).open("ab") as file:
        file.truncate(40_000_000)
    for one, seconds in ((slow, 700.0), (quick, 9.0)):
        keep(cache, tmp_path, replace(one, given={"threads": 7}), seconds)
    keep(cache, tmp_path, hit)
    found = plan([quick, large, there, slow, hit], cache, journal)
    assert [(one.job.model, one.state) for one in found] == [
        ("d", HIT), ("b", BUILD), ("a", BUILD), ("c", BUILD), ("e", BUILD),
    ]  # fmt: skip
    assert [one.job.estimate for one in found[1:]] == [700.0, 80.0, 9.0, LEAST_SECONDS]


def test_equal_builds_are_one_and_the_others_come_after(model: Any) -> None:
    one, same, other = model("m"), model("m", folder="elsewhere", tag="2"), model("m", tag="3", given={"threads": 2})
    found = plan([one, same, other])
    assert states(found) == {"m": BUILD, "m2": AFTER, "m3": BUILD}
    assert found[-1].job.model == "m2"
    assert len({each.key for each in found}) == 2


def test_the_same_plan_for_the_same_jobs_in_any_order(model: Any, cache: LocalCache) -> None:
    jobs = [model(name, number) for number, name in enumerate("abcd")]
    assert plan(jobs, cache) == plan(jobs[::-1], cache)


def test_a_miss_names_what_differs_from_the_nearest_build(model: Any, cache: LocalCache, tmp_path: Path) -> None:
    keep(cache, tmp_path, model("m"))
    (found,) = plan([model("m", given={"threads": 2})], cache)
    assert (found.state, found.differs) == (BUILD, ("option:threads",))
    assert plan([model("n", 5)], cache)[0].differs is None


def test_a_build_whose_file_is_gone_is_no_hit(model: Any, cache: LocalCache, tmp_path: Path) -> None:
    one = model("m")
    entry = keep(cache, tmp_path, one)
    assert states(plan([one], cache)) == {"m": HIT}
    cache.place(entry.outputs["bundle"]).unlink()
    assert states(plan([one], cache)) == {"m": BUILD}


def test_what_the_journal_has_is_built_while_its_file_is_the_same(model: Any, journal: Journal, tmp_path: Path) -> None:
    output = tmp_path / "m.nnd"
    output.write_bytes(b"bundle")
    one = model("m", output=str(output))
    (first,) = plan([one])
    journal.finished(outcome("m", "host", key=first.key, job=one.id), output)
    (second,) = plan([one], None, journal)
    assert (second.state, second.known and second.known.job) == (BUILT, one.id)
    assert states(plan([model("m", given={"threads": 2}, output=str(output))], None, journal)) == {"m": BUILD}
    output.write_bytes(b"another bundle")
    assert states(plan([one], None, journal)) == {"m": BUILD}


def test_what_failed_is_known_until_it_is_asked_for_again(model: Any, journal: Journal, tmp_path: Path) -> None:
    one = model("m")
    (first,) = plan([one])
    journal.finished(outcome("m", "host", "failed", key=first.key, job=one.id), tmp_path / "m.nnd")
    assert states(plan([one], None, journal)) == {"m": FAILED}
    assert states(plan([one], None, journal, retries=True)) == {"m": BUILD}


def test_a_model_that_is_not_there_is_left_to_the_compile(model: Any) -> None:
    one = model("m")
    Path(one.source).unlink()
    found = plan([one, model("n")])
    assert {(each.job.model, each.state, bool(each.key)) for each in found} == {("m", BUILD, False), ("n", BUILD, True)}


def test_what_jobs_share_is_looked_at_once(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = planned.parts_of_options
    monkeypatch.setattr(planned, "parts_of_options", lambda *rest: read.append("") or real(*rest))
    jobs = [model(name, given={"threads": threads}, tag=str(threads)) for name in "abc" for threads in (1, 2)]
    assert len({one.key for one in plan(jobs)}) == 6
    assert len(read) == 2


def test_digests_are_not_read_again_while_their_file_is_the_same(model: Any, tmp_path: Path) -> None:
    one, kept = model("m"), tmp_path / "digests.json"
    (first,) = plan([one])
    found = Path(one.source).stat()
    facts = [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    kept.write_text(json.dumps({one.source: [facts, "cd" * 32, []]}))
    (second,) = Planner(None, None, FileDigests(kept)).planned([one], retries_failed=False)
    assert second.key != first.key, "the digest that is kept was used"
    facts[3] += 1
    kept.write_text(json.dumps({one.source: [facts, "cd" * 32, []]}))
    assert Planner(None, None, FileDigests(kept)).planned([one], retries_failed=False)[0].key == first.key

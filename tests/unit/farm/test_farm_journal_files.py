# SPDX-License-Identifier: Apache-2.0
"""The journal of a batch: what is known of jobs, whoever wrote it, and what a call that died left."""

from pathlib import Path

import pytest
from batch_examples import outcome

from nndeploy.errors import BusyError
from nndeploy.farm.journal import Journal
from nndeploy.farm.outcome import Outcome

KEY, OTHER = "ab" * 32, "cd" * 32


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "a.nnd").write_bytes(b"bundle")
    return tmp_path / "a.nnd"


def wrote(folder: Path, *outcomes: Outcome, output: Path, job: str = "", machine: str = "here") -> Path:
    with Journal(folder, job=job) as journal:
        journal.plan("ef" * 32, 1, {"machine:cpu": machine})
        for one in outcomes:
            journal.finished(one, output)
        return journal.path


def known(folder: Path, job: str, key: str = KEY) -> str:
    with Journal(folder, is_read=True) as journal:
        found = journal.known(job, key)
        return found.status if found is not None else ""


def test_what_calls_for_one_job_did_is_known_to_the_batch(tmp_path: Path, output: Path) -> None:
    first, second = outcome("a", key=KEY), outcome("b", status="failed", key=KEY)
    wrote(tmp_path / "j", first, output=output)
    wrote(tmp_path / "j", second, output=output, job=second.job, machine="there")
    with Journal(tmp_path / "j") as journal:
        assert journal.known(first.job, KEY) == first
        assert journal.known(first.job, OTHER) is None
        assert journal.is_untouched(first, output)
        assert list(journal.all_known(second.job)) == [(second, {"machine:cpu": "there"})]
        output.write_bytes(b"another")
        assert not journal.is_untouched(first, output)


@pytest.mark.parametrize("batch_is", ["failed", "ok"])
def test_of_two_files_the_one_is_believed_that_says_that_a_build_worked(tmp_path, output, batch_is) -> None:
    of_batch = outcome("a", status=batch_is, key=KEY)
    of_job = outcome("a", status="ok" if batch_is == "failed" else "failed", key=KEY)
    wrote(tmp_path, of_batch, output=output)
    wrote(tmp_path, of_job, output=output, job=of_job.job)
    assert known(tmp_path, of_job.job) == "ok"


def test_what_came_later_in_a_file_is_believed(tmp_path: Path, output: Path) -> None:
    wrote(tmp_path, outcome("a", key=KEY), outcome("a", status="failed", key=KEY), output=output)
    wrote(tmp_path, outcome("a", status="infra", key=KEY, final=False), output=output)
    assert known(tmp_path, outcome("a").job) == "failed"


def test_what_is_known_of_one_key_stays_when_another_is_built(tmp_path: Path, output: Path) -> None:
    wrote(tmp_path, outcome("a", key=KEY), outcome("a", status="failed", key=OTHER), output=output)
    job = outcome("a").job
    assert (known(tmp_path, job), known(tmp_path, job, OTHER)) == ("ok", "failed")


def test_calls_for_different_jobs_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with Journal(tmp_path), Journal(tmp_path, job="a/host"), Journal(tmp_path, job="b/host"):
        for job in ("", "a/host"):
            with pytest.raises(BusyError, match="another call"):
                Journal(tmp_path, job=job)


def test_a_fresh_journal_has_forgotten_the_calls_for_single_jobs(tmp_path: Path, output: Path) -> None:
    one = outcome("a", key=KEY)
    wrote(tmp_path, one, output=output)
    wrote(tmp_path, one, output=output, job=one.job)
    for is_read in (True, False):
        assert known(tmp_path, one.job) == "ok"
        with Journal(tmp_path, is_fresh=True, is_read=is_read) as journal:
            assert journal.known(one.job, KEY) is None
    assert known(tmp_path, one.job) == ""


@pytest.mark.parametrize("job", ["", "a/host/"])
def test_a_line_that_was_cut_off_counts_for_nothing(tmp_path: Path, output: Path, job: str) -> None:
    one, other = outcome("a", key=KEY), outcome("a", key=OTHER)
    path = wrote(tmp_path, one, output=output, job=job)
    whole = path.read_bytes()
    wrote(tmp_path, other, output=output, job=job)
    path.write_bytes(path.read_bytes()[:-9])
    assert (known(tmp_path, one.job), known(tmp_path, one.job, OTHER)) == ("ok", "")
    with Journal(tmp_path, job=job):
        assert path.read_bytes().startswith(whole)
        assert path.read_bytes().endswith(b"\n")

# SPDX-License-Identifier: Apache-2.0
"""A journal tells what was written to it, however the call that wrote it ended."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from batch_examples import outcome

from nndeploy.errors import BusyError, CannotCreateError, DataError, InputOutputError
from nndeploy.farm import journal as journal_module
from nndeploy.farm.journal import NAME, Journal
from nndeploy.farm.outcome import STATUSES, Outcome

KEY = "ab" * 32


def finish(folder: Path, *outcomes: Outcome) -> None:
    with Journal(folder) as journal:
        for one in outcomes:
            journal.write("started", job=one.job, number=one.tries)
            journal.finished(one, folder / f"{one.model}.nnd")


def known(folder: Path, *names: str) -> list[str]:
    """Returns what the next call knows of some jobs, "" where it knows nothing."""
    with Journal(folder) as journal:
        return [getattr(journal.known(f"{name}/host/", KEY), "status", "") for name in names]


def test_a_try_that_is_not_final_says_nothing(tmp_path: Path) -> None:
    finish(tmp_path, *(outcome("a", status=status, key=KEY, final=False) for status in STATUSES))
    assert known(tmp_path, "a") == [""]


def test_an_output_that_was_touched_or_is_gone_is_told(tmp_path: Path) -> None:
    output = tmp_path / "a.nnd"
    output.write_bytes(b"bundle")
    finish(tmp_path, outcome("a", key=KEY))
    journal = Journal(tmp_path, is_read=True)
    assert journal.is_untouched(outcome("a", key=KEY), output)
    os.utime(output, ns=(0, 0))
    assert not journal.is_untouched(outcome("a", key=KEY), output)
    output.unlink()
    assert not journal.is_untouched(outcome("a", key=KEY), output)
    assert not journal.is_untouched(outcome("b", key=KEY), output)
    finish(tmp_path, outcome("a", key=KEY))  # which was not there
    assert not Journal(tmp_path, is_read=True).is_untouched(outcome("a", key=KEY), output)


def test_cut_at_any_byte_no_row_that_was_whole_is_lost_and_none_is_made_up(tmp_path: Path) -> None:
    names = ("a", "b")
    finish(tmp_path, *(outcome(name, status="failed", key=KEY) for name in names))
    path = tmp_path / NAME
    data = path.read_bytes()
    ends = [at + 1 for at in range(len(data)) if data[at : at + 1] == b"\n"]
    for size in {*range(0, len(data), 11), *(end + by for end in ends for by in (-1, 0, 1))} - {len(data) + 1}:
        path.write_bytes(data[:size])
        whole = max((end for end in ends if end <= size), default=0)
        rows = [json.loads(line) for line in data[:whole].splitlines()]
        finished = {row["outcome"]["model"] for row in rows if row["row"] == "finished"}
        assert known(tmp_path, *names) == ["failed" if name in finished else "" for name in names], size
        assert path.read_bytes() == data[:whole], "what was cut off would run into the next row"


def test_a_disk_that_fills_up_half_way_through_a_row_leaves_no_half_of_it(tmp_path, monkeypatch) -> None:
    finish(tmp_path, outcome("a", key=KEY))
    real, left = os.write, [1]

    def write(descriptor: int, data: bytes) -> int:
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[: 10 * left.pop()])

    with Journal(tmp_path) as journal:
        monkeypatch.setattr(journal_module.os, "write", write)
        with pytest.raises(InputOutputError, match="No space left") as caught:
            journal.finished(outcome("b", key=KEY), tmp_path / "b.nnd")
        monkeypatch.undo()
        assert caught.value.where == str(tmp_path / NAME)
        assert journal.known("b/host/", KEY) is None
        journal.finished(outcome("c", key=KEY), tmp_path / "c.nnd")
    assert known(tmp_path, "a", "b", "c") == ["ok", "", "ok"]


def test_a_row_that_goes_out_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(journal_module.os, "write", lambda descriptor, data: real(descriptor, data[:7]))
    finish(tmp_path, outcome("a", key=KEY))
    monkeypatch.undo()
    assert known(tmp_path, "a") == ["ok"]


def test_a_disk_that_fails_and_a_folder_that_cannot_be_made_are_told(tmp_path: Path) -> None:
    (tmp_path / NAME).symlink_to("/dev/full")
    (tmp_path / "file").write_text("")
    for folder in (tmp_path, tmp_path / "file" / "journals"):
        with pytest.raises(CannotCreateError):
            Journal(folder)


def test_a_second_call_at_the_same_time_is_refused_and_may_read(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.finished(outcome("a", key=KEY), tmp_path / "a.nnd")
        with pytest.raises(BusyError) as caught:
            Journal(tmp_path)
        assert caught.value.exit_code == 75
        assert Journal(tmp_path, is_read=True).known("a/host/", KEY) is not None
    assert known(tmp_path, "a") == ["ok"]


def test_reading_makes_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path / "journals", is_read=True) as journal:
        assert journal.known("a/host/", KEY) is None
    assert list(tmp_path.iterdir()) == []


def test_rows_of_a_kind_that_is_not_known_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text('{"row": "worker-lost", "worker": "w1"}\n')
    finish(tmp_path, outcome("a", key=KEY))
    assert known(tmp_path, "a") == ["ok"]


@pytest.mark.parametrize(
    "line", ["no JSON", "[1]", "{}", '{"row": "finished"}', '{"row": "finished", "outcome": {"job": "a"}}', "\0" * 80]
)
@pytest.mark.parametrize("is_read", [False, True])
def test_what_is_no_journal_is_refused_by_the_line_and_left_as_it_is(tmp_path: Path, line: str, is_read: bool) -> None:
    finish(tmp_path, outcome("a", key=KEY))
    path = tmp_path / NAME
    data = path.read_bytes() + line.encode() + b"\n"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        Journal(tmp_path, is_read=is_read)
    assert f"{path}:3" in caught.value.where
    assert path.read_bytes() == data
    finish_fresh = Journal(tmp_path, is_fresh=True)
    finish_fresh.__exit__()


def test_rows_are_plain_lines(tmp_path: Path) -> None:
    finish(tmp_path, outcome("ü\n\u2028\udcff", key=KEY))
    rows: list[dict[str, Any]] = [json.loads(line) for line in (tmp_path / NAME).read_text("ascii").split("\n")[:-1]]
    assert [row["row"] for row in rows] == ["started", "finished"]

# SPDX-License-Identifier: Apache-2.0
"""Outputs that are resumed: a kill at any step, and at any step of the run after it, changes no byte of the result."""

import json
import os
import random
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nndeploy.errors import BusyError, DataError, InputError
from nndeploy.stream.items import Outcome
from nndeploy.stream.pipeline.pipeline_file import SinkTable
from nndeploy.stream.pipeline.pipeline_sinks import pipeline_sink
from nndeploy.stream.sinks import resume
from nndeploy.stream.sinks.resumable import GrowingFile
from nndeploy.stream.sinks.resume import Journal, ResumedSink

TABLES = (
    SinkTable("json-lines", "json-lines", ("text", "number"), {}),
    SinkTable("csv", "csv", ("text", "boxes"), {"each": ["boxes"]}),
    SinkTable("statistics", "statistics", ("text", "number"), {}),
    SinkTable("npz", "npz", ("boxes",), {}),
    SinkTable("images", "images", ("image",), {}),
)
NUM_RECORDS = 4
STEPS = ("fsync", "pwrite", "replace", "unlink", "ftruncate")
"""What changes the disk, of those that the operating system does at once; a write that is buffered is lost."""


@pytest.fixture(autouse=True)
def no_disk_is_waited_for(monkeypatch) -> None:
    """A kill loses nothing that was not synced; what a loss of power may take is known by the calls alone."""
    monkeypatch.setattr(os, "fsync", os.fstat)


class Killed(BaseException):
    """Stands for kill -9."""


def outcomes():
    """Texts of all kinds and sizes, of which some go past the buffers; numbers whose sum depends on the order."""
    dice = np.random.default_rng(7)
    for index in range(NUM_RECORDS):
        name = (index, f"in/{index}", f"{index}")
        if index == 2:
            yield Outcome(*name, None, InputError("bäd, \r\n worse"))
            continue
        fields = {
            "text": [f'a "quoted"\r\n{index % 2}', "ä\u2028", "x" * dice.integers(20_000)],
            "number": np.append(dice.normal(size=5) * 10.0 ** dice.integers(-9, 9, 5), [-0.0, np.nan]),
            "boxes": dice.integers(0, 9, (3, 4)),
            "image": np.full((3, 4, 3), index, np.uint8),
        }
        yield Outcome(*name, fields)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def records():
    return list(outcomes())


@pytest.fixture(scope="module")
def want(tmp_path_factory, records):
    """What a run gives that is not to be resumed."""
    folder = tmp_path_factory.mktemp("want")
    sink = pipeline_sink(TABLES, (), "p.toml", str(folder), sys.stdout)
    for outcome in records:
        sink.write(outcome)
    sink.finish()
    return contents(folder)


class Runs:
    """Runs that go on in a copy of the folder as it was when the one before was killed."""

    def __init__(self, folder, records, monkeypatch):
        folder.mkdir(exist_ok=True)
        self.folder = folder / "0"
        self.num_steps = 0  # of the last run
        self.num_kills = 0
        self.num_durable = 0  # records, as the last run found them
        self._records = records
        self._patch = monkeypatch

    def run(self, kill_at=None, dice=None) -> bool:
        """Returns whether the run came to its end before it was killed; with `dice` some checkpoints are left out."""
        with self._patch.context() as patch:
            self._count(patch, kill_at)
            clock = SimpleNamespace(monotonic=lambda: dice.choice((0.0, 9.0)) if dice else 9.0)
            patch.setattr(resume, "time", clock)
            patch.setattr(resume, "CHECKPOINT_SECONDS", 0.0)
            try:
                self._run()
            except Killed:
                return False
        return True

    def _count(self, patch, kill_at) -> None:
        self.num_steps = 0

        def counted(real):
            def step(*arguments, **settings):
                self.num_steps += 1
                if self.num_steps == kill_at:
                    if real is real_pwrite:
                        real(arguments[0], arguments[1][: len(arguments[1]) // 2], arguments[2])
                    self.num_kills += 1
                    after = self.folder.with_name(str(self.num_kills))
                    shutil.copytree(self.folder, after)
                    self.folder = after
                    raise Killed
                return real(*arguments, **settings)

            return step

        real_pwrite = os.pwrite
        for name in STEPS:
            patch.setattr(os, name, counted(getattr(os, name)))

    def _run(self) -> None:
        folder, resumables = self.folder, []
        path = resume.journal_path(folder, is_file=False)
        num_durable = self.num_durable if path.exists() else 0
        journal = Journal(path, {"inputs": "x"})
        self.num_durable = journal.progress.num_records
        assert self.num_durable >= num_durable
        sink = None
        try:
            sink = pipeline_sink(TABLES, (), "p.toml", str(folder), sys.stdout, resumables)
            resumed = ResumedSink(journal, resumables, sink)
            for outcome in self._records[journal.progress.num_records :]:
                resumed.write(outcome)
            resumed.finish()
        except BaseException:
            if sink is not None:
                sink.discard()
            journal.close()
            raise


@pytest.fixture
def runs(tmp_path, records, monkeypatch):
    return Runs(tmp_path, records, monkeypatch)


@pytest.mark.parametrize("long_journal_bytes", [1, pytest.param(resume.LONG_JOURNAL_BYTES, marks=pytest.mark.slow)])
def test_a_kill_at_any_step_changes_nothing(tmp_path, records, monkeypatch, want, long_journal_bytes) -> None:
    monkeypatch.setattr(resume, "LONG_JOURNAL_BYTES", long_journal_bytes)
    kill_at, ended = 0, False
    while not ended:
        kill_at += 1
        runs = Runs(tmp_path / str(kill_at), records, monkeypatch)
        ended = runs.run(kill_at)
        assert ended or runs.run()
        assert contents(runs.folder) == want
    assert kill_at > 50


@pytest.mark.parametrize("seed", range(12))
def test_kills_at_random_steps_change_nothing(runs, monkeypatch, want, seed) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret
    monkeypatch.setattr(resume, "LONG_JOURNAL_BYTES", 2000 * (seed % 4))
    while not runs.run(dice.randrange(2, 40), dice):
        pass
    assert contents(runs.folder) == want


@pytest.mark.slow
def test_two_kills_while_the_outputs_get_their_names_change_nothing(tmp_path, records, monkeypatch, want) -> None:
    counting = Runs(tmp_path / "all", records, monkeypatch)
    counting.run()
    for first in range(counting.num_steps - 12, counting.num_steps + 1):
        before = Runs(tmp_path / str(first), records, monkeypatch)
        before.run(first)
        second, ended = 0, False
        while not ended:
            second += 1
            runs = Runs(tmp_path / f"{first}-{second}", records, monkeypatch)
            shutil.copytree(before.folder, runs.folder)
            ended = runs.run(second)
            assert ended or runs.run()
            assert contents(runs.folder) == want


def test_what_gets_its_name_or_counts_as_done_is_on_the_disk(runs, monkeypatch, want) -> None:
    """A loss of power may take what was written and not forced."""
    forced, checked = {}, []

    def fsync(descriptor):
        status = os.fstat(descriptor)
        forced[status.st_ino] = status.st_size

    def replace(source, *arguments, real=os.replace, **settings):
        if str(source).endswith(".part"):
            status = Path(source).stat()
            checked.append(forced[status.st_ino] == status.st_size)
        real(source, *arguments, **settings)

    def pwrite(descriptor, text, *arguments, real=os.pwrite):
        states = json.loads(text.rpartition(b" ")[0]).get("sinks", [])
        for name, state in zip(("json-lines.jsonl", "csv.csv"), states, strict=False):
            checked.append(forced[(runs.folder / f"{name}.part").stat().st_ino] == state["bytes"])
        return real(descriptor, text, *arguments)

    for function in (fsync, replace, pwrite):
        monkeypatch.setattr(os, function.__name__, function)
    assert runs.run()
    assert len(checked) == 3 + 2 * (NUM_RECORDS + 1)
    assert all(checked)
    assert contents(runs.folder) == want


def test_the_name_of_a_new_folder_is_on_the_disk_before_anything_is_counted(tmp_path, monkeypatch) -> None:
    forced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: forced.append(os.fstat(descriptor).st_ino))
    journal = Journal(tmp_path / "y" / resume.FOLDER_JOURNAL, {"inputs": "x"})
    assert forced[0] == tmp_path.stat().st_ino
    journal.close()


def test_a_journal_is_on_the_disk_before_a_run_goes_on(tmp_path, monkeypatch) -> None:
    """Each line before it counts, one that replaces a long journal before it has the name, and then the name."""
    path, events, forced = tmp_path / "y.resume", [], {}

    def fsync(descriptor):
        status = os.fstat(descriptor)
        forced[status.st_ino] = status.st_size
        events.append(status.st_ino)

    def replace(source, target, real=os.replace):
        status = Path(source).stat()
        events.append(forced[status.st_ino] == status.st_size)
        real(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    journal = Journal(path, {"inputs": "x"})
    for long_bytes, count in ((1 << 20, 1), (1 << 20, 2), (0, 3)):
        monkeypatch.setattr(resume, "LONG_JOURNAL_BYTES", long_bytes)
        journal.write(resume.Progress(count), [])
        assert forced[path.stat().st_ino] == path.stat().st_size
    assert events[-2:] == [True, tmp_path.stat().st_ino]
    events.clear()
    journal.remove()
    assert events == [tmp_path.stat().st_ino]


def test_a_journal_stays_short_and_locked(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(resume, "LONG_JOURNAL_BYTES", 5000)
    path = tmp_path / "y.resume"
    (tmp_path / "y.resume.next").write_bytes(b"torn by a kill")
    journal = Journal(path, {"inputs": "x"})
    for count in range(200):
        journal.write(resume.Progress(count + 1), [{"texts": "a" * 500}])
        assert path.read_bytes().startswith(b'{"journal": 1')
        assert path.stat().st_size < 6000
        with pytest.raises(BusyError):
            Journal(path, {"inputs": "x"})
    journal.close()
    again = Journal(path, {"inputs": "x"})
    assert again.progress.num_records == 200
    again.remove()
    assert list(tmp_path.iterdir()) == []


def growing(path, state=None):
    file = GrowingFile(path, b"head\n")
    if state is not None:
        file.resume(state)
    return file


def test_a_file_that_grows_begins_once_and_keeps_what_is_durable(tmp_path) -> None:
    file = growing(tmp_path / "y", {})
    file.file.write(b"1\n")
    state = file.checkpoint()
    file.file.write(b"2\n")
    file.discard()
    assert contents(tmp_path) == {"y.part": b"head\n1\n2\n"}
    growing(tmp_path / "y", state).finish()
    assert contents(tmp_path) == {"y": b"head\n1\n"}


def test_a_file_that_lost_what_was_durable_is_not_gone_on_with(tmp_path) -> None:
    (tmp_path / "y").write_bytes(b"of an earlier run")
    for call in (GrowingFile.resume, GrowingFile.finish_again):
        file = growing(tmp_path / "y")
        with pytest.raises(DataError, match=r"y\.part: has 0 bytes, but 7 were written \(hint: remove its \.resume"):
            call(file, {"bytes": 7})
        file.discard()
        assert contents(tmp_path) == {"y": b"of an earlier run"}

# SPDX-License-Identifier: Apache-2.0
"""The file of tuned choices counts for its plan on its machine, and nowhere else; damaged, it counts nowhere."""

import json
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_models import Array, built, model_of, reals
from nndeploy_native import session as session_module
from nndeploy_native.plan_session import PlanSession
from nndeploy_native.probe import probe
from nndeploy_native.session import open_session
from nndeploy_native.step_choices import StepChoice, StepFacts
from nndeploy_native.tuned_tables import TunedFile, TunedTable, tables_from_data, tables_to_data
from nndeploy_native.tuning import Race, RaceOptions

from nndeploy.errors import DataError, InputOutputError
from nndeploy.plugin.interface import Artifact, OpenOptions
from nndeploy.target.target import host_target

TEXT = """g (float[1,16,40,40] x) => (float[n,o,p,q] y) {
  a = Conv(x, u) d = Conv<group=48, pads=[1,1,1,1]>(a, w) b = Relu(d) p = Conv(b, v) y = Conv(p, o) }"""
SHAPES = {"u": (48, 16, 1, 1), "w": (48, 1, 3, 3), "v": (16, 48, 1, 1), "o": (40, 16, 1, 1)}
INPUT = ((1, 16, 40, 40),)


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    if not (found := probe(host_target())).can_run:
        pytest.skip(found.reason)
    return built(model_of(TEXT, {name: reals(*shape, seed=1) for name, shape in SHAPES.items()}))


@pytest.fixture
def opened(artifact: Artifact, tmp_path: Path) -> Callable[..., PlanSession]:
    """A function that opens the artifact with a cache in a folder."""

    def opened(threads: int = 1, folder: Path | None = tmp_path) -> PlanSession:
        files = {name: memoryview(data) for name, data in artifact.files.items()}
        how = OpenOptions(threads=threads, cache_dir="" if folder is None else str(folder))
        found = open_session(files, artifact.metadata, how)
        assert isinstance(found, PlanSession)
        return found

    return opened


def replayed(session: PlanSession, folder: Path) -> Path:
    """Writes a table of choices for the session's plan and machine, and returns the file."""
    num_steps = len(session.steps_here({}))
    box = session_module._box("fp32", host_target(), 0, 1)
    choices = [StepChoice(buffer_bytes=1 << 14, cache_bytes=1 << 16)] * num_steps
    plan_sha256 = session._tuned_file.plan_sha256
    session.replay_tuning([tables_to_data(plan_sha256, [TunedTable(box, INPUT, tuple(choices), 2.0, 1.0)])])
    (path,) = folder.iterdir()
    return path


def windows(session: PlanSession) -> list[Any]:
    return [step.get("window", step.get("window_pixels")) for step in session.steps_here({"x": INPUT[0]})]


def output(session: PlanSession) -> Array:
    found = session.run({"x": reals(*INPUT[0])})["y"]
    assert isinstance(found, np.ndarray)
    return found


def test_choices_are_taken_when_the_plan_is_opened_again(opened: Callable[..., PlanSession], tmp_path: Path) -> None:
    with closing(opened()) as first:
        by_rule, bits = windows(first), output(first).tobytes()
        path = replayed(first, tmp_path)
        tuned = windows(first)
    with closing(opened()) as again:
        assert windows(again) == tuned != by_rule
        assert output(again).tobytes() == bits
        assert again.tuning_note == ""
    data = json.loads(path.read_text())
    assert data["format"] == 1
    assert data["tables"][0]["steps"]["0"] == {"cache_bytes": 1 << 16, "buffer_bytes": 1 << 14}


def test_other_threads_and_machines_go_by_the_rule(
    opened: Callable[..., PlanSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(opened()) as first:
        by_rule = windows(first)
        replayed(first, tmp_path)
    with closing(opened(threads=2)) as shared:
        assert shared.tuning_note
    monkeypatch.setattr(session_module, "cpu_name", lambda: "another processor")
    with closing(opened()) as elsewhere:
        assert windows(elsewhere) == by_rule
        assert elsewhere.tuning_note


def test_the_caches_are_part_of_the_machine(
    opened: Callable[..., PlanSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(opened()) as first:
        replayed(first, tmp_path)
    other = replace(host_target(), caches=(("l2", 1 << 18),))
    monkeypatch.setattr(session_module, "host_target", lambda: other)
    with closing(opened()) as elsewhere:
        assert elsewhere.tuning_note


@pytest.mark.parametrize(("field", "value"), [
    ("format", 2), ("plan_sha256", "0" * 64), ("tables", None), ("tables", [1]), ("tables", [{}]),
])  # fmt: skip
def test_a_file_of_another_plan_or_form_is_as_if_it_were_not_there(
    opened: Callable[..., PlanSession], tmp_path: Path, field: str, value: object
) -> None:
    with closing(opened()) as first:
        by_rule = windows(first)
        path = replayed(first, tmp_path)
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, field: value}))
    with closing(opened()) as again:
        assert windows(again) == by_rule
        assert again.tuning_note


def test_mutants_of_the_file_change_no_bit(opened: Callable[..., PlanSession], tmp_path: Path) -> None:
    with closing(opened()) as first:
        bits = output(first).tobytes()
        path = replayed(first, tmp_path)
    before, dice = path.read_bytes(), random.Random(0)  # noqa: S311 - no secret
    for _ in range(300):
        mutant = bytearray(before)
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(len(mutant))
            match dice.randrange(3):
                case 0:
                    mutant[at] = dice.randrange(256)
                case 1:
                    mutant[at:at] = dice.choice((b"9", b"-", b"[", b"null", b'"', b"e99"))
                case 2:
                    del mutant[at : at + dice.randint(1, 9)]
        path.write_bytes(mutant)
        with closing(opened()) as session:
            assert output(session).tobytes() == bits


def test_what_others_could_have_written_is_not_read(opened: Callable[..., PlanSession], tmp_path: Path) -> None:
    with closing(opened()) as first:
        by_rule = windows(first)
        path = replayed(first, tmp_path)
    path.chmod(0o666)
    with closing(opened()) as again:
        assert windows(again) == by_rule


def test_tables_of_other_machines_stay_in_the_file(opened: Callable[..., PlanSession], tmp_path: Path) -> None:
    with closing(opened()) as first:
        path = replayed(first, tmp_path)
        data = json.loads(path.read_text())
        data["tables"][0]["box"]["processor"] = "another"
        path.write_text(json.dumps(data))
        replayed(first, tmp_path)
        replayed(first, tmp_path)
    processors = [table["box"]["processor"] for table in json.loads(path.read_text())["tables"]]
    assert len(processors) == 2
    assert processors[0] == "another"


def test_tuning_finds_choices_or_none_and_changes_no_bit(opened: Callable[..., PlanSession], tmp_path: Path) -> None:
    for threads in (1, 2):
        with closing(opened(threads)) as session:
            bits = output(session).tobytes()
            session.begin_tuning(0.5)
            for _ in range(2000):
                assert output(session).tobytes() == bits
                if session.is_tuned:
                    break
            (found,) = session.end_tuning()
            assert output(session).tobytes() == bits
        (table,) = found["tables"]
        assert table["shapes"] == [list(shape) for shape in INPUT]
        assert 0 < table["tuned_us"] <= table["rule_us"]
    assert len(json.loads(next(tmp_path.iterdir()).read_text())["tables"]) == 2


def test_without_a_folder_nothing_is_measured(opened: Callable[..., PlanSession]) -> None:
    with closing(opened(folder=None)) as session, pytest.raises(InputOutputError):
        session.begin_tuning(1.0)


def test_decisions_of_another_plan_or_machine_are_refused(opened: Callable[..., PlanSession], tmp_path: Path) -> None:
    with closing(opened()) as session:
        data = json.loads(replayed(session, tmp_path).read_text())
        other = {**data, "tables": [{**data["tables"][0], "box": {}}]}
        for bad in ([], [{**data, "plan_sha256": "0"}], [other], [{**data, "tables": 1}], ["text"]):
            with pytest.raises(DataError):
                session.replay_tuning(bad)


def test_a_table_is_what_its_data_says() -> None:
    choices = (StepChoice(), StepChoice(chunks=3), StepChoice(stores=2, sharing=1)) * 5
    tables = [TunedTable({"threads": 2}, ((1, 2), ()), choices, 3.5, 2.0)]
    data = tables_to_data("a", tables)
    assert tables_from_data(json.loads(json.dumps(data)), "a", 15) == tables
    names = list(data["tables"][0]["steps"])
    assert names == sorted(names)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    tuned = TunedFile(str(tmp_path / "file"), b"plan", 1, dict)
    with pytest.raises(InputOutputError, match="file"):
        tuned.check_writable()
    assert tuned.read() == ({}, "")


def test_a_race_prefers_what_is_faster_and_ends_with_the_rule_where_nothing_is() -> None:
    """Of two steps of made-up times one is twice as fast with another buffer, and no choice helps the other."""
    for factor, wins in ((0.5, True), (1.0, False)):
        race = Race(_facts_of, 2, RaceOptions(60, 1, 1 << 20, 0))
        runs = 0
        while not race.is_done:
            first, _ = race.next_choices()
            runs += 1
            race.told([int(90_000 * (factor if first.buffer_bytes == 1 << 16 else 1.0)) + runs % 7, 50_000 + runs % 5])
        found = race.found()
        assert (found.choices[0].buffer_bytes == 1 << 16) == wins
        assert found.choices[1] == StepChoice()
        assert (found.tuned_us < found.rule_us) == wins


def test_what_seems_faster_by_the_noise_of_a_busy_machine_alone_is_hardly_ever_taken() -> None:
    """Steps of 1 ms whose times vary by a tenth: in 10 s an alternative that gains nothing often seems to gain."""
    assert sum(_wins(seed, 0.0) for seed in range(60)) <= 1
    assert all(_wins(seed, 0.3) for seed in range(20))


def _wins(seed: int, gain: float) -> bool:
    """Returns whether six steps are done otherwise, of which the first gains with a buffer of 64 KiB."""
    dice, clock = np.random.default_rng(seed), [0.0]
    race = Race(_facts_of, 6, RaceOptions(10, 1, 1 << 20, 0, lambda: clock[0]))
    while not race.is_done:
        first, *_ = race.next_choices()
        times = [1e6 * (1 + abs(dice.normal(0, 0.1))) for _ in range(6)]
        times[0] *= 1 - gain * (first.buffer_bytes == 1 << 16)
        clock[0] += 10 * sum(times) / 1e9  # the other nine parts are somebody else's
        race.told([int(one) for one in times])
    return any(one != StepChoice() for one in race.found().choices)


def _facts_of(choices: Sequence[StepChoice]) -> list[StepFacts]:
    return [StepFacts("separable", str(one), 64) for one in choices]

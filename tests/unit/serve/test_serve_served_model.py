# SPDX-License-Identifier: Apache-2.0
"""A model answers only once its goldens are right, and is replaced while it answers."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nndeploy.errors import CheckError, InputError, UnavailableError, UsageError
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.served_bundle import ServedBundle
from nndeploy.serve.served_model import ServedModel
from nndeploy.values.types import SequenceType, TensorType

ONE = {"x": np.ones((1, 3), np.float32)}


def triple(x: Any) -> dict[str, Any]:
    return {"y": x * np.float32(3)}


def sums(x: Any) -> dict[str, Any]:
    return {"y": np.cumsum(x, axis=0)}


def served_model(programs: dict[str, Any], options: ServeOptions, said: list[str]) -> ServedModel:
    """Returns a model that opens a program by the stem of its path."""

    def opened(path: Path) -> ServedBundle:
        return ServedBundle(programs[path.stem], "m", options, said.append)

    return ServedModel("m", options, opened, Counter())


@pytest.fixture
def model_of(fake_program) -> Iterator[Callable[..., tuple[ServedModel, list[str]]]]:
    made: list[ServedModel] = []

    def model(programs: dict[str, Any], **options: Any) -> tuple[ServedModel, list[str]]:
        said: list[str] = []
        made.append(served_model(programs, ServeOptions(**options), said))
        return made[-1], said

    yield model
    for one in made:
        one.close(5.0)


def test_it_is_not_ready_before_it_is_open(model_of, fake_program) -> None:
    model, _ = model_of({"a": fake_program()})
    assert not model.is_ready
    with pytest.raises(UnavailableError, match="not ready"):
        model.submit(dict(ONE))
    model.open(Path("a.nnd"), "7")
    assert (model.is_ready, model.version, model.served.inputs[0].shape) == (True, "7", (-1, 3))
    answer = model.submit(dict(ONE)).result(10)
    assert (answer.version, answer.outputs["y"].tolist()) == ("7", [[2, 2, 2]])


def test_wrong_goldens_answer_nobody(model_of, fake_program) -> None:
    program = fake_program(triple)
    model, _ = model_of({"a": program})
    with pytest.raises(CheckError, match="1 of 1 outputs"):
        model.open(Path("a.nnd"), "1")
    assert (model.is_ready, program.is_closed) == (False, True)


def test_without_goldens_it_is_served_only_where_that_is_said(model_of, fake_program) -> None:
    programs = {"a": fake_program(has_golden=False)}
    with pytest.raises(CheckError, match=r"no goldens.*--no-check"):
        model_of(programs)[0].open(Path("a.nnd"), "1")
    model, _ = model_of({"a": fake_program(has_golden=False)}, checks_goldens=False)
    model.open(Path("a.nnd"), "1")
    assert model.is_ready


def test_a_type_without_a_form_is_refused(model_of, fake_program) -> None:
    kinds = {"x": SequenceType(TensorType("float32", (1,)))}
    model, _ = model_of({"a": fake_program(inputs=kinds)})
    with pytest.raises(UsageError, match="has no form in the protocol"):
        model.open(Path("a.nnd"), "1")


def test_calls_go_over_to_the_new_one_and_none_is_lost(model_of, fake_program) -> None:
    programs = {name: fake_program() for name in "abcdef"}
    model, _ = model_of(programs, workers=3)
    model.open(Path("a.nnd"), "a")
    answers, failed, ends = set[str](), list[BaseException](), threading.Event()

    def ask() -> None:
        while not ends.is_set():
            try:
                answers.add(model.submit(dict(ONE)).result(10).version)
            except BaseException as err:
                failed.append(err)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for name in "bcdef":
        model.replace(Path(f"{name}.nnd"), name)
        assert model.submit(dict(ONE)).result(10).version == name
    ends.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [name for name, program in programs.items() if not program.is_closed] == ["f"]


def test_a_call_that_meets_what_was_just_closed_goes_to_the_new_one(fake_program) -> None:
    options = ServeOptions()
    new, said = ServedBundle(fake_program(), "m", options, print), list[str]()

    class Closed(ServedBundle):
        def run(self, records: Any) -> None:
            said.append("closed")
            model.replace(Path("new.nnd"), "new")
            super().run(records)

    model = ServedModel("m", options, lambda path: new if path.stem == "new" else old, Counter())
    old = Closed(fake_program(), "m", options, print)
    model.open(Path("old.nnd"), "old")
    assert model.submit(dict(ONE)).result(10).version == "new"
    assert said == ["closed"]
    model.close(5.0)


def test_a_new_one_that_is_wrong_leaves_the_old_one(model_of, fake_program) -> None:
    other = {"y": TensorType("float32", ("N", None))}
    programs = {"a": fake_program(), "wrong": fake_program(triple), "other": fake_program(outputs=other)}
    model, _ = model_of(programs, checks_goldens=True)
    model.open(Path("a.nnd"), "a")
    with pytest.raises(CheckError):
        model.replace(Path("wrong.nnd"), "b")
    with pytest.raises(UsageError, match="other inputs or outputs"):
        model.replace(Path("other.nnd"), "b")
    assert model.submit(dict(ONE)).result(10).version == "a"
    assert [programs[name].is_closed for name in ("a", "wrong", "other")] == [False, True, True]


def test_requests_that_wait_are_one_call(model_of, fake_program, until) -> None:
    gate = threading.Event()

    def slow(x: Any) -> dict[str, Any]:
        gate.wait()
        return {"y": x * np.float32(2)}

    program = fake_program(slow)
    model, _ = model_of({"a": program}, batch=8, checks_goldens=False)
    model.open(Path("a.nnd"), "1")
    first = model.submit(dict(ONE))
    until(lambda: program.sizes == [1])
    others = [model.submit({"x": np.full((i, 3), i, np.float32)}) for i in (1, 2, 3)]
    bad = model.submit({"x": np.ones((1, 4), np.float32)})
    gate.set()
    assert first.result(10).outputs["y"].tolist() == [[2, 2, 2]]
    for i, one in enumerate(others, 1):
        assert one.result(10).outputs["y"].tolist() == [[2 * i] * 3] * i
    with pytest.raises(InputError, match="axis 1 is 4 instead of 3"):
        bad.result(10)
    assert 6 in program.sizes  # the three, together


def test_a_model_whose_rows_touch_each_other_is_run_request_by_request(model_of, fake_program, until) -> None:
    gate = threading.Event()

    def slow_sums(x: Any) -> dict[str, Any]:
        gate.wait()
        return sums(x)

    program = fake_program(slow_sums)
    model, said = model_of({"a": program}, batch=8, checks_goldens=False)
    model.open(Path("a.nnd"), "1")
    model.submit(dict(ONE))
    until(lambda: program.sizes == [1])
    calls = [model.submit({"x": np.full((2, 3), i, np.float32)}) for i in (1, 2)]
    gate.set()
    assert [call.result(10).outputs["y"][:, 0].tolist() for call in calls] == [[1, 2], [2, 4]]
    gate.clear()
    calls = [model.submit({"x": np.full((2, 3), i, np.float32)}) for i in (3, 4, 5)]
    gate.set()
    assert [call.result(10).outputs["y"][:, 0].tolist() for call in calls] == [[3, 6], [4, 8], [5, 10]]
    assert len(said) == 1
    assert "runs request by request" in said[0]


def test_a_model_that_takes_no_batches_never_lets_calls_wait_for_each_other(model_of, fake_program) -> None:
    one_row = TensorType("float32", (1, 3))
    program = fake_program(inputs={"x": one_row}, outputs={"y": one_row}, has_golden=False)
    scalar = fake_program(outputs={"y": TensorType("float32", ())}, has_golden=False)
    for served in (program, scalar):
        model, said = model_of({"a": served}, batch=8, checks_goldens=False)
        model.open(Path("a.nnd"), "1")
        assert (model.queue.batch, len(said)) == (1, 1)
        assert "runs request by request" in said[0]


def test_closing_while_it_hangs_leaves_the_program_open(model_of, fake_program, until) -> None:
    gate = threading.Event()

    def hangs(x: Any) -> dict[str, Any]:
        gate.wait()
        return {"y": x}

    program = fake_program(hangs)
    model, _ = model_of({"a": program}, checks_goldens=False)
    model.open(Path("a.nnd"), "1")
    call = model.submit(dict(ONE))
    until(lambda: program.sizes == [1])
    assert not model.close(0.02)
    assert (program.is_closed, model.is_ready) == (False, False)
    gate.set()
    call.result(10)

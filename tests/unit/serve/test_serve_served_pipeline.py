# SPDX-License-Identifier: Apache-2.0
"""A pipeline behind the service: what it takes and gives, each record to its own request, and what ends it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from nndeploy.errors import CheckError, InputError, UsageError
from nndeploy.pacing.run.protocol import NOT_PACED
from nndeploy.serve.datatypes import Tensor
from nndeploy.serve.open_served import open_served
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.served_pipeline import ServedPipeline
from nndeploy.stream.pipeline.checked_plan import checked_plan
from nndeploy.stream.pipeline.pipeline_file import pipeline_from_toml
from nndeploy.stream.records import Record
from nndeploy.stream.run.loaded import Loaded

DOUBLES = """
[source]
kind = "{kind}"
{source}

[[level]]
[[level.pipeline]]
name = "first"
model = "m.nnd"
{more}
"""


@pytest.fixture
def served(fake_program) -> Iterator[Callable[..., ServedPipeline]]:
    made: list[ServedPipeline] = []

    def serve(program: Any = None, kind: str = "json-lines", more: str = "", source: str = "") -> ServedPipeline:
        program = program or fake_program()
        file = pipeline_from_toml(
            DOUBLES.format(kind=kind, more=more, source=source).encode(), "p.toml", lambda name: b""
        )
        plan, types = checked_plan(file, {"first": program.manifest})
        stack = ExitStack()
        stack.callback(program.close)
        made.append(ServedPipeline(Loaded(plan, {"first": [program]}, file, types), stack))
        return made[-1]

    yield serve
    for one in made:
        one.close()


def record(*numbers: float) -> Record:
    return Record(0, "", "", fields={"x": np.array([numbers], np.float32)})


def text(record: Record, name: str = "y") -> Any:
    assert record.error is None, record.error
    assert record.made[name].shape == (1,)
    return json.loads(record.made[name][0])


def test_each_record_gets_its_own_outputs_as_json(served) -> None:
    pipeline = served(more="batch = 4")
    assert pipeline.inputs == (Tensor("x", "FP32", (-1, 3)),)
    assert pipeline.outputs == (Tensor("y", "BYTES", (1,)),)
    records = [record(i, 0, 1) for i in range(20)]
    threads = [threading.Thread(target=pipeline.run, args=([one],)) for one in records]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [text(one) for one in records] == [[[2 * i, 0, 2]] for i in range(20)]


@pytest.mark.parametrize(("fields", "reason"), [
    ({}, "input 'x' is missing"),
    ({"z": np.ones(1)}, "no input is named 'z'"),
    ({"x": np.ones((1, 4), np.float32)}, "axis 1 is 4 instead of 3"),
])  # fmt: skip
def test_a_record_that_does_not_fit_fails_alone(served, fields, reason) -> None:
    bad, good = Record(0, "", "", fields=fields), record(1, 2, 3)
    served().run([bad, good])
    assert isinstance(bad.error, InputError)
    assert reason in str(bad.error)
    assert text(good) == [[2, 4, 6]]


def test_lines_are_texts(served, fake_program) -> None:
    step = '{ use = "constant", value = [[1.0, 2.0, 3.0]], out = ["x"] }'
    pipeline = served(kind="lines", more=f"[[level.pipeline.loader]]\nsteps = [{step}]")
    assert pipeline.inputs == (Tensor("text", "BYTES", (1,)),)
    good, bad = (Record(0, "", "", fields={"text": np.array([one], object)}) for one in (b"a", b"\xff"))
    pipeline.run([good, bad])
    assert text(good) == [[2, 4, 6]]
    assert "input 'text' is not UTF-8" in str(bad.error)


def test_a_session_is_named_by_a_text_and_goes_on_from_request_to_request(served, fake_program) -> None:
    def adds(x: Any, before: Any) -> dict[str, Any]:
        return {"y": x + before, "after": x + before}

    kind = fake_program().inputs[0].type
    program = fake_program(adds, {"x": kind, "before": kind}, {"y": kind, "after": kind})
    session = 'session = "who"\ncarry = { after = "before" }\noutputs = { y = "y" }'
    pipeline = served(program, more=session, source='fields = ["who", "x"]')
    assert pipeline.inputs == (Tensor("who", "BYTES", (1,)), Tensor("x", "FP32", (-1, 3)))

    def asked(who: bytes, number: float) -> Record:
        one = record(number, 0, 0)
        one.fields["who"] = np.array([who], object)
        pipeline.run([one])
        return one

    assert [text(asked(who, x))[0][0] for who, x in ((b"a", 1), (b"b", 10), (b"a", 2), (b"b", 20))] == [1, 10, 3, 30]
    assert "input 'who' is not UTF-8" in str(asked(b"\xff", 1).error)


ROUTED = """
[[level]]
not-taken = "{not_taken}"
[[level.pipeline]]
name = "large"
runners = 0
when = "max(y) > 10"
[[level.pipeline.post]]
steps = [{{ use = "constant", value = 1, out = ["large"] }}]
[[sink]]
kind = "json-lines"
fields = ["y", "large"]
"""


def test_a_record_that_no_pipeline_takes_is_refused_or_lacks_what_it_would_have_got(served) -> None:
    small, large = record(1, 2, 3), record(4, 5, 6)
    served(more=ROUTED.format(not_taken="end")).run([small, large])
    assert str(small.error) == "no pipeline of level 2 takes it"
    assert (text(large), text(large, "large")) == ([[8, 10, 12]], 1)
    small = record(1, 2, 3)
    served(more=ROUTED.format(not_taken="pass")).run([small])
    assert (text(small), text(small, "large")) == ([[2, 4, 6]], None)


def test_a_field_of_json_lines_that_goes_into_no_model_is_a_text_of_json(served) -> None:
    pipeline = served(source='fields = ["who", "x"]', more='[[sink]]\nkind = "json-lines"\nfields = ["who"]')
    assert pipeline.inputs == (Tensor("who", "BYTES", (1,)), Tensor("x", "FP32", (-1, 3)))

    def asked(who: bytes) -> Record:
        one = record(1, 2, 3)
        one.fields["who"] = np.array([who], object)
        pipeline.run([one])
        return one

    assert text(asked(b'[{"a": 1}]'), "who") == [{"a": 1}]
    for wrong in (b"a", b"\xff", b'{"a": 1, "a": 2}', b"NaN"):
        assert isinstance(asked(wrong).error, InputError)


def test_a_field_of_arrays_that_goes_nowhere_cannot_be_served(served) -> None:
    with pytest.raises(UsageError, match="the field 'who' goes into no model, so it has no type"):
        served(kind="arrays", source='fields = ["who", "x"]')


def test_a_stream_that_fails_tells_all_and_is_no_longer_sound(served, fake_program) -> None:
    def fails(x: Any) -> dict[str, Any]:
        raise ZeroDivisionError("a bug")

    pipeline = served(fake_program(fails))
    assert pipeline.is_sound
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="a bug"):
            pipeline.run([record(1, 2, 3)])
    assert not pipeline.is_sound


def test_closing_ends_what_is_on_its_way_and_takes_no_more(served, fake_program, until) -> None:
    gate, began = threading.Event(), threading.Event()

    def slow(x: Any) -> dict[str, Any]:
        began.set()
        gate.wait()
        return {"y": x}

    program = fake_program(slow)
    pipeline, one = served(program), record(1, 2, 3)
    running = threading.Thread(target=pipeline.run, args=([one],))
    running.start()
    assert began.wait(10)
    closing = threading.Thread(target=pipeline.close)
    closing.start()
    until(lambda: pipeline._is_closed)
    with pytest.raises(UsageError, match="is closed"):
        pipeline.run([record(1, 2, 3)])
    gate.set()
    running.join()
    closing.join()
    assert text(one) == [[1, 2, 3]]
    assert program.is_closed


def test_its_bundles_are_checked_before_it_answers(fake_program, tmp_path) -> None:
    (tmp_path / "p.toml").write_text(DOUBLES.format(kind="json-lines", more="", source=""))
    (tmp_path / "m.nnd").touch()
    wrong = fake_program(lambda x: {"y": x})
    wrong.pacing = NOT_PACED

    class Closing:
        """A program as `load_bundle` gives it, which a stack closes."""

        def __getattr__(self, name: str) -> Any:
            return getattr(wrong, name)

        def __enter__(self) -> Any:
            return wrong

        def __exit__(self, *_: object) -> None:
            wrong.close()

    def opened(options: ServeOptions) -> Any:
        return open_served("p", tmp_path / "p.toml", options, lambda *_, **__: Closing(), lambda _: None)

    with pytest.raises(CheckError, match="goldens"):
        opened(ServeOptions())
    assert wrong.is_closed
    with pytest.raises(UsageError, match=r"--batch is for a bundle alone \(hint: write batch = N into the pipeline\)"):
        opened(ServeOptions(batch=2))

# SPDX-License-Identifier: Apache-2.0
"""Pipelines in TOML: what they mean, and one line for everything that is wrong, before anything runs."""

import random
from dataclasses import dataclass

import pytest
from streaming import Make, Program, stream

from nndeploy.errors import DataError, NndeployError
from nndeploy.stream.pipeline.pipeline_file import pipeline_from_toml, plan_of_file
from nndeploy.values.types import TensorType


@dataclass(frozen=True)
class Named(Make):
    name: str = ""


def make_step(table, where, read_file):
    """Steps for tests: `{ use = "label", in = [...], out = [...] }` puts its name around what it takes."""
    use = table.get("use")
    if use != "label":
        raise DataError(f"no processor is called {use!r}", where=where)
    takes, gives = tuple(table.get("in", ["x"])), tuple(table.get("out", ["x"]))
    return Named(takes, gives, lambda *values: (gives[0], *values), use)


def read(text, read_file=lambda name: b""):
    return pipeline_from_toml(text.encode(), "p.toml", read_file, make_step)


MANIFEST = Program(dict).manifest
TWO_INPUTS = Program(dict, {"a": TensorType("float32", None), "b": TensorType("float32", None)}).manifest


def plan_from(text, source=("x",), **manifests):
    file = read(text)
    names = [one.name for one in file.pipelines if one.runner is not None]
    return plan_of_file(file, {name: manifests.get(name, MANIFEST) for name in names}, {"": source})


WHOLE = """
in-flight = 9
[source]
kind = "json-lines"
fields = ["x"]
[[level]]
  [[level.pipeline]]
  name = "a"
  model = "a.nnd"
  devices = ["cpu", "cuda:0"]
  runners = 2
  batch = 4
  batch-delay-ms = 1.5
  outputs = { y = "ya" }
    [[level.pipeline.loader]]
    workers = 2
    steps = [{ use = "label" }]
    [[level.pipeline.post]]
    steps = [{ use = "label", in = ["ya"], out = ["za"] }]
  [[level.pipeline]]
  name = "b"
  copies = 3
  inputs = { x = "l" }
  outputs = { y = "yb" }
    [[level.pipeline.loader]]
    workers = 2
    steps = [{ use = "label", out = ["l"] }]
    [[level.pipeline.loader]]
    steps = [{ use = "label", out = ["m"] }]
[[level]]
  [[level.pipeline]]
  name = "c"
  runners = 0
    [[level.pipeline.post]]
    steps = [{ use = "label", in = ["za", "yb"], out = ["end"] }]
[[sink]]
kind = "json-lines"
"""


def test_every_key_means_what_it_says() -> None:
    file = read(WHOLE)
    (a, b), (c,) = file.levels
    assert (file.in_flight, file.sources[0].kind, file.sources[0].fields) == (9, "json-lines", ("x",))
    assert a.runner.devices == ("cpu", "cuda:0") * 2
    assert (a.runner.model, a.runner.batch, a.runner.batch_delay_ns) == ("a.nnd", 4, 1_500_000)
    assert (a.loaders[0].workers, b.loaders[0].workers, b.loaders[1].workers) == (2, 6, 3)
    assert len(b.runner.devices) == 3
    assert c.runner is None


def test_a_plan_runs_as_it_is_written() -> None:
    plan = plan_from(WHOLE.replace("batch = 4", "").replace("batch-delay-ms = 1.5", ""))
    assert plan.fields == ("end",)
    programs = {"a": [Program(lambda x: {"y": ("A", x)})] * 4, "b": [Program(lambda x: {"y": ("B", x)})] * 3}
    sink, _ = stream(plan, programs, [1, 2, 3])
    assert [one.outputs["end"] for one in sink.outcomes] == [
        ("end", ("za", ("A", ("x", i))), ("B", ("l", i))) for i in (1, 2, 3)
    ]


def test_fields_end_where_nobody_needs_them() -> None:
    (a, b), (c,) = plan_from(WHOLE).levels
    assert a.keep == b.keep == ("end", "yb", "za")
    assert c.keep == ("end",)


LOADER = "[[level.pipeline.loader]]\n"
TWO = "[[level]]\n[[level.pipeline]]\nname = 'a'\n[[level.pipeline]]\nname = 'b'"
ONE = '[[level]]\n[[level.pipeline]]\n[[level.pipeline.loader]]\nsteps = [{ use = "label" }]\n'


def with_key(key):
    return ONE.replace("pipeline]]", f"pipeline]]\n{key}", 1)


@pytest.mark.parametrize(("text", "message"), [
    ("", "p.toml: has no level"),
    ("[[level", "p.toml: is not TOML: "),
    (ONE + "[[level.pipeline.laoder]]", "pipeline: unknown key 'laoder' (hint: did you mean 'loader'?)"),
    ("in-fligth = 3\n" + ONE, "p.toml: unknown key 'in-fligth' (hint: did you mean 'in-flight'?)"),
    ("in-flight = 0\n" + ONE, "in-flight must be 1 to 65536, is 0"),
    ("in-flight = true\n" + ONE, "in-flight must be a whole number, is True"),
    ("level = 3", "level must be a list of tables, is 3 (hint: each begins with [[level]])"),
    ("[[level]]", "p.toml: level: has no pipeline"),
    ("[[level]]\n[[level.pipeline]]\nrunners = 0", "level: pipeline: does nothing"),
    ("[[level]]\n[[level.pipeline]]\nrunners = 0\nbatch = 2", "batch needs a runner, and runners is 0"),
    ("[[level]]\n[[level.pipeline]]\nbatch = 5000", "batch must be 1 to 4096, is 5000"),
    ("[[level]]\n[[level.pipeline]]\nbatch-delay-ms = 'a'", "batch-delay-ms must be a number, is 'a'"),
    ("[[level]]\n[[level.pipeline]]\ninputs = { x = 1 }", "inputs must be a table of texts"),
    ("[[level]]\n[[level.pipeline]]\neach = 'a'", "each and part go together"),
    ("[[level]]\n[[level.pipeline]]\ndevices = ['cpu', 'cpu']", "devices lists something twice"),
    ("[[level]]\n[[level.pipeline]]\nname = 'a'\n[[level.pipeline]]\nname = 'a'", "two pipelines are called 'a'"),
    (ONE.replace("label", "lable"), "pipeline: loader: step: no processor is called 'lable'"),
    (ONE.replace('[{ use = "label" }]', "[]"), "loader: has no steps"),
    (ONE + "[[level.pipeline.loader]]\nworkers = -1", "loader 2: workers must be 1 to 256, is -1"),
    (ONE + "[[sink]]", 'p.toml: sink: needs kind = "..."'),
    (ONE + "[[sink]]\nkind = 'npz'\nname = '../x'", "sink: name must be a plain file name, is '../x'"),
    (ONE + "[[sink]]\nkind = 'npz'\n[[sink]]\nkind = 'npz'", "two sinks are called 'npz'"),
    (ONE + "#" + "x" * (1 << 20), "more than 1048576"),
    (ONE.replace("}", ', in = ["X"] }'), "loader, step 'label': nothing before it gives the field 'X' (hint: did"),
    (
        ONE.replace("}", ', out = ["q"] }') + LOADER + "steps = [{ use = 'label', in = ['q'], out = ['r'] }]",
        "loader 2, step 'label': nothing before it gives the field 'q'"
    ),
    (ONE + LOADER + "steps = [{ use = 'label' }]", "the field 'x' is given by 1 and by 2, which work beside"),
    (with_key("inputs = { x = 'photo' }"), "input 'x': nothing before it gives the field 'photo'"),
    (with_key("inputs = { z = 'x' }"), "the model has no input 'z'"),
    (with_key("outputs = { z = 'x' }"), "the model has no output 'z' (hint: known: 'y')"),
    (with_key("carry = { y = 'x' }"), "carry needs each"),
    (with_key("each = 'xs'\npart = 'x'"), "each: nothing before it gives the field 'xs' (hint: known: 'x')"),
    (ONE + "[[sink]]\nkind = 'npz'\nfields = ['z']", "p.toml: sink 'npz': nothing gives the field 'z'"),
    (TWO, "level 1: the field 'y' is given by 'a' and 'b', which work beside each other"),
    ("[[level]]\n[[level.pipeline]]\nname = 'two'", "input 'a': nothing before it gives the field 'a'"),
])  # fmt: skip
def test_what_is_wrong_is_one_line_before_anything_runs(text, message) -> None:
    with pytest.raises(DataError) as caught:
        plan_from(text, two=TWO_INPUTS)
    assert message in str(caught.value)
    assert str(caught.value).startswith("p.toml: ")


def test_an_image_that_two_pipelines_resize_for_themselves_is_no_conflict() -> None:
    one = "[[level.pipeline]]\nname = 'N'\noutputs = { y = 'yN' }\n" + LOADER + "steps = [{ use = 'label' }]\n"
    plan = plan_from("[[level]]\n" + one.replace("N", "a") + one.replace("N", "b"))
    sink, _ = stream(plan, {name: Program(lambda x, name=name: {"y": (name, x)}) for name in "ab"}, [5])
    assert sink.outcomes[0].outputs == {"ya": ("a", ("x", 5)), "yb": ("b", ("x", 5))}


def test_any_change_of_a_file_is_read_or_one_error() -> None:
    dice = random.Random(5)  # noqa: S311 - no secret
    for _ in range(400):
        data = bytearray(WHOLE.encode())
        for _ in range(dice.randint(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        message = ""
        try:
            file = pipeline_from_toml(bytes(data), "p.toml", lambda name: b"", make_step)
            plan_of_file(
                file, {one.name: MANIFEST for one in file.pipelines}, {one.name: ("x",) for one in file.sources}
            )
        except NndeployError as err:
            message = str(err)
        assert "\n" not in message

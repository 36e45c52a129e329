# SPDX-License-Identifier: Apache-2.0
"""Which sizes a pipeline always makes of its model's inputs, as it is read from TOML."""

import pytest

from nndeploy.errors import DataError
from nndeploy.stream.pipeline.input_shapes import InputNames, input_shapes
from nndeploy.stream.pipeline.pipeline_file import pipeline_from_toml

STEPS = """[[level.pipeline.loader]]
steps = [
    { use = "decode" },
    { use = "letterbox", width = 32, height = 16, out = ["small", "transform"] },
    { use = "normalise", in = ["small"] },
    { use = "layout" },
]
"""
SMALLER = STEPS.replace("width = 32", "width = 24")
CUT = """[[level.pipeline.loader]]
steps = [{ use = "windows", size = 6, context = 2, batch = true }]
"""
DONE = '[[level.pipeline.post]]\nsteps = [{ use = "constant", value = 1, out = ["done"] }]\n'
ROUND = """[[level.pipeline.loader]]
steps = [{ use = "constant", value = [[[1, 2], [3, 4]]], out = ["tensor"] }]
[level.pipeline.loop]
steps = [{ use = "constant", value = [[[1, 2]]], out = ["tensor"] }, { use = "constant", value = 1, out = ["end"] }]
"""
NAMES = InputNames(("tensor",), frozenset(), ("scores",))


def pipeline(steps: str = "", *, runs: bool = True, head: str = "") -> str:
    return f"[[level.pipeline]]\n{'' if runs else 'runners = 0'}\n{head}\n{steps}"


def level(*pipelines: str, how: str = "") -> str:
    return f"[[level]]\n{how}\n{''.join(pipelines)}"


def found(*levels: str, names: InputNames = NAMES) -> dict:
    data = ('[source]\nkind = "images"\n' + "".join(levels)).encode()
    return input_shapes(pipeline_from_toml(data, "p.toml", lambda name: b""), names)


WHEN = 'when = "has(data)"'
MADE = pipeline(STEPS, runs=False)


@pytest.mark.parametrize(("levels", "sizes"), [
    ([level(pipeline(STEPS))], (1, 3, 16, 32)),
    ([level(pipeline(STEPS, head="batch = 4"))], (None, 3, 16, 32)),
    ([level(pipeline(STEPS, head='inputs = { tensor = "small" }'))], (16, 32, 3)),
    ([level(pipeline(STEPS, head='inputs = { tensor = "data" }'))], None),
    ([level(pipeline(STEPS, head='carry = { scores = "state" }'))], None),
    ([level(pipeline(STEPS, head='outputs = { scores = "tensor" }'))], (1, 3, 16, 32)),
    ([level(pipeline(STEPS.replace('"decode" }', '"decode" },\n{ use = "pad", in = ["x"], out = ["small"] }')))],
     (1, 3, 16, 32)),
    ([level(pipeline(STEPS.replace('in = ["small"]', 'in = ["x"]')))], (1, None, None, None)),
    ([level(pipeline(ROUND))], (None, None, 2)),
    # two pipelines with the model
    ([level(pipeline(STEPS), pipeline(SMALLER))], (1, 3, 16, None)),
    ([level(pipeline(STEPS), pipeline(head='inputs = { tensor = "x" }'))], None),
    ([level(pipeline(STEPS), pipeline(SMALLER, head='model = "other.nnd"'))], (1, 3, 16, 32)),
    # levels before
    ([level(MADE), level(pipeline())], (1, 3, 16, 32)),
    ([level(pipeline(STEPS, runs=False, head=WHEN), how='not-taken = "pass"'), level(pipeline())], None),
    ([level(MADE), level(pipeline(SMALLER, runs=False, head=WHEN), how='not-taken = "pass"'), level(pipeline())],
     (1, 3, 16, None)),
    ([level(pipeline(STEPS, runs=False, head=WHEN), pipeline(SMALLER, runs=False), how='queue = "switch"'),
      level(pipeline())], None),
    ([level(MADE), level(pipeline(head='model = "other.nnd"')), level(pipeline())], None),
    ([level(MADE), level(pipeline(DONE, head='name = "again"')),
      level(pipeline(SMALLER, runs=False), how='back-to = "again"\nuntil = "done"')], None),
    # parts
    ([level(pipeline(CUT, runs=False)), level(pipeline(head='each = "windows"\npart = "tensor"'))], (1, 8)),
    ([level(pipeline(STEPS, runs=False, head='each = "images"\npart = "data"')),
      level(pipeline(head='each = "tensor"\npart = "one"\ninputs = { tensor = "one" }'))], (1, 3, 16, 32)),
    ([level(pipeline(STEPS, runs=False, head='each = "images"\npart = "data"')), level(pipeline())], None),
])  # fmt: skip
def test_sizes_are_those_of_every_call(levels, sizes) -> None:
    assert found(*levels) == ({} if sizes is None else {"tensor": sizes})


def test_an_input_that_may_be_left_out_is_filled_by_name_alone() -> None:
    names = InputNames(("tensor", "scale"), frozenset({"scale"}), ("scores",))
    two = '[[level.pipeline.loader]]\nsteps = [{ use = "constant", value = [1, 2], out = ["scale"] }]\n'
    assert found(level(pipeline(STEPS + two)), names=names) == {"tensor": (1, 3, 16, 32)}
    both = pipeline(STEPS + two, head='inputs = { scale = "scale" }')
    assert found(level(both), names=names) == {"tensor": (1, 3, 16, 32), "scale": (2,)}


def test_a_pattern_that_fits_no_name_is_told_with_its_place() -> None:
    with pytest.raises(DataError, match="no input of the model has such a name") as caught:
        found(level(pipeline(STEPS, head='inputs = { "b.*" = "a.*" }')))
    assert caught.value.where.startswith("p.toml: level 1")

# SPDX-License-Identifier: Apache-2.0
"""Bodies of HTTP: what is a request, what is none, and that an answer says what was computed."""

import json
import random
from typing import Any

import numpy as np
import pytest
from byte_mutants import KINDS, mutant

from nndeploy.errors import InputError
from nndeploy.serve.infer_request import Answer
from nndeploy.serve.json_form import body_from_answer, request_from_body

ONE = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}
BINARY = {"name": "y", "shape": [2], "datatype": "INT16", "parameters": {"binary_data_size": 4}}


def body(**found: Any) -> bytes:
    return json.dumps({"inputs": [ONE]} | found).encode()


def test_a_request_in_json() -> None:
    asked = request_from_body(body(id="7", outputs=[{"name": "z"}], parameters={"timeout": 2000}), None)
    assert (asked.request.id, asked.request.outputs, asked.request.timeout_ns) == ("7", ("z",), 2_000_000)
    assert asked.request.inputs["x"].tolist() == [[1.0, 2.0]]
    assert not asked.is_binary


def test_the_same_json_with_other_bytes_is_another_request() -> None:
    head = body(inputs=[BINARY])
    first, other = (request_from_body(head + raw, len(head)).request.inputs["y"] for raw in (b"\1\0\2\0", b"\3\0\4\0"))
    assert (first.tolist(), other.tolist()) == ([1, 2], [3, 4])
    assert (
        request_from_body(body(), None).request.inputs["x"] is not request_from_body(body(), None).request.inputs["x"]
    )


def test_bytes_behind_the_json_belong_to_the_inputs_in_order() -> None:
    first = BINARY | {"name": "a"}
    head = body(inputs=[first, ONE, BINARY])
    asked = request_from_body(head + b"\1\0\2\0" + b"\3\0\4\0", len(head))
    assert {name: value.ravel().tolist() for name, value in asked.request.inputs.items()} == {
        "a": [1, 2], "x": [1.0, 2.0], "y": [3, 4],
    }  # fmt: skip


@pytest.mark.parametrize(("found", "reason"), [
    (b"", "no JSON"),
    (b"[]", "no JSON object"),
    (b"\xff{}", "not UTF-8"),
    (b'{"id": "a", "id": "b"}', "lists something twice"),
    (b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [NaN]}]}', "NaN is no JSON"),
    (b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1e400]}]}', "1e400"),
    (b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1e39]}]}', "float32"),
    (b"[" * 100_000, "nested too deeply"),
    (body(more=1), "unknown key 'more'"),
    (body(id=7), "id must be a text"),
    (body(inputs={}), "inputs must be a list"),
    (body(inputs=[1]), "an input must be an object"),
    (body(inputs=[{}]), "an input has no name"),
    (body(inputs=[ONE, ONE]), "'x' occurs twice"),
    (body(inputs=[ONE | {"kind": 1}]), "input 'x' has the unknown key 'kind'"),
    (body(inputs=[ONE | {"shape": [-1, 2]}]), "input 'x' has no shape"),
    (body(inputs=[ONE | {"parameters": {"shared_memory_region": "a"}}]), "unknown parameter 'shared_memory_region'"),
    (body(inputs=[ONE | {"parameters": {"binary_data_size": 4}}]), "has data and binary_data_size"),
    (body(inputs=[BINARY]), "should have 4 bytes, and 0 are left"),
    (body(inputs=[BINARY | {"parameters": {"binary_data_size": -1}}]), "should have -1 bytes"),
    (body(inputs=[BINARY | {"parameters": {"binary_data_size": True}}]), "must be int, is True"),
    (body(parameters={"priority": 1}), "unknown parameter 'priority'"),
    (body(parameters={"timeout": -1}), "'timeout' is -1"),
    (body(parameters=[]), "parameters must be an object"),
    (body(outputs=[{"name": "y", "parameters": {"classification": 3}}]), "unknown parameter 'classification'"),
])  # fmt: skip
def test_what_is_no_request_is_one_line(found, reason) -> None:
    with pytest.raises(InputError) as error:
        request_from_body(found, None)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_no_byte_of_a_body_is_left_over_or_missing() -> None:
    head = body(inputs=[BINARY])
    with pytest.raises(InputError, match="2 bytes of the body belong to no input"):
        request_from_body(head + bytes(6), len(head))
    with pytest.raises(InputError, match="should have 4 bytes, and 3 are left"):
        request_from_body(head + bytes(3), len(head))
    with pytest.raises(InputError, match="the JSON should have 1000 bytes"):
        request_from_body(head + bytes(4), 1000)


def test_a_damaged_body_is_a_request_or_refused() -> None:
    head = body(inputs=[ONE, BINARY], outputs=[{"name": "z", "parameters": {"binary_data": True}}], id="a")
    dice, good, num_refused = random.Random(3), head + bytes(4), 0  # noqa: S311 - damage, not secrets
    for i in range(4000):
        damaged = mutant(good, dice, i % KINDS)
        try:
            request_from_body(damaged, min(len(head) + dice.choice((-1, 0, 0, 0, 1)), len(damaged)))
        except InputError:
            num_refused += 1
    assert 3000 < num_refused < 4000


@pytest.mark.parametrize("is_binary", [False, True])
def test_an_answer_says_what_was_computed(is_binary) -> None:
    asked = request_from_body(body(id="q", parameters={"binary_data_output": is_binary}), None)
    values = {"y": np.array([[1.5, np.inf]], np.float32), "s": np.array(["a", "é"], object)}
    answer, json_bytes = body_from_answer("m", Answer(values, "3"), asked)
    told = json.loads(answer[:json_bytes])
    assert (told["model_name"], told["model_version"], told["id"]) == ("m", "3", "q")
    first, second = told["outputs"]
    assert (first["name"], first["datatype"], first["shape"]) == ("y", "FP32", [1, 2])
    if is_binary:
        assert answer[json_bytes:] == values["y"].tobytes() + b"\1\0\0\0a\2\0\0\0\xc3\xa9"
        assert [one["parameters"]["binary_data_size"] for one in told["outputs"]] == [8, 11]
    else:
        assert (first["data"], second["data"]) == ([1.5, "Infinity"], ["a", "é"])


def test_one_output_may_be_binary_and_another_not() -> None:
    outputs = [{"name": "a", "parameters": {"binary_data": False}}, {"name": "b"}]
    asked = request_from_body(body(outputs=outputs, parameters={"binary_data_output": True}), None)
    ones = Answer({name: np.ones(1, np.float64) for name in "ab"}, "1")
    answer, json_bytes = body_from_answer("m", ones, asked)
    assert ["data" in one for one in json.loads(answer[:json_bytes])["outputs"]] == [True, False]

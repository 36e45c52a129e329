# SPDX-License-Identifier: Apache-2.0
"""Messages of gRPC: the same fields as the protocol's own, tensors as lists or raw bytes, and what is refused."""

import random
from typing import Any

import numpy as np
import pytest
from byte_mutants import KINDS, mutant
from google.protobuf.message import DecodeError

from nndeploy.errors import InputError
from nndeploy.serve.infer_request import Answer
from nndeploy.serve.message_form import LISTS, message_from_answer, request_from_message
from nndeploy.serve.messages import MESSAGES

Request = MESSAGES["ModelInferRequest"]


def request(datatype: str = "FP32", shape: tuple[int, ...] = (2,), raw: bytes | None = None, **contents: Any) -> Any:
    message = Request(model_name="m", id="a")
    one = message.inputs.add(name="x", datatype=datatype, shape=shape)
    for field, elements in contents.items():
        getattr(one.contents, field).extend(elements)
    if raw is not None:
        message.raw_input_contents.append(raw)
    return message


@pytest.mark.parametrize(("datatype", "elements", "dtype"), [
    ("BOOL", [True, False], bool), ("INT8", [-128, 127], np.int8), ("INT16", [-1, 2], np.int16),
    ("INT32", [-1, 2], np.int32), ("INT64", [-1, 1 << 62], np.int64), ("UINT8", [0, 255], np.uint8),
    ("UINT16", [0, 65535], np.uint16), ("UINT32", [0, 1 << 31], np.uint32), ("UINT64", [0, 1 << 63], np.uint64),
    ("FP32", [0.1, 2], np.float32), ("FP64", [0.1, 2], np.float64), ("BYTES", [b"a", b"bc"], object),
])  # fmt: skip
def test_each_datatype_has_its_list(datatype, elements, dtype) -> None:
    found = request_from_message(request(datatype, **{LISTS[datatype]: elements})).inputs["x"]
    assert found.dtype == dtype
    assert found.tolist() == np.array(elements, dtype).tolist()


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_sixteen_bit_floats_are_raw(datatype) -> None:
    assert request_from_message(request(datatype, raw=bytes(4))).inputs["x"].tolist() == [0, 0]
    with pytest.raises(InputError, match="which has no list"):
        request_from_message(request(datatype, fp32_contents=[1, 2]))


@pytest.mark.parametrize(("message", "reason"), [
    (request("INT8", int_contents=[1, 128]), "a number that is no INT8"),
    (request("FP32", fp32_contents=[1]), "must have 2 elements ([2]), got 1"),
    (request("FP32", (1 << 40, 1 << 10), fp32_contents=[1]), "got 1"),
    *((request(kind, (0, 1 << 62, 1 << 62), raw=b""), "shape that is too large") for kind in ("FP32", "BYTES")),
    (request("FP32", (0, 1 << 62, 1 << 62)), "shape that is too large"),
    (request("FP32", (-1,), fp32_contents=[1]), "has no shape"),
    (request("FP32", fp64_contents=[1, 2]), "is FP32 and has fp64_contents"),
    (request("FP32", raw=bytes(8), fp32_contents=[1, 2]), "contents beside raw_input_contents"),
    (request("FP32", raw=bytes(7)), "must have 8 bytes"),
    (request("FP33", fp32_contents=[1, 2]), "unknown datatype 'FP33'"),
])  # fmt: skip
def test_what_is_no_tensor_is_one_line(message, reason) -> None:
    with pytest.raises(InputError) as error:
        request_from_message(message)
    assert reason in str(error.value)


def test_raw_contents_are_one_for_each_input() -> None:
    message = request(raw=bytes(8))
    message.raw_input_contents.append(b"")
    with pytest.raises(InputError, match="1 inputs, and 2 raw contents"):
        request_from_message(message)


def test_a_parameter_that_is_not_understood_is_refused() -> None:
    message = request(raw=bytes(8))
    message.parameters["timeout"].int64_param = 5
    assert request_from_message(message).timeout_ns == 5000
    message.parameters["priority"].int64_param = 5
    with pytest.raises(InputError, match="unknown parameter 'priority'"):
        request_from_message(message)


@pytest.mark.parametrize("is_raw", [True, False])
def test_an_answer_comes_as_the_request_did(is_raw) -> None:
    asked = request(raw=bytes(8)) if is_raw else request(fp32_contents=[1, 2])
    values = {"y": np.array([[1.5]], np.float64), "s": np.array(["é"], object)}
    answer = message_from_answer("m", Answer(values, "2"), asked)
    assert (answer.model_name, answer.model_version, answer.id) == ("m", "2", "a")
    assert [(one.name, one.datatype, list(one.shape)) for one in answer.outputs] == [
        ("y", "FP64", [1, 1]), ("s", "BYTES", [1]),
    ]  # fmt: skip
    if is_raw:
        assert list(answer.raw_output_contents) == [values["y"].tobytes(), b"\2\0\0\0\xc3\xa9"]
    else:
        assert list(answer.outputs[0].contents.fp64_contents) == [1.5]
        assert list(answer.outputs[1].contents.bytes_contents) == ["é".encode()]


def test_an_output_without_a_list_makes_all_raw() -> None:
    values = {"y": np.ones(1, np.float32), "h": np.ones(1, np.float16)}
    answer = message_from_answer("m", Answer(values, "1"), request(fp32_contents=[1, 2]))
    assert len(answer.raw_output_contents) == 2


def test_a_damaged_message_is_a_request_or_refused() -> None:
    dice, good = random.Random(5), request(raw=bytes(8)).SerializeToString()  # noqa: S311 - damage, not secrets
    num_refused = 0
    for i in range(4000):
        try:
            request_from_message(Request.FromString(mutant(good, dice, i % KINDS)))
        except (InputError, DecodeError):
            num_refused += 1
    assert 2000 < num_refused < 4000


def fields_of(message: Any) -> dict[str, tuple[int, int, bool]]:
    return {field.name: (field.number, field.type, field.is_repeated) for field in message.DESCRIPTOR.fields}


def test_the_messages_are_those_of_a_public_client() -> None:
    theirs = pytest.importorskip("tritonclient.grpc.service_pb2", reason="tritonclient is not installed")
    for name, message in MESSAGES.items():
        if name.startswith("Health"):  # of another package
            continue
        other = theirs
        for part in name.split("."):
            other = getattr(other, part)
        ours = fields_of(message)
        assert ours.items() <= fields_of(other).items(), name

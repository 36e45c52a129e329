# SPDX-License-Identifier: Apache-2.0
"""A job travels as JSON and comes back equal; what is no job is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.compiler.options import CompileLimits
from nndeploy.errors import DataError
from nndeploy.farm.job import Job, job_from_json, job_to_json, limits_of

JOB = Job(
    "yolo/rtx4090/fp32", "yolo", "rtx4090", "fp32", "/m/yolo.onnx", {"precision": "fp32", "targets": ["rtx4090"]},
    {"total_time_limit": 1800.0, "memory_limit": 1 << 33, "sandbox": False}, "/d/yolo.nnd", {"gpu": "sm89"}, 2.5,
)  # fmt: skip


def data() -> dict[str, Any]:
    return dict(json.loads(json.dumps(job_to_json(JOB))))


def test_a_job_comes_back_from_json() -> None:
    assert job_from_json(data()) == JOB
    without_variant = {**data(), "id": "yolo/rtx4090", "variant": "", "estimate": 0}
    assert job_from_json(without_variant).id == "yolo/rtx4090"


def test_limits_are_values() -> None:
    assert limits_of(JOB) == CompileLimits(total_time_limit=1800.0, memory_limit=1 << 33, sandbox=False)


@pytest.mark.parametrize(("change", "message"), [
    ({"modle": 1}, "unknown field 'modle' (hint: did you mean 'model'?)"),
    ({"id": "yolo/rtx4090"}, "id 'yolo/rtx4090' is not made of model, target and variant"),
    ({"model": "a/b", "id": "a/b/rtx4090/fp32"}, "model 'a/b' holds a slash"),
    ({"target": "", "id": "yolo/fp32"}, "target '' is not a file name"),
    ({"variant": "\x1b", "id": "yolo/rtx4090/\x1b"}, "variant '\\x1b' holds a character that cannot be printed"),
    ({"source": "m.onnx"}, "source must be an absolute path, is 'm.onnx'"),
    ({"output": "/d/\0"}, "output must be an absolute path, is '/d/\\x00'"),
    ({"given": []}, "given must be a table"),
    ({"given": {"precison": "fp32"}}, "unknown option 'precison' (hint: did you mean 'precision'?)"),
    ({"limits": {"time_limits": 1}}, "unknown option 'time_limits' (hint: did you mean 'time_limit'?)"),
    ({"needs": {"gpu": 1}}, "needs must be a table of texts"),
    ({"estimate": float("nan")}, "estimate must be a number of seconds"),
    ({"estimate": True}, "estimate must be a number of seconds"),
    ({"model": None}, "model must be a text"),
])  # fmt: skip
def test_what_is_no_job_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        job_from_json({**data(), **change})
    assert str(caught.value) == f"job: {message}"


@pytest.mark.parametrize("field", [*data()])
def test_a_missing_field_is_named(field: str) -> None:
    with pytest.raises(DataError, match=f"the field {field!r} is missing"):
        job_from_json({key: value for key, value in data().items() if key != field})


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(field=st.sampled_from([*data(), "other"]), value=PLAIN)
def test_any_field_of_any_value_gives_a_job_or_an_error_of_ours(field: str, value: Any) -> None:
    try:
        job = job_from_json({**data(), field: value})
    except DataError:
        return
    assert job_from_json(job_to_json(job)) == job


@pytest.mark.parametrize("value", [None, [], "job", 5])
def test_what_is_no_table_is_refused(value: object) -> None:
    with pytest.raises(DataError, match="a job must be a table"):
        job_from_json(value)

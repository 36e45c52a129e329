# SPDX-License-Identifier: Apache-2.0
"""Outputs that are an input with more behind it: no past is copied where a caller gives back what he got."""

import json
import threading

import numpy as np
import pytest
from native_models import ROOM, Array, built, dynamic, each_float_level, opened, reals, run, start_of
from nndeploy_native.plan import DOCUMENT_FILE, document_from_json
from nndeploy_native.session import NativeSession

from nndeploy.errors import BundleError
from nndeploy.plugin.interface import Artifact
from nndeploy.values.types import DimRange

RANGES = {"p": DimRange(0, 512, 1), "t": DimRange(1, 64, 1)}
HEADS, SIZE = 3, 8
ATTENTION = """k = Concat<axis=2>(past_k, new_k) v = Concat<axis=2>(past_v, new_v)
    turned = Transpose<perm=[0,1,3,2]>(k) a = MatMul(q, turned) w = Softmax<axis=-1>(a) o = MatMul(w, v)
    s = Transpose<perm=[0,2,1,3]>(o) y = Reshape(s, rows)"""
DECODER = f"""g (float[1,{HEADS},t,{SIZE}] q, float[1,{HEADS},t,{SIZE}] new_k, float[1,{HEADS},t,{SIZE}] new_v,
    float[1,{HEADS},p,{SIZE}] past_k, float[1,{HEADS},p,{SIZE}] past_v)
    => (float[1,t,{HEADS * SIZE}] y, float[1,{HEADS},all,{SIZE}] k, float[1,{HEADS},all,{SIZE}] v)
    <int64[3] rows = {{1,-1,{HEADS * SIZE}}}> {{ {ATTENTION} }}"""


@pytest.fixture(scope="module")
def decoder() -> Artifact:
    """Returns attention over a past of keys and values, which grow."""
    return built(dynamic(DECODER, RANGES), RANGES)


def token(seed: int, count: int = 1) -> dict[str, Array]:
    """Returns what some new tokens give."""
    names = ("q", "new_k", "new_v")
    return {name: reals(1, HEADS, count, SIZE, seed=10 * seed + i) for i, name in enumerate(names)}


def expected(new: dict[str, Array], past: tuple[Array, Array]) -> dict[str, Array]:
    """Returns the outputs, in float64."""
    k, v = (np.concatenate([one, new[name]], 2) for one, name in zip(past, ("new_k", "new_v"), strict=True))
    a = new["q"].astype(np.float64) @ k.transpose(0, 1, 3, 2)
    w = np.exp(a - a.max(-1, keepdims=True))
    o = w / w.sum(-1, keepdims=True) @ v
    return {"y": o.transpose(0, 2, 1, 3).reshape(1, -1, HEADS * SIZE), "k": k, "v": v}


def call(session: NativeSession, new: dict[str, Array], past: tuple[Array, Array]) -> dict[str, Array]:
    """Returns the outputs of a call, which are right."""
    found = session.run({**new, "past_k": past[0], "past_v": past[1]})
    for name, wanted in expected(new, past).items():
        np.testing.assert_allclose(found[name], wanted, rtol=2e-5, atol=2e-5, err_msg=name)
    return found


def empty() -> tuple[Array, Array]:
    """Returns the caches before the first token."""
    return np.zeros((1, HEADS, 0, SIZE), np.float32), np.zeros((1, HEADS, 0, SIZE), np.float32)


@each_float_level
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("past", "count"), [(0, 5), (1, 1), (7, 1), (19, 3), (ROOM - 4, 4)])
def test_arrays_of_a_caller_are_copied(decoder: Artifact, level: str, threads: int, past: int, count: int) -> None:
    new, before = token(1, count), (reals(1, HEADS, past, SIZE, seed=7), reals(1, HEADS, past, SIZE, seed=8))
    found = run(decoder, {**new, "past_k": before[0], "past_v": before[1]}, level, threads=threads)
    for name, wanted in expected(new, before).items():
        np.testing.assert_allclose(found[name], wanted, rtol=2e-5, atol=2e-5, err_msg=name)


def test_what_is_given_back_stays_where_it_is_until_its_room_is_full(decoder: Artifact) -> None:
    session, past, places = opened(decoder), empty(), []
    for number in range(200):
        found = call(session, token(number, 5 if number == 0 else 1), past)
        past = (found["k"], found["v"])
        places.append(start_of(past[0]))
        assert start_of(past[0]) != start_of(past[1])
    assert len(set(places)) <= 4, "memory grows by halves"


def test_one_past_with_two_futures(decoder: Artifact) -> None:
    session = opened(decoder)
    found = call(session, token(0, 4), empty())
    past = (found["k"], found["v"])
    first, second = (call(session, token(number), past) for number in (1, 2))
    assert start_of(first["k"]) == start_of(past[0]) != start_of(second["k"])
    for number, one in ((3, first), (4, second)):
        call(session, token(number), (one["k"], one["v"]))
    np.testing.assert_array_equal(past[0], first["k"][:, :, :4])
    np.testing.assert_array_equal(past[0], second["k"][:, :, :4])


def test_a_past_that_was_cut_or_exchanged_is_copied(decoder: Artifact) -> None:
    session = opened(decoder)
    found = call(session, token(0, 6), empty())
    k, v = found["k"], found["v"]
    for past in ((k[:, :, :4], v[:, :, :4]), (k[:, :, 1:], v[:, :, 1:]), (v, k), (k, k), (k.copy(), v)):
        call(session, token(1), past)
    np.testing.assert_array_equal(k, token(0, 6)["new_k"])


def test_an_array_of_another_session_goes_on_in_place(decoder: Artifact) -> None:
    found = call(opened(decoder), token(0, 3), empty())
    after = call(opened(decoder), token(1), (found["k"], found["v"]))
    assert start_of(after["k"]) == start_of(found["k"])


def test_callers_at_once_keep_apart(decoder: Artifact) -> None:
    session, failures = opened(decoder, threads=2), []

    def generate(seed: int) -> None:
        past = empty()
        try:
            for number in range(80):
                found = call(session, token(seed + number), past)
                past = (found["k"], found["v"])
        except BaseException as err:  # shown by the test below
            failures.append(err)

    threads = [threading.Thread(target=generate, args=(1000 * number,)) for number in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures


def test_outputs_that_grow_cannot_be_written(decoder: Artifact) -> None:
    found = call(opened(decoder), token(0), empty())
    with pytest.raises(ValueError, match="read-only"):
        found["k"][0, 0, 0, 0] = 1


@pytest.mark.parametrize(("what", "body"), [
    ("someone else reads the input", "k = Concat<axis=1>(past, new) y = Add(past, one)"),
    ("what is new comes first", "k = Concat<axis=1>(new, past) y = Add(new, one)"),
    ("it stands twice", "k = Concat<axis=1>(past, past) y = Add(new, one)"),
    ("there are three", "k = Concat<axis=1>(past, new, new) y = Add(new, one)"),
])  # fmt: skip
def test_other_concatenations_are_as_they_were(what: str, body: str) -> None:
    text = f"g (float[2,p] past, float[2,t] new) => (float[2,r] k, float[2,s] y) <float one = {{1.0}}> {{ {body} }}"
    artifact = built(dynamic(text, RANGES), RANGES)
    assert not document_from_json(artifact.files[DOCUMENT_FILE]).grown, what
    past, new = reals(2, 5), reals(2, 3, seed=1)
    parts = {"past": past, "new": new}
    wanted = [parts[name] for name in body[body.index("(") + 1 : body.index(")")].split(", ")]
    np.testing.assert_array_equal(run(artifact, parts)["k"], np.concatenate(wanted, 1))


def test_a_cache_that_is_read_as_it_is() -> None:
    """Whoever does not read by strides gets a copy of what is there."""
    text = """g (float[2,p,3] past, float[2,t,3] new) => (float[2,r,3] k, float[r2,3] y)
        <int64[2] rows = {-1,3}> { k = Concat<axis=1>(past, new) e = Reshape(k, rows) y = Relu(e) }"""
    artifact = built(dynamic(text, RANGES), RANGES)
    past, new = reals(2, 5, 3), reals(2, 4, 3, seed=1)
    found = run(artifact, {"past": past, "new": new})
    np.testing.assert_array_equal(found["k"], np.concatenate([past, new], 1))
    np.testing.assert_array_equal(found["y"], np.maximum(np.concatenate([past, new], 1), 0).reshape(-1, 3))


@pytest.mark.parametrize("change", [
    {"output": 0}, {"output": 9}, {"input": 9}, {"axis": 1}, {"axis": 9}, {"axis": -1}, {"added": -1},
    {"added": 1 << 40}, {"symbol": 9}, {"output": True}, {"symbol": "t"}, {"more": 1},
])  # fmt: skip
def test_a_document_that_says_something_else_is_refused(decoder: Artifact, change: dict[str, object]) -> None:
    document = json.loads(decoder.files[DOCUMENT_FILE])
    document["grown"][0] |= change
    files = {**decoder.files, DOCUMENT_FILE: json.dumps(document).encode()}
    with pytest.raises(BundleError, match=DOCUMENT_FILE):
        opened(Artifact(files=files, metadata=decoder.metadata)).run(
            {**token(0, 2), "past_k": empty()[0], "past_v": empty()[1]}
        )

# SPDX-License-Identifier: Apache-2.0
"""Models that choose (If): each branch is planned as a model of its own, whichever a call takes is right."""

import json
import threading
from typing import Any

import numpy as np
import pytest
from native_models import Array, built, dynamic, each_float_level, kernels_of, opened, reals, run
from nndeploy_native.course import Choice, course_from_json, course_to_json
from nndeploy_native.plan import DOCUMENT_FILE, WEIGHTS_FILE
from nndeploy_native.support import supports
from test_native_caches import DECODER, HEADS, RANGES, SIZE, empty, expected, token

from nndeploy.errors import BundleError, InputError, OtherSizesError, UsageError
from nndeploy.plugin.interface import Artifact, BuildOptions
from nndeploy.target.target import host_target

DOUBLED = """g (float[n,6] x, float[n] u, bool c) => (float[m,6] y, float[n,6] z) { v = Abs(x) d = Not(c)
    p = If(d) <then_branch = t () => (float[n,6] a) { r = MatMul(v, w) s = Add(r, b) a = Relu(s) },
               else_branch = e () => (float[k,6] o) { q = MatMul(v, w) o = Concat<axis=0>(q, v) }>
    y = Neg(p) z = Sqrt(v) }"""
"""What is before, between and behind; the sizes behind are those of the branch that was taken."""
WEIGHTS = {"w": reals(6, 6, seed=1), "b": reals(6, seed=2)}


def doubled(x: Array, c: bool) -> Array:
    """Returns y."""
    v = np.abs(x).astype(np.float64)
    p = v @ WEIGHTS["w"]
    return -(np.concatenate([p, v]) if c else np.maximum(p + WEIGHTS["b"], 0))


@pytest.fixture(scope="module")
def choosing() -> Artifact:
    """Returns the artifact of `DOUBLED`."""
    return built(dynamic(DOUBLED, {}, WEIGHTS))


@each_float_level
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("c", [True, False])
def test_each_truth_gives_its_own_numbers_and_sizes(choosing: Artifact, level: str, threads: int, c: bool) -> None:
    x = reals(5, 6)
    found = run(choosing, {"x": x, "c": np.array(c)}, level, threads=threads)
    np.testing.assert_allclose(found["y"], doubled(x, c), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["z"], np.sqrt(np.abs(x)), rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_calls_may_alternate_in_several_threads(choosing: Artifact, threads: int) -> None:
    session, wrong = opened(choosing, threads), list[int]()

    def call(seed: int) -> None:
        for i in range(20):
            x, c = reals(1 + (seed + i) % 4, 6, seed=seed + i), bool((seed + i) % 3)
            found = session.run({"x": x, "c": np.array(c), "u": x[:, 0]})
            if not np.allclose(found["y"], doubled(x, c), atol=1e-5):
                wrong.append(i)

    callers = [threading.Thread(target=call, args=(seed,)) for seed in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.run({"x": reals(1, 6), "c": np.array(True)})


def test_a_condition_of_several_truths_is_refused(choosing: Artifact) -> None:
    text = DOUBLED.replace("bool c", "bool[k] c").replace("d = Not(c)", "d = Not(c) i = Not(d)")
    session = opened(built(dynamic(text, {}, WEIGHTS)))
    with pytest.raises(InputError, match=r"the condition 'd': expected one truth, got \(2,\)"):
        session.run({"x": reals(1, 6), "c": np.array([True, False])})


def test_constants_that_both_branches_read_are_stored_once(choosing: Artifact) -> None:
    assert len(choosing.files[WEIGHTS_FILE]) == 192 + 64


def merged_decoder() -> Artifact:
    """Returns attention whose past is an input that grows, or nothing: an If over both uses."""
    body = DECODER[DECODER.index("{ k =") + 1 : DECODER.rindex("}")]
    head = DECODER[: DECODER.index("{ k =")].replace("float[1,3,p,8] past_v)", "float[1,3,p,8] past_v, bool[1] c)")
    first = body.replace("k = Concat<axis=2>(past_k, new_k)", "k = Identity(new_k)")
    first = first.replace("v = Concat<axis=2>(past_v, new_v)", "v = Identity(new_v)")
    outputs = (
        f"float[1,t,{HEADS * SIZE}] y{{0}}, float[1,{HEADS},all,{SIZE}] k{{0}}, float[1,{HEADS},all,{SIZE}] v{{0}}"
    )

    def branch(name: str, text: str, number: int) -> str:
        for one in ("turned", "a", "w", "o", "s", "y", "k", "v"):
            text = "".join(part if part != one else f"{one}{number}" for part in _words(text))
        return f"{name} = b{number} () => ({outputs.format(number)}) {{ {text} }}"

    text = f"{head} {{ y, k, v = If(c) <{branch('then_branch', body, 1)}, {branch('else_branch', first, 2)}> }}"
    return built(dynamic(text, RANGES), RANGES)


def _words(text: str) -> list[str]:
    words, last = [""], ""
    for character in text:
        if (character.isalnum() or character == "_") != (last.isalnum() or last == "_"):
            words.append("")
        words[-1] += character
        last = character
    return words


@pytest.mark.parametrize("threads", [1, 2])
def test_a_cache_that_grows_in_one_branch_goes_on_behind_the_other(threads: int) -> None:
    artifact = merged_decoder()
    kernels = kernels_of(artifact)
    assert sorted(kernels[:3]) == ["append", "append", "attention"], "fused as in a model of its own"
    session, starts = opened(artifact, threads), set[int]()
    assert session.takes_strided == {"past_k", "past_v"}
    for text in range(2):
        past = reals(1, HEADS, 4, SIZE, seed=50), reals(1, HEADS, 4, SIZE, seed=51)
        for i in range(6):
            new = token(10 * text + i, 3 if i == 0 else 1)
            given = {**new, "past_k": past[0], "past_v": past[1], "c": np.array([i > 0])}
            found = session.run(given)
            for name, wanted in expected(new, past if i else empty()).items():
                np.testing.assert_allclose(found[name], wanted, rtol=2e-5, atol=2e-5, err_msg=f"{name} {text} {i}")
            past = found["k"], found["v"]
            if i > 1:
                starts.add(int(found["k"].__array_interface__["data"][0]))
        past_before = past
    assert len(starts) <= 2, "grows where it lies"
    assert past_before[0].shape[2] == 8


SQUEEZED = """g (float[n,8,t] x) => (float y) <int64[1] one = {1}, int64 two = {2}, int64[1] axis = {2}> {
    s = Shape(x) e = Gather(s, two) d = Equal(e, one)
    q = If(d) <then_branch = f () => (float[n,8] a) { a = Squeeze(x, axis) },
               else_branch = o () => (float[n,8,t] b) { b = Identity(x) }>
    r = MatMul(q, w) y = ReduceMax<keepdims=0>(r) }"""


@pytest.mark.parametrize("size", [1, 8])
def test_branches_of_other_ranks_are_right_where_sizes_decide(size: int) -> None:
    artifact, x = built(dynamic(SQUEEZED, {}, {"w": reals(8, 5, seed=3)})), reals(3, 8, size)
    rows = x[..., 0] if size == 1 else x
    np.testing.assert_allclose(run(artifact, {"x": x})["y"], (rows @ reals(8, 5, seed=3)).max(), rtol=1e-5)


def test_a_branch_of_other_sizes_without_a_rule_is_refused_when_it_is_taken() -> None:
    """Where no axis is dropped, the step of a layer gets an axis too many."""
    layer = "u = Unsqueeze(q, zero) r = GRU<hidden_size=5>(u, w, k) y = ReduceMax<keepdims=0>(r) }"
    text = SQUEEZED.replace("r = MatMul(q, w) y = ReduceMax<keepdims=0>(r) }", layer)
    text = text.replace("int64[1] one", "int64[1] zero = {0}, int64[1] one")
    artifact = built(dynamic(text, {}, {"w": reals(1, 15, 8, seed=3), "k": reals(1, 15, 5, seed=4)}))
    assert run(artifact, {"x": reals(3, 8, 1)})["y"].shape == ()
    with pytest.raises(OtherSizesError, match="not built for these sizes: GRU"):
        opened(artifact).run({"x": reals(3, 8, 2)})


def test_a_branch_may_give_what_has_no_elements() -> None:
    """Merged decoders do so, where a branch makes no cache."""
    text = """g (float[2,n] x, bool c) => (float[2,n] y, float[m,3] z) { y, z = If(c) <
        then_branch = t () => (float[2,n] a, float[0,3] e) { a = Abs(x)
            e = Constant<value = float[0,3] {}>() },
        else_branch = f () => (float[2,n] b, float[2,3] h) <float[2,3] l = {1,2,3,4,5,6}> {
            b = Neg(x) h = Exp(l) }> }"""
    session, x = opened(built(dynamic(text, {}))), reals(2, 4)
    for c in (True, False, True):
        found = session.run({"x": x, "c": np.array(c)})
        np.testing.assert_array_equal(found["y"], np.abs(x) if c else -x)
        wanted = np.zeros((0, 3)) if c else np.exp(np.arange(1.0, 7.0)).reshape(2, 3)
        np.testing.assert_allclose(found["z"], wanted, rtol=1e-5)


def test_what_is_refused_says_why() -> None:
    text = DOUBLED.replace("a = Relu(s)", "a = Det(s)")
    model = dynamic(text, {}, WEIGHTS)
    found = supports(model, host_target(), BuildOptions())
    (reason,) = (one.reason for node, one in zip(model.graph, found, strict=True) if node.op_type == "If")
    assert "no kernel for Det" in reason
    assert sum(one.ok for one in found) == len(found) - 1


def test_the_document_comes_back_as_it_was(choosing: Artifact) -> None:
    for artifact in (choosing, merged_decoder(), built(dynamic(SQUEEZED, {}, {"w": reals(8, 5)}))):
        document = course_from_json(artifact.files[DOCUMENT_FILE])
        assert course_from_json(course_to_json(document)) == document
        assert course_to_json(document) == artifact.files[DOCUMENT_FILE]
        assert any(isinstance(part, Choice) for part in document.course.parts)


@pytest.mark.parametrize(("place", "value", "why"), [
    (("course", "parts", 0), 7, "no plan 7"), (("course", "parts", 0), True, "malformed"),
    (("course", "parts", 1, "if"), "v", "a condition that is no truth"),
    (("course", "parts", 1, "if"), "nothing", "nothing"),
    (("course", "parts", 1, "outputs"), ["p", "p"], "a name stands twice"),
    (("course", "parts", 1, "outputs"), ["v"], "a value that is made twice"),
    (("course", "parts", 1, "then", "parts"), [], "malformed"),
    (("course", "parts", 1, "then", "results"), ["d"], "other elements or ranks"),
    (("course", "parts", 1, "then"), {"parts": [{"refused": "no"}], "results": []}, "stands nowhere or twice"),
    (("course", "parts", 1, "then"), {"parts": [{"refused": "no"}], "results": ["v"]}, "does not stand alone"),
    (("course", "parts", 1, "then", "parts", 0), 0, "made twice"),
    (("course", "parts", 2), {"empty": ["e", "fp32", [2]]}, "not a value without elements"),
    (("course", "parts", 2), {"empty": ["e", "fp32", [0, 2**30, 2**30]]}, "not a value without elements"),
    (("course", "results"), ["z", "y"], "results that are not the outputs"),
    (("inputs", 0, 1), "int64", "reads another element or rank"),
    (("outputs", 0, 2), [None], "outputs of other elements or ranks"),
    (("plans", 0, "steps"), 99, "a plan of 99 steps"),
])  # fmt: skip
def test_documents_that_break_a_law_are_refused(
    choosing: Artifact, place: tuple[str | int, ...], value: Any, why: str
) -> None:
    data = json.loads(choosing.files[DOCUMENT_FILE])
    inside = data
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    with pytest.raises(BundleError, match=why):
        course_from_json(json.dumps(data).encode())


def test_courses_that_are_too_deep_are_refused(choosing: Artifact) -> None:
    data = json.loads(choosing.files[DOCUMENT_FILE])
    for _ in range(17):
        data["course"] = {
            "parts": [{"if": "c", "outputs": [], "then": data["course"], "else": {"parts": [], "results": []}}],
            "results": [],
        }
    with pytest.raises(BundleError, match="more than 16 choices inside of each other"):
        course_from_json(json.dumps(data).encode())

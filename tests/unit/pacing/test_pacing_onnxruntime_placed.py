# SPDX-License-Identifier: Apache-2.0
"""Where points stand in a model: tried on it, left out where they do not work, thinned out where they are close."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from broken_libraries import library_of
from hypothesis import given
from hypothesis import strategies as st
from nndeploy_kernels.build import SOURCES
from nndeploy_onnxruntime import pace_segments, pace_trials, paced_session, placed_points
from nndeploy_onnxruntime.open_session import open_session
from nndeploy_onnxruntime.pace_trials import NoPointsError
from nndeploy_onnxruntime.placed_points import spaced
from nndeploy_onnxruntime.segment_models import Parts

from nndeploy.pacing.run.item import ItemMemory
from nndeploy.pacing.run.library import PaceLibrary
from nndeploy.plugin.interface import OpenOptions, Session
from nndeploy.plugin.pacing import PART_NS

HEADER = '<ir_version: 8, opset_import: ["": 17]>'
CHAIN = HEADER + " g (float[4,4] x) => (float[4,4] y) { a = Exp(x) b = MatMul(a, x) c = Tanh(b) y = Neg(c) }"
SAMPLE = {"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)}
SEQUENCES = (
    HEADER
    + """ g (float[4,4] x) => (float[4,4] y) {
  a = Exp(x)
  s = SplitToSequence<axis=0>(a)
  i = Constant<value=int64 {1}>()
  t = SequenceErase(s, i)
  c = ConcatFromSequence<axis=0>(t)
  m = Transpose(c)
  y = MatMul(c, m)
}""".replace("=> (float[4,4] y)", "=> (float[3,3] y)")
)
OPERATOR = (SOURCES / "pacing" / "onnxruntime_operator.c").read_text(encoding="utf-8")


@pytest.fixture
def every_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placed_points, "PART_NS", -1.0)


@pytest.fixture(scope="module")
def no_operator(tmp_path_factory: pytest.TempPathFactory, pace_library: PaceLibrary) -> PaceLibrary:
    """A library of delays without the operator; `pace_library` skips where nothing can be built."""
    assert pace_library.path
    return library_of("int nnd_nothing;", Path(tmp_path_factory.mktemp("pace")))


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any model is worth to be cut into up to four segments, whatever they cost."""
    monkeypatch.setattr(pace_segments, "SEGMENT_NS", 1.0)
    monkeypatch.setattr(pace_segments, "MOST_SEGMENTS", 4)
    monkeypatch.setattr(pace_segments, "MOST_COST", 1e9)
    return


def opened(text: str, library: PaceLibrary | None) -> Session:
    model = onnx.parser.parse_model(text).SerializeToString()
    return open_session({"model.onnx": memoryview(model)}, OpenOptions(threads=1, pace=library is not None))


def paced(text: str, library: PaceLibrary, sample: Mapping[str, Any] | None = SAMPLE) -> tuple[Any, list[str]]:
    session: Any = opened(text, library)
    return session, [point.name for point in session.pace(library, sample)]


def passed(session: Session, library: PaceLibrary, num_points: int, inputs: Mapping[str, Any] = SAMPLE) -> list[int]:
    """Returns the numbers of the points that a run passes, in order; checks the run's results."""
    item = ItemMemory(num_points, 1)
    item.order[:] = -1
    library.begin(item.address, 0, 0)
    session.run(inputs)
    library.end()
    assert sorted(item.order.tolist()) == list(range(num_points))
    return [int(point) for point in np.argsort(item.order)]


@pytest.mark.usefixtures("every_point")
def test_every_operator_gets_a_point_and_the_last_one_too(pace_library: PaceLibrary) -> None:
    session, names = paced(CHAIN, pace_library)
    assert [name.split()[0] for name in names] == ["Exp", "MatMul", "Tanh", "Neg"]
    assert passed(session, pace_library, 4) == [0, 1, 2, 3]
    assert session.pace_note == "points behind 3 of 3 operators"
    want = opened(CHAIN, None).run(SAMPLE)["y"]
    np.testing.assert_array_equal(session.run(SAMPLE)["y"], want)


def test_a_model_of_short_operators_is_run_as_it_is(pace_library: PaceLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placed_points, "PART_NS", 1e18)
    session, names = paced(CHAIN, pace_library)
    assert [name.split()[0] for name in names] == ["Neg"]
    assert passed(session, pace_library, 1) == [0]
    assert session.pace_note.startswith("points behind 0 of 3 operators; none behind 3 within")


def test_the_points_that_are_kept_are_those_between_long_operators(pace_library, monkeypatch) -> None:
    durations = np.array([0.1, 0.1, 10.0, 0.1]) * PART_NS
    monkeypatch.setattr(pace_trials.Trial, "durations", lambda *_: (durations, np.arange(4)))
    session, names = paced(CHAIN, pace_library)
    assert [name.split()[0] for name in names] == ["MatMul", "Tanh", "Neg"]
    assert passed(session, pace_library, 3) == [0, 1, 2]


def test_with_shapes_that_vary_no_point_is_left_out(pace_library: PaceLibrary) -> None:
    session, names = paced(CHAIN.replace("float[4,4]", "float[n,n]"), pace_library)
    assert len(names) == 4
    larger = {"x": np.ones((9, 9), np.float32)}
    assert passed(session, pace_library, 4, larger) == [0, 1, 2, 3]


def test_points_that_are_wanted_are_not_thinned_out(pace_library: PaceLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placed_points, "PART_NS", 1e18)
    session: Any = opened(CHAIN, pace_library)
    points = session.pace(pace_library, SAMPLE, {"MatMul b", "Sin q"}.__contains__)
    assert [(point.name, point.values) for point in points] == [("MatMul b", ("a", "b")), ("Neg y", ("c", "y"))]
    assert passed(session, pace_library, 2) == [0, 1]
    assert session.pace_note == "points behind 1 of 3 operators; none behind 2 where none is wanted"
    session = opened(CHAIN, pace_library)
    assert len(session.pace(pace_library, SAMPLE, lambda _: True)) == 4


def test_without_the_operator_cuts_are_where_they_are_wanted(no_operator, short_segments, monkeypatch) -> None:
    monkeypatch.setattr(pace_segments, "MOST_COST", -1.0)
    session: Any = opened(CHAIN, no_operator)
    points = session.pace(no_operator, SAMPLE, {"Exp a", "Tanh c", "Neg y"}.__contains__)
    assert [point.name for point in points] == ["Exp a", "Tanh c", "Neg y"]
    assert passed(session, no_operator, 3) == [0, 1, 2]
    assert "cut into 3 segments, as wanted" in session.pace_note


@given(st.lists(st.floats(0, 4 * PART_NS), min_size=1, max_size=60))
def test_points_stand_no_further_apart_than_they_must_and_no_closer_than_is_worth_it(durations: list[float]) -> None:
    kept = spaced(np.array(durations))
    assert len(kept) == len(durations)
    assert kept[-1]
    begins = [0, *(i + 1 for i, is_kept in enumerate(kept) if is_kept)]
    stretches = [durations[begin:end] for begin, end in itertools.pairwise(begins)]
    for stretch in stretches:
        assert len(stretch) == 1 or sum(stretch) <= PART_NS
    for stretch, following in itertools.pairwise(stretches):
        assert sum(stretch) + following[0] > PART_NS


@pytest.mark.usefixtures("every_point")
def test_values_that_are_no_tensors_have_no_point_behind_them(pace_library: PaceLibrary) -> None:
    session, names = paced(SEQUENCES, pace_library)
    found = [name.split()[0] for name in names]
    assert "SplitToSequence" not in found
    assert "SequenceErase" not in found
    assert "ConcatFromSequence" in found
    assert "2 whose values are no tensors" in session.pace_note
    passed(session, pace_library, len(names))
    np.testing.assert_array_equal(session.run(SAMPLE)["y"], opened(SEQUENCES, None).run(SAMPLE)["y"])


@pytest.mark.usefixtures("every_point")
def test_points_that_copy_are_left_out(pace_library: PaceLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    real = placed_points.with_points

    def moved(model: bytes, left_out: Any = ()) -> tuple[bytes, list[str]]:
        """Puts the points in so that the first of all is behind an output of the model, which has memory of its own."""
        data, names = real(model, left_out)
        changed = onnx.load_from_string(data)
        points = [node for node in changed.graph.node if node.op_type == "Pace"]
        if names and names[0].startswith("Exp"):
            changed.graph.output.append(onnx.ValueInfoProto(name=points[0].output[0]))
        return changed.SerializeToString(), names

    monkeypatch.setattr(placed_points, "with_points", moved)
    session, names = paced(CHAIN, pace_library)
    assert [name.split()[0] for name in names] == ["MatMul", "Tanh", "Neg"]
    assert "none behind 1 whose values would be copied" in session.pace_note
    assert passed(session, pace_library, 3) == [0, 1, 2]


@pytest.mark.usefixtures("every_point")
def test_an_operator_without_its_first_output_keeps_its_point(pace_library: PaceLibrary) -> None:
    text = (
        HEADER
        + """ g (float[3,1,4] x, float[1,8,4] w, float[1,8,2] r) => (float[1,1,2] y) {
      , h = LSTM<hidden_size=2>(x, w, r)
      y = Neg(h)
    }"""
    )
    dice = np.random.default_rng(0)
    sample = {
        name: dice.random(shape, dtype=np.float32)
        for name, shape in (("x", (3, 1, 4)), ("w", (1, 8, 4)), ("r", (1, 8, 2)))
    }
    model = onnx.parser.parse_model(text.replace(", h = LSTM", "q, h = LSTM"))
    model.graph.node[0].output[0] = ""
    options = OpenOptions(threads=1, pace=True)
    session: Any = open_session({"model.onnx": memoryview(model.SerializeToString())}, options)
    assert [point.name for point in session.pace(pace_library, sample)] == ["LSTM h", "Neg y"]
    assert passed(session, pace_library, 2, sample) == [0, 1]


def test_points_with_which_results_differ_are_not_used(pace_library, monkeypatch) -> None:
    def refused(*_: Any) -> None:
        raise NoPointsError("its results are not those of the model without points")

    monkeypatch.setattr(placed_points, "PART_NS", -1.0)
    monkeypatch.setattr(pace_trials.Trial, "check", refused)
    session, names = paced(CHAIN, pace_library)
    assert len(names) == 1
    assert session.pace_note.startswith("one operator: its results are not")
    np.testing.assert_array_equal(session.run(SAMPLE)["y"], opened(CHAIN, None).run(SAMPLE)["y"])


def test_results_are_compared_bit_by_bit(pace_library: PaceLibrary) -> None:
    class Gives:
        def __init__(self, *values: Any) -> None:
            self._values = list(values)

        def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
            return {"y": self._values.pop(0)}

        def close(self) -> None: ...

    def check(whole: list[Any], other: Any) -> None:
        trial = pace_trials.Trial(Gives(*whole), pace_library, SAMPLE, has_fixed_shapes=True)
        trial.check(Gives(other))

    a, b = np.array([1.0, np.nan]), np.array([1.0, -np.nan])
    check([a], a.copy())
    check([[a, {"k": 1}]], [a.copy(), {"k": 1}])
    check([a, b], np.zeros(2))  # a model that itself gives something else each time
    for whole, other in ((a, b), (a, [a]), ([a], [a, a]), ({"k": 1}, {"k": 2}), (a, a.astype(np.float32))):
        with pytest.raises(NoPointsError, match="not those of"):
            check([whole, whole], other)


@pytest.mark.usefixtures("short_segments")
def test_without_the_operator_a_model_is_cut(no_operator: PaceLibrary) -> None:
    session, names = paced(CHAIN, no_operator)
    assert 2 <= len(names) <= 4
    assert names[-1].startswith("Neg")
    assert passed(session, no_operator, len(names)) == list(range(len(names)))
    assert f"cut into {len(names)} segments, " in session.pace_note
    assert "the operator does not work" in session.pace_note
    np.testing.assert_array_equal(session.run(SAMPLE)["y"], opened(CHAIN, None).run(SAMPLE)["y"])
    session.close()
    with pytest.raises(Exception, match="closed"):
        session.run(SAMPLE)


@pytest.mark.usefixtures("short_segments")
def test_a_broken_operator_is_done_without(pace_library: PaceLibrary, tmp_path: Path) -> None:
    assert pace_library.path
    broken = library_of(OPERATOR.replace(".aliases = nnd_aliases", ".aliases = nnd_none"), tmp_path)
    session, names = paced(CHAIN, broken)
    assert len(names) >= 2
    assert "the operator is given other memory" in session.pace_note


def test_segments_that_cost_too_much_are_not_made(no_operator, monkeypatch, short_segments) -> None:
    counts = list[int]()

    def cost(_: Any, session: Any) -> float:
        counts.append(len(session.names))
        return 0.5 if len(session.names) > 2 else 0.01

    monkeypatch.setattr(pace_segments, "MOST_COST", 0.02)
    monkeypatch.setattr(pace_trials.Trial, "cost", cost)
    session, names = paced(CHAIN, no_operator)
    assert len(names) == 2
    assert counts[-1] == 2
    assert "cut into 2 segments, +1.0%" in session.pace_note
    monkeypatch.setattr(pace_trials.Trial, "cost", lambda *_: 0.5)
    session, names = paced(CHAIN, no_operator)
    assert len(names) == 1
    assert "not cut: 2 segments cost +50.0%" in session.pace_note


def test_a_short_model_is_not_cut(no_operator: PaceLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace_segments, "SEGMENT_NS", 1e18)  # any model is short, however long it is held up
    session, names = paced(CHAIN, no_operator)
    assert len(names) == 1
    assert session.pace_note.endswith("not cut: it takes too little time")
    assert passed(session, no_operator, 1) == [0]


def test_without_a_sample_points_are_not_tried_and_nothing_is_cut(pace_library, no_operator) -> None:
    session, names = paced(CHAIN, pace_library, None)
    assert len(names) == 4
    assert passed(session, pace_library, 4) == [0, 1, 2, 3]
    session, names = paced(CHAIN, no_operator, None)
    assert len(names) == 1
    assert session.pace_note.endswith("not cut: there is no sample to try it on")


@pytest.mark.usefixtures("short_segments")
def test_sequences_do_not_cross_cuts(no_operator: PaceLibrary) -> None:
    session, names = paced(SEQUENCES, no_operator)
    np.testing.assert_array_equal(session.run(SAMPLE)["y"], opened(SEQUENCES, None).run(SAMPLE)["y"])
    assert passed(session, no_operator, len(names)) == list(range(len(names)))


BRANCHES = (
    HEADER
    + """ g (float[4,4] x, bool c) => (float[4,4] y, float[4,4] e) <float[4] k = {1, 2, 3, 4}> {
  a = Exp(x)
  e = Add(a, k)
  t = If (c) <
    then_branch = t1 () => (float[4,4] u) { u = Mul(a, k) },
    else_branch = e1 () => (float[4,4] v) { v = Identity(e) }
  >
  m = Mul(t, e)
  y = Sub(m, a)
}"""
)


@pytest.mark.parametrize("cuts", [[1], [2], [3], [4], [1, 2, 3, 4], [2, 4]])
def test_parts_of_a_model_give_what_it_gives(cuts: list[int], pace_library: PaceLibrary) -> None:
    model = onnx.parser.parse_model(BRANCHES)
    parts = Parts(model.SerializeToString())
    inputs = {**SAMPLE, "c": np.array(True)}
    session = pace_segments.SegmentedSession(parts, cuts, plainly_opened, pace_library)
    want = opened(BRANCHES, None)
    for value in (True, False):
        inputs["c"] = np.array(value)
        got = session.run(inputs)
        assert list(got) == ["y", "e"]
        for name, array in want.run(inputs).items():
            np.testing.assert_array_equal(got[name], array)
    assert passed(session, pace_library, len(cuts), inputs) == list(range(len(cuts)))


def plainly_opened(model: bytes, *, profile: str = "") -> Any:
    assert not profile
    onnx.load_from_string(model)  # it is a model, not only bytes that a library takes
    options = paced_session.session_options(1)
    options.graph_optimization_level = paced_session.onnxruntime().GraphOptimizationLevel.ORT_DISABLE_ALL
    return paced_session.inference_session(model, options)


def test_cuts_stand_where_little_crosses() -> None:
    text = (
        HEADER
        + """ g (float[4,4] x) => (float[4,4] y) {
      a = Exp(x) b = Tanh(a) s = ReduceSum(b) r = Exp(s) w = Add(r, x) y = Neg(w)
    }"""
    )
    parts = Parts(onnx.parser.parse_model(text).SerializeToString())
    sizes = np.array([64, 64, 4, 4, 64, 64])
    assert parts.crossing(3) == {b"s"}
    assert parts.cuts(np.ones(6), sizes, 2) == [3]
    assert parts.cuts(np.array([1, 1, 1, 1, 1, 100]), sizes, 2) == [5]
    assert parts.cuts(np.ones(6), sizes, 1) == []

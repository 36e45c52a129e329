# SPDX-License-Identifier: Apache-2.0
"""What an artifact says of its engine: round trip, and each refusal."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nndeploy_tensorrt.artifact_facts import Binding, EngineFacts, facts_from_metadata, metadata_from_facts

from nndeploy.errors import BundleError
from nndeploy.values.types import DTYPES

NAMES = st.text(min_size=1, max_size=8)
SHAPES = st.lists(st.integers(-1, 2**40), max_size=8).map(tuple)
NUMERIC = st.sampled_from([dtype for dtype in DTYPES if dtype != "string"])
BINDINGS = st.lists(st.builds(Binding, NAMES, NUMERIC, SHAPES), max_size=4, unique_by=lambda b: b.name).map(tuple)
CAPABILITIES = st.lists(st.sampled_from(["7.5", "8.9", "12.0"]), max_size=3).map(tuple)
FACTS = st.builds(
    EngineFacts, st.sampled_from(["rtx", "classic"]), st.just("1.7.1.116"), CAPABILITIES, BINDINGS, BINDINGS
)

GOOD: dict[str, Any] = {
    "library": "rtx", "version": "1.7.1.116", "capabilities": ["8.9"],
    "inputs": [{"name": "x", "dtype": "float32", "shape": [-1, 3]}],
    "outputs": [{"name": "y", "dtype": "float16", "shape": [2]}],
}  # fmt: skip


@given(FACTS)
def test_facts_survive_the_round_trip_through_json(facts: EngineFacts) -> None:
    assert facts_from_metadata(json.loads(json.dumps(metadata_from_facts(facts)))) == facts


def test_engine_is_static_where_every_size_is_known() -> None:
    facts = facts_from_metadata(GOOD)
    assert not facts.is_static
    assert EngineFacts("rtx", "1", (), facts.outputs, facts.outputs).is_static


@pytest.mark.parametrize(("path", "value", "why"), [
    (("library",), "tensorflow", "unknown TensorRT library 'tensorflow'"),
    (("library",), ["rtx"], "unknown TensorRT library"), (("version",), "", "not a version of TensorRT"),
    (("version",), 17, "not a version of TensorRT: 17"), (("version",), "1" * 41, "not a version of TensorRT"),
    (("capabilities",), "8.9", "not a list of compute capabilities"),
    (("capabilities",), ["8.9"] * 65, "not a list of compute capabilities"),
    (("capabilities",), [8.9], "not a compute capability: 8.9"),
    (("inputs",), {}, "the engine's inputs are not a list"),
    (("outputs",), None, "the engine's outputs are not a list"),
    (("inputs",), [GOOD["inputs"][0]] * 4097, "the engine's inputs are not a list"),
    (("inputs",), [GOOD["inputs"][0]] * 2, "two of the engine's inputs have one name"),
    (("inputs", 0), ["x"], "not an input or output of an engine"),
    (("inputs", 0), {"name": "x"}, "not an input or output of an engine"),
    (("inputs", 0, "name"), "", "not a name of a value"), (("inputs", 0, "name"), 7, "not a name of a value: 7"),
    (("inputs", 0, "dtype"), "float31", "x: not an element type of a GPU: 'float31'"),
    (("inputs", 0, "dtype"), "string", "x: not an element type of a GPU: 'string'"),
    (("inputs", 0, "shape"), None, "x: not a shape: None"), (("inputs", 0, "shape"), [1] * 9, "x: not a shape"),
    (("inputs", 0, "shape"), [-2], r"x: not a shape: \[-2\]"),
    (("inputs", 0, "shape"), [True], r"x: not a shape: \[True\]"), (("inputs", 0, "shape"), [2**63], "x: not a shape"),
    (("inputs", 0, "shape"), [1.5], r"x: not a shape: \[1\.5\]"),
])  # fmt: skip
def test_metadata_of_another_form_is_refused(path: tuple[Any, ...], value: object, why: str) -> None:
    bad = copy.deepcopy(GOOD)
    at: Any = bad
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(BundleError, match=why):
        facts_from_metadata(bad)


@pytest.mark.parametrize("key", sorted(GOOD))
def test_metadata_without_a_part_is_refused(key: str) -> None:
    with pytest.raises(BundleError):
        facts_from_metadata({name: value for name, value in GOOD.items() if name != key})

# SPDX-License-Identifier: Apache-2.0
"""Made-up inputs always pass the checks of the program that they are made for."""

import numpy as np
import pytest

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.runtime.input_checks import InputChecks
from nndeploy.runtime.sample_inputs import sample_inputs
from nndeploy.values.types import DTYPES, DimRange, MapType, OptionalType, SequenceType, TensorType


def manifest(*types, ranges=None):
    inputs = tuple(NamedType(f"x{i}", kind) for i, kind in enumerate(types))
    return Manifest("m", "0" * 64, inputs, (), (), {}, ranges=ranges or {})


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_is_made(dtype) -> None:
    man = manifest(TensorType(dtype, ("N", 2, None)), ranges={"N": DimRange(2, 8, 4)})
    found = InputChecks(man.inputs, man.ranges)(sample_inputs(man))
    assert found["x0"].shape == (4, 2, 1)


def test_every_kind_of_value_is_made() -> None:
    f32 = TensorType("float32", (2,))
    man = manifest(
        SequenceType(f32), OptionalType(f32), MapType("int64", TensorType("float32", ())),
        MapType("string", TensorType("float32", ())), TensorType("float32", None),
    )  # fmt: skip
    InputChecks(man.inputs, man.ranges)(sample_inputs(man))


def test_the_same_program_gives_the_same_inputs() -> None:
    man = manifest(TensorType("float32", (3,)))
    np.testing.assert_array_equal(sample_inputs(man)["x0"], sample_inputs(man)["x0"])
    assert sample_inputs(man)["x0"].max() > 0

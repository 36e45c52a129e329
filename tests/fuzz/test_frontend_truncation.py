# SPDX-License-Identifier: Apache-2.0
"""A model cut at every byte: one clear line and exit code 65, or it was whole; never another exception."""

from pathlib import Path

import onnx.parser
import pytest

from nndeploy.errors import NndeployError
from nndeploy.frontend.load import load_model

SMALL = """<ir_version: 8, opset_import: ["" : 17], producer_name: "test">
net (float[N,4] x, bool c) => (float[N,2] y, int64[N] k) <float[4,2] w = {1,2,3,4,5,6,7,8}, string[2] s = {"a", "b"}> {
    h = MatMul(x, w)
    b = Constant <value = float[2] {1, 2}> ()
    y = If(c) <
        then_branch = t () => (float[N,2] p) { p = Add(h, b) },
        else_branch = e () => (float[N,2] q) { q = Sub(h, b) }
    >
    m = ArgMax <axis = 1, keepdims = 0> (y)
    f = Cast <to = 1> (m)
    k = Cast <to = 7> (f)
}"""


def refusals(data: bytes) -> list[NndeployError | None]:
    """Returns for each length to which the model was cut its refusal, None where it loads."""
    return [refusal(data[:length]) for length in range(len(data) + 1)]


def refusal(data: bytes) -> NndeployError | None:
    try:
        load_model(data)
    except NndeployError as err:
        return err
    return None


def check_that_only_the_whole_loads(data: bytes) -> None:
    *cut, whole = refusals(data)
    assert whole is None
    assert {error.exit_code if error else 0 for error in cut} == {65}
    assert all("\n" not in str(error) and len(str(error)) < 300 for error in cut)


def test_every_cut_of_a_small_model_is_refused() -> None:
    data = onnx.parser.parse_model(SMALL).SerializeToString()
    assert 300 < len(data) < 700
    check_that_only_the_whole_loads(data)


def test_a_cut_before_the_metadata_leaves_a_whole_model() -> None:
    model = onnx.parser.parse_model(SMALL)
    length = model.ByteSize()
    model.metadata_props.add(key="author", value="somebody")
    found = refusals(model.SerializeToString())
    assert [at for at, error in enumerate(found) if error is None] == [length, model.ByteSize()]


def test_every_cut_of_a_real_model_is_refused(models_folder: Path) -> None:
    check_that_only_the_whole_loads((models_folder / "random_forest_iris.onnx").read_bytes())


@pytest.mark.parametrize("name", ["micro_kws_qdq", "silero_vad_v2_mini", "ultraface_rfb320"])
def test_cuts_of_larger_models_are_refused(models_folder: Path, name: str) -> None:
    data = (models_folder / f"{name}.onnx").read_bytes()
    cuts = [refusal(data[:length]) for length in range(0, len(data), len(data) // 211)]
    assert {error.exit_code if error else 0 for error in cuts} == {65}

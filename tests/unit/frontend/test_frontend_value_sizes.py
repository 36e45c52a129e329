# SPDX-License-Identifier: Apache-2.0
"""A few bytes of model that ask for more memory than there is are refused, with the node and the size."""

import onnx.parser
import pytest

from nndeploy.errors import ModelError
from nndeploy.frontend.load import load_model
from nndeploy.frontend.value_sizes import check_value_sizes

GIB = 1 << 30

BOMBS = {
    "ConstantOfShape": ("b = ConstantOfShape(s)", "64 GiB, FLOAT [17179869184]"),
    "Expand": ("b = Expand(x, s)", "64 GiB, FLOAT [17179869184]"),
    "Tile": ("b = Tile(x, s)", "64 GiB, FLOAT [17179869184]"),
    "Range": (
        "z = Constant<value_int = 0>() n = Constant<value_int = 17179869184>() o = Constant<value_int = 1>() "
        "b = Range(z, n, o)",
        "128 GiB, INT64 [17179869184]",
    ),
    "Pad": ("p = Constant<value_ints = [17179869184, 17179869184]>() b = Pad(x, p)", "128 GiB, FLOAT [34359738369]"),
    "OneHot": (
        "i = Cast<to = 7>(x) v = Constant<value_floats = [0.0, 1.0]>() b = OneHot(i, s, v)",
        "64 GiB, FLOAT [1,17179869184]",
    ),
    "Resize": (
        "h = Constant<value_ints = [1, 1, 1, 1]>() q = Reshape(x, h) "
        "e = Constant<value_ints = [1, 1, 131072, 131072]>() "
        'b = Resize<mode = "nearest">(q, , , e)',
        "64 GiB, FLOAT [1,1,131072,131072]",
    ),
    "Einsum": (
        'h = Constant<value_ints = [4096]>() q = Expand(x, h) b = Einsum<equation = "a,b,c->abc">(q, q, q)',
        "256 GiB, FLOAT [4096,4096,4096]",
    ),
}


def model(body: str) -> onnx.ModelProto:
    constant = "s = Constant<value_ints = [17179869184]>()"
    text = f'<ir_version: 9, opset_import: ["": 17]> g (float[1] x) => (float y) {{ {constant} {body} y = Size(b) }}'
    return onnx.parser.parse_model(text.replace("float y)", "int64 y)"))


@pytest.mark.parametrize("op", BOMBS)
def test_a_value_that_no_memory_holds_is_refused_by_its_node(op: str) -> None:
    body, size = BOMBS[op]
    loaded = load_model(model(body))
    with pytest.raises(ModelError) as caught:
        check_value_sizes(loaded.model, 8 * GIB)
    assert f"({op})" in caught.value.where
    assert f"of {size}" in caught.value.what
    assert caught.value.what.endswith("the limit of the memory is 8 GiB")
    check_value_sizes(loaded.model, 1 << 50)


def test_a_chain_that_doubles_is_refused_where_it_gets_too_large() -> None:
    doubling = " ".join(f"d{i + 1} = Concat<axis = 0>(d{i}, d{i})" for i in range(40))
    loaded = load_model(model(f"d0 = Identity(x) {doubling} b = Identity(d40)"))
    with pytest.raises(ModelError, match=r"makes 'd32' of 16 GiB"):
        check_value_sizes(loaded.model, 8 * GIB)


def test_values_inside_bodies_count() -> None:
    text = """<ir_version: 9, opset_import: ["": 17]>
g (bool c, float[1] x) => (int64 y) {
  y = If(c) <
    then_branch = a () => (int64 n) { s = Constant<value_ints = [17179869184]>() b = Expand(x, s) n = Size(b) },
    else_branch = e () => (int64 m) { m = Size(x) }
  >
}"""
    with pytest.raises(ModelError, match="makes 'b"):
        check_value_sizes(load_model(onnx.parser.parse_model(text)).model, 8 * GIB)


def test_sizes_that_depend_on_the_inputs_are_not_guessed() -> None:
    text = (
        '<ir_version: 9, opset_import: ["": 17]> g (float[N, 1073741824] x) => (float[N, 1073741824] y) { y = Abs(x) }'
    )
    loaded = load_model(onnx.parser.parse_model(text))
    check_value_sizes(loaded.model, 4 * GIB)
    with pytest.raises(ModelError, match="of 4 GiB"):
        check_value_sizes(loaded.model, 4 * GIB - 1)

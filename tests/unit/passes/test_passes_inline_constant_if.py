# SPDX-License-Identifier: Apache-2.0
"""An If whose condition is known is replaced by the branch it takes."""

import numpy as np
import onnx_ir as ir
from passes_harness import constants, graph, nodes, rewritten

NAME = "inline-constant-if"
IF = """{ y = If(c) < then_branch = t () => (float[2] a) { n = Neg(x) a = Abs(n) },
                     else_branch = e () => (float[2] b) { b = Relu(x) }> }"""


def test_condition_known_only_at_run_time_stays() -> None:
    assert rewritten(NAME, graph(f"(float[2] x, bool c) => (float[2] y) {IF}")) == 0


def test_what_only_the_other_branch_read_is_no_longer_read() -> None:
    model = graph("""(float[2] x) => (float[2] y) <bool c = {1}> { r = Relu(x) y = If(c) <
            then_branch = t () => (float[2] a) { a = Abs(x) },
            else_branch = e () => (float[2] b) { b = Neg(r) }> }""")  # fmt: skip
    assert rewritten(NAME, model) == 1
    assert not model.graph[0].outputs[0].uses()


def test_initializers_of_the_branch_move_and_names_stay_unique() -> None:
    model = graph("""(float[2] x) => (float[2] y) <bool c = {1}, float[2] k = {7, 7}> { v = Add(x, k) y = If(c) <
            then_branch = t () => (float[2] a) { m = Add(v, x) a = Neg(m) },
            else_branch = e () => (float[2] b) { b = Neg(v) }> }""")  # fmt: skip
    branch = model.graph[1].attributes["then_branch"].as_graph()
    inner = ir.Value(name="k", const_value=ir.tensor(np.array([1, 2], np.float32), name="k"))
    inner.dtype, inner.shape = ir.DataType.FLOAT, ir.Shape([2])
    branch.register_initializer(inner)
    branch[0].replace_input_with(1, inner)
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["v = Add(x, k)", "m = Add(v, k_1)", "y = Neg(m)"]
    assert constants(model)["k_1"] == [1.0, 2.0]

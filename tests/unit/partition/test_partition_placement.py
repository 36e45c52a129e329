# SPDX-License-Identifier: Apache-2.0
"""Placement: the first backend that takes a node gets it, and every refusal keeps its reason."""

import threading
from collections.abc import Callable

import onnx
import onnx_ir as ir
import pytest

from nndeploy.errors import ModelError, UnavailableError, UsageError
from nndeploy.partition.cost import Costs, estimate_costs
from nndeploy.partition.islands import merge_islands
from nndeploy.partition.kinds import CONVOLUTION_3X3
from nndeploy.partition.placement import GROUP_KEY, Banned, Placement, place
from nndeploy.plugin.interface import MayTouch, Support, Transform

CHAIN = """<ir_version: 8, opset_import: ["": 18]>
g (float[1,4] x) => (float[1,4] y) {
    [first] a = Relu(x)
    [second] b = Sigmoid(a)
    [third] c = Tanh(b)
    [fourth] y = Relu(c)
}"""


def model_of(text: str) -> ir.Model:
    return ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))


def takes(*operators: str) -> Callable[[ir.Node], Support]:
    return lambda n: Support(True) if n.op_type in operators else Support(False, f"no kernel for {n.op_type}")


def placed(
    model: ir.Model,
    backends: dict[str, Callable[[ir.Node], Support]],
    transforms: dict[str, list[Transform]] | None = None,
    pins: tuple[tuple[str, str], ...] = (),
    banned: Banned | None = None,
    num_at_once: int = 1,
) -> Placement:
    return place(
        model, list(backends), lambda name, asked: [backends[name](node) for node in asked.graph],
        transforms=lambda name: (transforms or {}).get(name, []),
        seconds=lambda asked: {node.name or "": 1.0 for node in asked.graph}, pins=pins, banned=banned,
        num_at_once=num_at_once,
    )  # fmt: skip


EVERYTHING = takes("Relu", "Sigmoid", "Tanh", "Mul", "Add")


def test_the_first_backend_that_takes_a_node_gets_it_and_refusals_keep_their_reason() -> None:
    found = placed(model_of(CHAIN), {"fast": takes("Relu", "Tanh"), "slow": EVERYTHING})
    assert found.backend_of == {"first": "fast", "second": "slow", "third": "fast", "fourth": "fast"}
    assert found.refusals("second", tuple(found.answers), "{} later".format) == {"fast": "no kernel for Sigmoid"}
    assert found.refusals("first", tuple(found.answers), "{} later".format) == {}


def test_a_node_without_any_taker_is_an_error_with_every_reason() -> None:
    with pytest.raises(ModelError, match=r"node 'second'.*Sigmoid.*fast: no kernel for Sigmoid; slow: no kernel"):
        placed(model_of(CHAIN), {"fast": takes("Relu", "Tanh"), "slow": takes("Relu")})


def test_as_many_backends_as_may_be_are_asked_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=30)

    def waits_for_the_other(_node: ir.Node) -> Support:
        both.wait()
        return Support(True)

    found = placed(model_of(CHAIN), {"fast": waits_for_the_other, "slow": waits_for_the_other}, num_at_once=2)
    assert set(found.backend_of.values()) == {"fast"}


def test_no_backend_at_all_is_an_error() -> None:
    with pytest.raises(UnavailableError, match="no backend is left"):
        placed(model_of(CHAIN), {})


def test_a_banned_node_moves_on_with_the_reason() -> None:
    banned = Banned().with_nodes("fast", ["third"], "wrong numbers")
    found = placed(model_of(CHAIN), {"fast": takes("Relu", "Tanh"), "slow": EVERYTHING}, banned=banned)
    assert found.backend_of["third"] == "slow"
    assert found.refusals("third", tuple(found.answers), "{} later".format) == {"fast": "wrong numbers"}


def test_a_pin_moves_a_node_to_a_lower_backend() -> None:
    found = placed(model_of(CHAIN), {"fast": EVERYTHING, "slow": EVERYTHING}, pins=(("f*", "slow"),))
    assert found.backend_of == {"first": "slow", "second": "fast", "third": "fast", "fourth": "slow"}
    assert found.refusals("first", tuple(found.answers), "{} later".format) == {"fast": "fast later"}


@pytest.mark.parametrize(("pin", "message"), [
    (("first", "fats"), "did you mean 'fast'"), (("frist", "fast"), "did you mean 'first'"),
    (("second", "fast"), "does not take the pinned node 'second': no kernel for Sigmoid"),
])  # fmt: skip
def test_a_pin_that_cannot_be_obeyed_is_an_error(pin: tuple[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        placed(model_of(CHAIN), {"fast": takes("Relu", "Tanh"), "slow": EVERYTHING}, pins=(pin,))


def test_nodes_of_one_group_stay_on_one_backend_that_takes_them_all() -> None:
    model = model_of(CHAIN)
    for node in model.graph:
        if node.name in ("first", "second"):
            node.metadata_props[GROUP_KEY] = "g0"
    found = placed(model, {"fast": takes("Relu", "Tanh"), "slow": EVERYTHING})
    assert found.backend_of == {"first": "slow", "second": "slow", "third": "fast", "fourth": "fast"}


class SigmoidToTanh:
    """Replaces Sigmoid by an operator called `into`; stands for a backend's transform."""

    name = "sigmoid-to-tanh"

    def __init__(self, into: str) -> None:
        self.into = into

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        count = 0
        for node in list(model.graph):
            if node.op_type == "Sigmoid" and may_touch(node):
                new = ir.node(self.into, [node.inputs[0]], name="")
                ir.convenience.replace_nodes_and_values(model.graph, node, [node], [new], node.outputs, new.outputs)
                count += 1
        return count


def test_a_transform_stays_only_if_the_backend_then_takes_more() -> None:
    helps = placed(
        model_of(CHAIN), {"fast": takes("Relu", "Tanh"), "slow": EVERYTHING}, {"fast": [SigmoidToTanh("Tanh")]}
    )
    assert set(helps.backend_of.values()) == {"fast"}
    assert helps.transformed == (("fast", 1),)
    assert all(node.name for node in helps.model.graph)
    useless = placed(
        model_of(CHAIN), {"fast": takes("Relu", "Tanh"), "slow": EVERYTHING}, {"fast": [SigmoidToTanh("Mul")]}
    )
    assert useless.transformed == ()
    assert [node.op_type for node in useless.model.graph] == ["Relu", "Sigmoid", "Tanh", "Relu"]


def test_a_transform_never_touches_what_a_higher_backend_took() -> None:
    found = placed(
        model_of(CHAIN),
        {"fast": takes("Relu", "Sigmoid"), "slow": takes("Relu", "Tanh")},
        {"slow": [SigmoidToTanh("Tanh")]},
    )
    assert found.backend_of == {"first": "fast", "second": "fast", "third": "slow", "fourth": "fast"}


def test_a_transform_that_fails_is_a_warning_and_the_model_stays_as_it_was() -> None:
    class Broken:
        name = "broken"

        def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
            model.graph.remove(next(iter(model.graph)), safe=False)
            raise KeyError("oh")

    found = placed(model_of(CHAIN), {"fast": takes("Relu", "Tanh"), "slow": EVERYTHING}, {"fast": [Broken()]})
    assert found.warnings == ("a transform of fast failed: KeyError: 'oh'",)
    assert [node.op_type for node in found.model.graph] == ["Relu", "Sigmoid", "Tanh", "Relu"]


def costs(**seconds: float) -> Costs:
    return Costs(seconds, {})


def test_an_island_not_worth_its_crossing_moves_to_its_neighbour() -> None:
    found = placed(model_of(CHAIN), {"fast": takes("Tanh"), "slow": EVERYTHING})
    regions, backend_of, moved = merge_islands(found, costs(first=1.0, second=1.0, third=1e-9, fourth=1.0))
    assert [region.backend for region in regions] == ["slow"]
    assert backend_of["third"] == "slow"
    assert "not worth crossing to fast" in moved["third"]


def test_a_heavy_region_is_no_island() -> None:
    found = placed(model_of(CHAIN), {"fast": takes("Tanh"), "slow": EVERYTHING})
    regions, _, moved = merge_islands(found, costs(first=1.0, second=1.0, third=1.0, fourth=1.0))
    assert [region.backend for region in regions] == ["slow", "fast", "slow"]
    assert moved == {}


def test_a_pinned_island_stays() -> None:
    found = placed(model_of(CHAIN), {"fast": EVERYTHING, "slow": EVERYTHING}, pins=(("third", "slow"),))
    regions, _, _ = merge_islands(found, costs(first=1.0, second=1.0, third=1e-9, fourth=1.0))
    assert [region.backend for region in regions] == ["fast", "slow", "fast"]


def test_an_island_stays_where_no_neighbour_takes_it() -> None:
    found = placed(model_of(CHAIN), {"fast": takes("Relu", "Tanh"), "slow": EVERYTHING})
    _, backend_of, moved = merge_islands(found, costs(first=1.0, second=1e-9, third=1.0, fourth=1.0))
    assert backend_of["second"] == "slow"
    assert moved == {}


def test_nothing_moves_to_the_last_resort() -> None:
    found = placed(model_of(CHAIN), {"fast": takes("Tanh"), "reference": EVERYTHING})
    _, backend_of, moved = merge_islands(found, costs(first=1.0, second=1.0, third=1e-9, fourth=1.0), ["reference"])
    assert backend_of["third"] == "fast"
    assert moved == {}


def test_an_island_stays_where_its_neighbour_is_much_slower() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[1,4,8,8] x, float[4,4,3,3] w) => (float[1,4,6,6] y) {
            [first] a = Relu(x)
            [second] b = Conv(a, w)
            [third] y = Relu(b)
        }"""
    seconds = Costs({"first": 1.0, "second": 10e-6, "third": 1.0}, {}, kinds={"second": CONVOLUTION_3X3})
    slow = placed(model_of(text), {"onnxruntime": takes("Conv"), "reference": takes("Conv", "Relu")})
    assert merge_islands(slow, seconds)[1]["second"] == "onnxruntime"
    like = placed(model_of(text), {"onnxruntime": takes("Conv"), "openvino": takes("Conv", "Relu")})
    assert merge_islands(like, seconds)[1]["second"] == "openvino"


def test_costs_count_multiply_adds_of_a_convolution() -> None:
    model = model_of("""<ir_version: 8, opset_import: ["": 18]>
        g (float[1,64,56,56] x, float[128,64,3,3] w) => (float[1,128,56,56] y) {
            [conv] c = Conv <pads = [1,1,1,1]> (x, w)
            [relu] y = Relu(c)
        }""")  # fmt: skip
    found = estimate_costs(model, {})
    assert found.seconds["conv"] == pytest.approx(2 * 128 * 56 * 56 * 64 * 9 / 100e9)
    assert found.share("conv") + found.share("relu") == pytest.approx(1.0)
    assert found.value_bytes["c"] == 128 * 56 * 56 * 4

# SPDX-License-Identifier: Apache-2.0
"""What is not taken, each with its reason; and what decides windows of convolution and pooling."""

import numpy as np
import onnx_ir as ir
import pytest
from cudnn_models import cudnn_target, model_from_text
from nndeploy_cudnn import probe as probing
from nndeploy_cudnn.library import HINT
from nndeploy_cudnn.lowering import refusal_of
from nndeploy_cudnn.operations import Reduction
from nndeploy_cudnn.patterns import translate
from nndeploy_cudnn.patterns.translation import Translation
from nndeploy_cudnn.patterns.windows import Windows, windows_of
from nndeploy_cudnn.planner import Planned
from nndeploy_cudnn.plugin import Plugin

from nndeploy.plugin.interface import BuildOptions
from nndeploy.values.types import DimRange


class WillingPlans:
    """Has a plan for everything, so that what is refused here is refused by the patterns."""

    def plan(self, graph: object, with_fallback: bool) -> Planned:
        return Planned(text="{}")


class UnwillingPlans:
    """Has no plan for anything."""

    def plan(self, graph: object, with_fallback: bool) -> Planned:
        return Planned(reason="CUDNN_STATUS_NOT_SUPPORTED")


def reason(text: str, ranges: dict[str, DimRange] | None = None) -> str:
    """Returns why the last node of a model is refused."""
    return refusal_of(list(model_from_text(text).graph)[-1], WillingPlans(), ranges or {})


REFUSED = {
    "(int64[2,3] x) => (int64[2,3] y) { y = Abs(x) }": "'x' is int64; only float32, float16 and bfloat16",
    "(float[N,3] x) => (float[N,3] y) { y = Relu(x) }": "the size N of 'x' is not fixed",
    "(float[?,3] x) => (float[?,3] y) { y = Relu(x) }": "of 'x' is not fixed",
    "(float[0,3] x) => (float[0,3] y) { y = Relu(x) }": "'x' is empty",
    "(float[1,1,1,1,1,1,1,1,1] x) => (float[1,1,1,1,1,1,1,1,1] y) { y = Relu(x) }": "has 9 axes; cuDNN takes 8",
    "(float[2,3] x) => (float[2,3] y) { y = Sign(x) }": "cuDNN's graph API has no Sign",
    "(float[1,2,3,3,3,3] x, float[1,2,1,1,1,1] w) => (float[1,1,3,3,3,3] y) { y = Conv(x,w) }": "over 4 axes",
    "(float[1,4,4,4] x, float[6,2,3,3] w) => (float[1,6,2,2] y) { y = Conv(x,w) }": "do not fit",
    "(float[1,2,9] x, float[2,2,3] w) => (float[1,2,19] y) { y = ConvTranspose<strides=[2], output_shape=[19]>(x,w) }":
        "output_shape",
    "(float[1,1,9,9] x) => (float[1,1,5,5] y) { y = MaxPool<kernel_shape=[3,3], dilations=[2,2]>(x) }": "no dilations",
    "(float[1,1,4] x) => (float[1,1,2] y, int64[1,1,2] i) { y, i = MaxPool<kernel_shape=[2], strides=[2]>(x) }":
        "output 'i' is used",
    """(float[1,1,4,4] x) => (float[1,1,2,2] y)
       { y = AveragePool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1, count_include_pad=1>(x) }""": "hangs over",
    "(float[1,2,3,4] x) => (float[1,2,8] y) <int64[3] s = {1,2,-1}, int64[1] i = {0}> { y = Gather<axis=3>(x,i) }": "",
    "(float[6] x) => (float[3] y) <int64[3] i = {0,2,4}> { y = Gather(x,i) }": "no Gather of several elements",
    "(float[6] x) => (float[6] y) <int64[1] s = {5}, int64[1] e = {-7}, int64[1] a = {0}, int64[1] t = {-1}> "
    "{ y = Slice(x,s,e,a,t) }": "goes backwards",
    "(float[6] x, int64[1] s) => (float[N] y) <int64[1] e = {4}> { y = Slice(x,s,e) }": "not fixed",
    "(float[2,3] x) => (float[2,5] y) <int64[4] p = {0,1,0,1}, float v = {1.0}> { y = Pad(x,p,v) }": "zeros only",
    "(float[2,3] x) => (float[2,5] y) <int64[4] p = {0,1,0,1}> { y = Pad<mode=\"reflect\">(x,p) }": "zeros only",
    "(float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1.0,1.0,2.0,2.0}> { y = Resize<mode=\"linear\">(x,,s) }":
        "only the nearest",
    "(float[1,1,4,4] x) => (float[1,1,6,6] y) <float[4] s = {1.0,1.0,1.5,1.5}> { y = Resize(x,,s) }": "equally often",
    """(float[2,4,3] x, float[4] s, float[4] b) => (float[2,4,3] y) { y = InstanceNormalization(x,s,b) }""":
        "input 1 is not a constant",
    "(float[2,4] x, float lo) => (float[2,4] y) { y = Clip(x,lo) }": "'lo' is not a constant",
    "(float[2,4] x) => (float[2,4] y) <bool t = {1}, float r = {0.5}> { y = Dropout(x,r,t) }": "training mode",
    "(float[2,4,3] x) => (float[2,4,3] y) { y = LRN<size=3>(x) }": "LRN over something else",
}  # fmt: skip
REFUSED = {text: said for text, said in REFUSED.items() if said}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text.split("{")[-1].strip(" }"))
def test_node_is_refused_with_a_reason(text: str) -> None:
    assert REFUSED[text] in reason(text)


def test_symbol_of_one_size_is_that_size() -> None:
    text = "(float[N,3] x) => (float[N,3] y) { y = Relu(x) }"
    assert reason(text, {"N": DimRange(4, 4, 4)}) == ""
    assert "the size N (1..4)" in reason(text, {"N": DimRange(1, 4, 4)}), "N is no batch of the model"


def test_reason_of_cudnn_is_kept_with_the_name_of_the_value() -> None:
    node = next(iter(model_from_text("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }").graph))
    assert refusal_of(node, UnwillingPlans(), {}) == "'y': CUDNN_STATUS_NOT_SUPPORTED"


@pytest.mark.parametrize(("opset", "num_reduced"), [(11, 2), (13, 1)])
def test_softmax_of_old_models_is_over_all_axes_from_one_on(opset: int, num_reduced: int) -> None:
    x, y = (ir.val(name, ir.DataType.FLOAT, (2, 3, 4)) for name in "xy")
    node = ir.Node("", "Softmax", [x], [ir.AttrInt64("axis", 1)], outputs=[y])
    graph = ir.Graph([x], [y], nodes=[node], opset_imports={"": opset})
    translation = Translation({})
    translate(next(iter(graph)), translation)
    reductions = [operation for operation in translation.operations if isinstance(operation, Reduction)]
    assert [len(reduction.axes) for reduction in reductions] == [num_reduced] * 2


def test_operator_of_another_domain_is_refused() -> None:
    x, y = (ir.val(name, ir.DataType.FLOAT, (2,)) for name in "xy")
    node = ir.Node("com.example", "Relu", [x], outputs=[y])
    assert refusal_of(node, WillingPlans(), {}) == "cuDNN's graph API has no Relu"


def test_target_without_gpu_refuses_everything() -> None:
    model = model_from_text("(float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Abs(a) }")
    said = Plugin().supports(model, cudnn_target("x86-64-v3"), BuildOptions())
    assert [(support.ok, support.reason) for support in said] == [(False, "the target has no NVIDIA GPU")] * 2
    probe = Plugin().probe(cudnn_target("x86-64-v3"))
    assert (probe.can_build, probe.can_run, probe.hint, probe.absent_hardware) == (False, False, "", "NVIDIA GPU")
    assert probe.reason


def test_missing_cudnn_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "installed_path", lambda: "")
    probe = Plugin().probe(cudnn_target("rtx4090"))
    assert (probe.can_build, probe.can_run, probe.hint, probe.absent_hardware) == (False, False, HINT, "")


@pytest.mark.parametrize(("attributes", "before", "after"), [
    ("", (0, 0), (0, 0)), ("pads=[1,2,3,4]", (1, 2), (3, 4)), ('auto_pad="VALID"', (0, 0), (0, 0)),
    ('auto_pad="SAME_UPPER", strides=[2,2]', (0, 1), (1, 1)), ('auto_pad="SAME_LOWER", strides=[2,2]', (1, 1), (0, 1)),
    ('auto_pad="SAME_UPPER", dilations=[2,1]', (2, 1), (2, 1)),
])  # fmt: skip
def test_padding_is_what_the_attributes_say(attributes: str, before: tuple[int, ...], after: tuple[int, ...]) -> None:
    close = f"<{attributes}>" if attributes else ""
    text = f"(float[1,1,8,7] x, float[1,1,3,3] w) => (float[1,1,?,?] y) {{ y = Conv{close}(x,w) }}"
    node = next(iter(model_from_text(text).graph))
    windows = windows_of(node, (3, 3), (8, 7))
    assert (windows.before, windows.after) == (before, after)


def test_windows_count_as_numpy_slides_them() -> None:
    windows = Windows((3, 2), (2, 3), (1, 2), (1, 0), (0, 1))
    padded = np.zeros((9 + 1, 8 + 1))
    rows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))[::2, ::3].shape[:2]
    assert windows.positions((9, 8)) == rows

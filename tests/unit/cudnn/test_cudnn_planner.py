# SPDX-License-Identifier: Apache-2.0
"""The planner and its child: plans of the real cuDNN without a GPU, crashes that cost one question, small questions."""

import base64
import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cudnn_models import cudnn_target
from nndeploy_cudnn import planner as planner_module
from nndeploy_cudnn.engines import in_short
from nndeploy_cudnn.graph import Graph, GraphOperation, GraphTensor, graph_to_json
from nndeploy_cudnn.planner import Planned, Planner, planner_for
from nndeploy_cudnn.planner_child import code_architectures
from nndeploy_cudnn.support import SmallPlanner, smaller
from nndeploy_cudnn.views import channels_last, row_major

from nndeploy.errors import UnavailableError

KNOWN_TARGETS = ["h200", "rtx3090", "rtx4090", "rtx5090", "t4", "jetson-orin"]
QUICK = ("h200", "t4", "rtx5090")


def pointwise(mode: str, dims: tuple[int, ...], dtype: str = "float32", exact: bool = False) -> Graph:
    tensors = tuple(GraphTensor(uid, dims, row_major(dims), dtype) for uid in (1, 2))
    return Graph(tensors, (GraphOperation("pointwise", (("x", 1), ("y", 2)), (("mode", mode),)),), exact)


def convolution(dtype: str = "float32", channels: int = 16, size: int = 14) -> Graph:
    shapes = ((1, channels, size, size), (channels, channels, 3, 3), (1, channels, size, size))
    tensors = tuple(GraphTensor(uid, dims, channels_last(dims), dtype) for uid, dims in enumerate(shapes, start=1))
    attributes = (("strides", (1, 1)), ("before", (1, 1)), ("after", (1, 1)), ("dilations", (1, 1)), ("alpha", 1.0))
    operation = GraphOperation("convolution", (("x", 1), ("w", 2), ("y", 3)), attributes)
    return Graph(tensors, (operation,), exact=dtype == "float32")


def norm(target: str) -> Graph:
    """A layer normalisation, for which cuDNN compiles a kernel."""
    dims = ((64, 256, 1, 1), (1, 256, 1, 1), (1, 256, 1, 1), (1, 1, 1, 1), (64, 256, 1, 1))
    tensors = [GraphTensor(uid, d, row_major(d), "float32", by_value=uid == 4) for uid, d in enumerate(dims, start=1)]
    ports = (("x", 1), ("scale", 2), ("bias", 3), ("epsilon", 4), ("y", 5))
    return Graph(tuple(tensors), (GraphOperation("normalization", ports, (("mode", "layer"),)),), exact=False)


@pytest.fixture
def planner(needs_cudnn: None) -> Iterator[Planner]:
    with planner_for(cudnn_target("h200").gpus[0]) as found:
        yield found


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KNOWN_TARGETS]
)
def test_every_known_gpu_has_plans_with_code_for_itself(needs_cudnn: None, name: str) -> None:
    gpu = cudnn_target(name).gpus[0]
    with planner_for(gpu) as planner:
        precompiled = planner.plan(convolution(), with_fallback=True)
        compiled = planner.plan(norm(name), with_fallback=False)
    assert (precompiled.reason, precompiled.is_compiled) == ("", False)
    assert (compiled.reason, compiled.is_compiled) == ("", True)
    assert code_architectures(compiled.text) == {int(gpu.compute_capability.replace(".", ""))}


def test_float32_plan_uses_no_tensor_cores(planner: Planner) -> None:
    exact = convolution(channels=64, size=56)
    rounding = replace(exact, exact=False)
    assert planner.plan(exact, with_fallback=True).text != planner.plan(rounding, with_fallback=True).text


def test_matmul_in_float32_is_refused_because_it_would_round(planner: Planner) -> None:
    dims = ((1, 64, 32), (1, 32, 48), (1, 64, 48))
    tensors = tuple(GraphTensor(uid, d, row_major(d), "float32") for uid, d in enumerate(dims, start=1))
    graph = Graph(tensors, (GraphOperation("matmul", (("x", 1), ("w", 2), ("y", 3))),), exact=True)
    assert "rounds to TF32" in planner.plan(graph, with_fallback=True).reason


def test_refusal_has_cudnns_words_on_one_line(planner: Planner) -> None:
    dims = (2, 3, 4, 5)
    strided = tuple(GraphTensor(uid, dims, (1000, 200, 20, 3), "float32") for uid in (1, 2))
    reason = planner.plan(replace(pointwise("relu", dims), tensors=strided), with_fallback=True).reason
    assert re.fullmatch(r"CUDNN_STATUS_\w+: [^;\n]+ in [^;\n]+", reason)


def test_long_log_of_cudnn_is_cut_to_its_innermost_reason() -> None:
    log = """{"engineId":3}
Warning: CUDNN_STATUS_NOT_SUPPORTED_LAYOUT; Reason: !is_packed()
Warning: CUDNN_STATUS_NOT_SUPPORTED_LAYOUT; Reason: check_support(node)
Warning: CUDNN_STATUS_NOT_SUPPORTED; Reason: finalize_internal()
{"engineId":2}
Warning: CUDNN_STATUS_NOT_SUPPORTED; Reason: other"""
    assert in_short(log) == "CUDNN_STATUS_NOT_SUPPORTED_LAYOUT: !is_packed() in check_support(node)"
    assert in_short("Error: CUDNN_STATUS_BAD_PARAM; Reason: x Warning: CUDNN_STATUS_Y; Reason: z") == (
        "CUDNN_STATUS_BAD_PARAM: x"
    )
    assert in_short("rounds to\nTF32") == "rounds to TF32"


def test_equal_graphs_are_asked_about_once(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    first = planner.plan(convolution(), with_fallback=False)
    monkeypatch.setattr(planner, "_ask", lambda question: pytest.fail("it was asked again"))
    assert planner.plan(convolution(), with_fallback=False) is first


def test_precompiled_plan_has_the_same_bytes_in_another_process(needs_cudnn: None) -> None:
    texts = set()
    for _ in range(2):
        with planner_for(cudnn_target("t4").gpus[0]) as planner:
            texts.add(planner.plan(convolution(), with_fallback=True).text)
    assert len(texts) == 1


def test_crash_costs_one_question(planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert planner._process is not None
    real_exchange = planner._exchange

    def crash_first(question: dict[str, Any]) -> dict[str, Any]:
        if "abs" in question["graph"]:
            assert planner._process is not None
            planner._process.kill()
        return real_exchange(question)

    monkeypatch.setattr(planner, "_exchange", crash_first)
    assert planner.plan(pointwise("abs", (1, 8, 8)), with_fallback=False).reason == "cuDNN crashed (SIGKILL) on it"
    monkeypatch.undo()
    assert planner.plan(convolution(), with_fallback=True).reason == ""


def test_too_many_crashes_are_the_end(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner_module, "MAX_CRASHES", 0)
    assert planner._process is not None
    planner._process.kill()
    with pytest.raises(UnavailableError, match=r"cuDNN crashed \(SIGKILL\) 1 times"):
        planner.plan(convolution(), with_fallback=False)


def test_closing_twice_is_closing(planner: Planner) -> None:
    process = planner._process
    planner.close()
    planner.close()
    assert process is not None
    assert process.returncode == 0


def test_gpu_without_descriptor_is_one_line() -> None:
    gpu = replace(cudnn_target("t4").gpus[0], cudnn=())
    with pytest.raises(UnavailableError, match="does not describe Tesla T4 for cuDNN"), planner_for(gpu):
        pass


def test_descriptor_that_cudnn_refuses_is_one_line(needs_cudnn: None) -> None:
    gpu = cudnn_target("t4").gpus[0]
    wrong = tuple((key, -5 if key == "smCountOrigin" else value) for key, value in gpu.cudnn)
    with (
        pytest.raises(UnavailableError, match="cuDNN cannot make plans for Tesla T4"),
        planner_for(replace(gpu, cudnn=wrong)),
    ):
        pass


def test_child_without_cudnn_says_so_and_ends() -> None:
    code = (
        "import sys; sys.modules['nvidia'] = None; import nndeploy_cudnn.library as l; l.LIBRARY_NAME = 'libnone.so';"
    )
    code += "from nndeploy_cudnn.planner_child import main; main()"
    done = subprocess.run([sys.executable, "-c", code], input=b'{"deviceVer": 750}\n', capture_output=True, check=True)
    assert "cuDNN cannot be loaded" in json.loads(done.stdout)["error"]


@pytest.mark.parametrize(("abi", "flags", "architecture"), [(8, 0x6005904, 89), (8, 0x6007802, 120), (7, 0x550556, 86)])
def test_architecture_of_device_code_is_read_from_its_header(abi: int, flags: int, architecture: int) -> None:
    header = bytearray(64)
    header[8] = abi
    struct.pack_into("<I", header, 48, flags)
    kernels = [{"cubin": base64.b64encode(bytes(header)).decode()}, {"name": "one without code"}]
    assert code_architectures(json.dumps({"engine": {"payload": {"kernels": kernels}}})) == {architecture}


def test_precompiled_plan_holds_no_code() -> None:
    assert code_architectures('{"engine": {"engineId": 3}}') == set()


class Recorder:
    """Remembers the graphs that it is asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def plan(self, graph: Graph, with_fallback: bool) -> Planned:
        self.asked.append(graph_to_json(graph))
        return Planned(text="{}")


def test_element_wise_graphs_are_asked_about_in_a_small_size() -> None:
    recorder = Recorder()
    asked = SmallPlanner(recorder)  # type: ignore[arg-type]
    for dims in ((1, 56, 512), (1, 64, 128), (1, 56, 515), (1, 3, 512)):
        asked.plan(pointwise("relu", dims), with_fallback=False)
    sizes = [json.loads(text)[0][0][1:3] for text in recorder.asked]
    assert sizes == [[[1, 8, 8], [64, 8, 1]]] * 2 + [[[1, 8, 11], [88, 11, 1]], [[1, 3, 8], [24, 8, 1]]]


def test_graph_in_a_small_size_keeps_its_memory_order() -> None:
    dims = (2, 64, 56, 56)
    graph = pointwise("relu", dims)
    tensors = tuple(replace(tensor, strides=channels_last(dims)) for tensor in graph.tensors)
    assert smaller(replace(graph, tensors=tensors)).tensors[0].strides == channels_last((2, 8, 8, 8))


def test_other_graphs_are_asked_about_as_they_are() -> None:
    strided = pointwise("relu", (1, 56, 512))
    strided = replace(strided, tensors=(replace(strided.tensors[0], strides=(90000, 1024, 1)), strided.tensors[1]))
    assert smaller(convolution()) == convolution()
    assert smaller(strided) == strided

# SPDX-License-Identifier: Apache-2.0
"""Quantised networks: our own CPU kernels against ONNX Runtime and OpenVINO on the same bytes, and against float32.

    python tests/bench/bench_quantised_networks.py [--networks v2,resnet,lstm] [--models a.onnx,b.onnx]
        [--activations uint8|int8] [--threads 1,2] [--seconds S] [--rounds N] [--json out.json]

MobileNetV2 and a residual network (width 64, 16 dense convolutions) at 224 x 224 with seeded weights, quantised
statically by onnxruntime.quantization (QDQ, weights a scale a channel), two LSTM layers of 256 whose weights it
quantised dynamically, and models that are quantised already. One process an engine, the others stopped, rounds
interleaved (interleaved.py). The first ratio is the faster of ONNX Runtime and OpenVINO over native, the second
native's float32 over native, the third (plain / bundled) ONNX Runtime as its users open it over the one in our bundles.
Noise is the largest difference of native (of the bundle, where native refuses) from ONNX Runtime without optimisations,
over that one's largest value; beyond `BOUND` the command ends.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from interleaved import Engine, Pace, Race, largest_error, race
from native_engines import machine_line
from native_models import mobilenet_v2, residual_network
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

PEERS = ("onnxruntime", "openvino")
BOUND = 0.1
"""Largest difference: numbers that lie just between two steps of a scale go either way, layer after layer."""
NETWORKS = {"v2": mobilenet_v2, "resnet": residual_network}
LSTM = "lstm"
BUNDLED = "bundled"
SIZE = 224
TYPES = {"uint8": QuantType.QUInt8, "int8": QuantType.QInt8}
Array = npt.NDArray[Any]


class _Images(CalibrationDataReader):
    """A few random images for calibration."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self._left: Iterator[dict[str, Array]] = iter([{name: _image(shape, seed)} for seed in range(1, 5)])

    def get_next(self) -> "dict[str, Array] | None":
        return next(self._left, None)


def main() -> None:
    """Prints the table."""
    options = _options()
    rows = []
    print(machine_line(), end="\n\n")
    print("| model | threads | native ms | ONNX Runtime ms | OpenVINO ms | native float32 ms | bundled ms "
          "| peers / native | float32 / native | plain / bundled | noise |\n| --- |" + " ---: |" * 10)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        models = [(name, *_quantised(name, options.activations, Path(folder))) for name in options.networks]
        models += [(path.stem, path, None) for path in options.models]
        for name, path, floats in models:
            for threads in options.threads:
                found, noise = _raced(path, floats, threads, Pace(options.seconds, options.rounds))
                if not noise <= BOUND:
                    sys.exit(f"{name}: native is wrong: {noise:.2e} of the largest value, bound {BOUND}")
                print(_row(name, threads, found, noise), flush=True)
                rows.append({"model": name, "threads": threads, "noise": noise, "refused": found.refused,
                             "rounds": found.rounds})  # fmt: skip
                if options.json:
                    options.json.write_text(json.dumps({"machine": machine_line(), "rows": rows}, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="quantised networks: native against ONNX Runtime and OpenVINO",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    names = ",".join((*NETWORKS, LSTM))
    parser.add_argument("--networks", type=lambda text: [one for one in text.split(",") if one], default=names)
    parser.add_argument("--models", type=lambda text: [Path(one) for one in text.split(",")], default=[])
    parser.add_argument("--activations", choices=tuple(TYPES), default="uint8")
    parser.add_argument("--threads", type=lambda text: [int(one) for one in text.split(",")], default="1")
    parser.add_argument("--seconds", type=float, default=0.3, help="an engine and round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="where the seconds of every round are written")
    return parser.parse_args()


def _image(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _quantised(name: str, activations: str, folder: Path) -> tuple[Path, Path]:
    """Returns a network that was quantised, and the same in float32."""
    floats, ready, path = (folder / f"{name}.{kind}.onnx" for kind in ("float32", "ready", activations))
    if name == LSTM:
        onnx.save(_recurrent_network(), floats)
        quantize_dynamic(str(floats), str(path), op_types_to_quantize=["LSTM"], weight_type=QuantType.QInt8)
        return path, floats
    onnx.save(NETWORKS[name](SIZE, 1), floats)
    quant_pre_process(str(floats), str(ready))
    quantize_static(
        str(ready), str(path), _Images("x", (1, 3, SIZE, SIZE)), quant_format=QuantFormat.QDQ, per_channel=True,
        activation_type=TYPES[activations], weight_type=QuantType.QInt8,
    )  # fmt: skip
    return path, floats


def _recurrent_network(width: int = 256, frames: int = 50) -> onnx.ModelProto:
    """Returns two LSTM layers over frames (frames, 1, width)."""
    random, nodes, weights = np.random.default_rng(0), [], []
    for layer in range(2):
        for name, shape in (("w", (1, 4 * width, width)), ("r", (1, 4 * width, width))):
            array = (random.standard_normal(shape) / 16).astype(np.float32)
            weights.append(numpy_helper.from_array(array, f"{name}{layer}"))
        inputs, made = [f"x{layer}", f"w{layer}", f"r{layer}"], [f"y{layer}"]
        nodes.append(helper.make_node("LSTM", inputs, made, hidden_size=width))
        nodes.append(helper.make_node("Squeeze", [*made, "one"], [f"x{layer + 1}"]))
    weights.append(numpy_helper.from_array(np.array([1]), "one"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [frames, 1, width]) for name in ("x0", "x2")]
    graph = helper.make_graph(nodes, LSTM, ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _raced(path: Path, floats: Path | None, threads: int, pace: Pace) -> tuple[Race, float]:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), settings)
    inputs = {
        one.name: _image(tuple(size if isinstance(size, int) else 1 for size in one.shape), 0)
        for one in session.get_inputs()
    }
    wanted = session.run(None, inputs)
    asked = {"model": str(path), "threads": threads}
    engines = [Engine(name, f"native_engines:{name}", asked) for name in ("native", *PEERS)]
    engines.append(Engine(BUNDLED, "native_engines:bundled_onnxruntime", asked))
    if floats is not None:
        engines.append(Engine("float32", "native_engines:native", {"model": str(floats), "threads": threads}))
    found = race(engines, inputs, pace)
    return found, largest_error(found.outputs.get("native", found.outputs[BUNDLED]), wanted)


def _row(name: str, threads: int, found: Race, noise: float) -> str:
    names = ("native", *PEERS, "float32", BUNDLED)
    times = " | ".join(f"{found.ms(one):.3f}" if one in found.outputs else "-" for one in names)
    peers = [one for one in PEERS if one in found.outputs]
    ratios = (("native", peers), ("native", ["float32"]), (BUNDLED, ["onnxruntime"]))
    shown = " | ".join(_ratio(found, of, others) for of, others in ratios)
    return f"| {name} | {threads} | {times} | {shown} | {noise:.1e} |"


def _ratio(found: Race, of: str, others: list[str]) -> str:
    """Returns how much slower the fastest of others is, "-" where one of them did not run."""
    return f"{found.ratio(of, others):.2f}" if found.outputs.keys() >= {of, *others} and others else "-"


if __name__ == "__main__":
    main()

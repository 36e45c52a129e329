# SPDX-License-Identifier: Apache-2.0
"""LiteRT with XNNPACK, made inside a child of `interleaved`: converted by onnx2tf, its defaults.

A converted network has its channels last; it is given inputs that were transposed before, and its outputs are
transposed back after the call that is timed.
"""

import itertools
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import rival_models
from interleaved import Array, EngineRefusedError, Inputs, Ready

TRIAL_IMAGES = "calibration_image_sample_data_20x128x128x3_float32.npy"
"""The file that onnx2tf wants to download; any numbers will do, by which it looks for a layout that fits."""


def ready(inputs: Inputs, model: str, folder: str, threads: int, outputs: dict[str, list[int]]) -> Ready:
    from ai_edge_litert.interpreter import Interpreter

    made = rival_models.kept(folder, f"litert {version('ai-edge-litert')}", model, _convert)
    network = Interpreter(str(made / "model.tflite"), num_threads=threads)
    try:
        network.allocate_tensors()
    except RuntimeError as err:
        raise EngineRefusedError(str(err)[:120]) from err
    given, taken = _by_name(network, list(inputs), list(outputs))
    if set(given) != set(inputs) or set(taken) != set(outputs):
        raise EngineRefusedError(f"its inputs and outputs are {', '.join([*given, *taken])}")
    arrays = []
    for name, array in inputs.items():
        axes = channels_last(array.ndim) if list(given[name]["shape"]) != list(array.shape) else range(array.ndim)
        arrays.append((given[name]["index"], np.ascontiguousarray(array.transpose(axes))))
    indices = [taken[name]["index"] for name in outputs]

    def call() -> list[Array]:
        for index, array in arrays:
            network.set_tensor(index, array)
        network.invoke()
        return [network.get_tensor(index) for index in indices]

    def arrays_of(found: Any) -> list[Array]:
        return [in_order(one, shape) for one, shape in zip(found, outputs.values(), strict=True)]

    return Ready(call, arrays_of, version("ai-edge-litert"))


def _by_name(network: Any, inputs: list[str], outputs: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns what is known of inputs and outputs; where onnx2tf wrote no names, they are in the model's order."""
    if network.get_signature_list():
        signature = network.get_signature_runner()
        return signature.get_input_details(), signature.get_output_details()
    given, taken = network.get_input_details(), network.get_output_details()
    return dict(zip(inputs, given, strict=False)), dict(zip(outputs, taken, strict=False))


def channels_last(rank: int) -> Sequence[int]:
    """Returns the axes of a layout with the channels second as one with the channels last."""
    return (0, *range(2, rank), 1)


def in_order(array: Array, shape: Sequence[int]) -> Array:
    """Returns an output in the layout of `shape`, that of ONNX."""
    for axes in itertools.permutations(range(array.ndim)):
        if [array.shape[axis] for axis in axes] == list(shape):
            return array.transpose(axes)
    return array


def _convert(source: Path, folder: Path) -> None:
    np.save(folder / TRIAL_IMAGES, np.random.default_rng(0).random((20, 128, 128, 3), np.float32))
    made, saved = folder / "model.tflite", folder / "saved"
    copy = Path(shutil.copy(source, folder / "model.onnx"))  # onnx2tf writes into what it reads
    command = [Path(sys.executable).with_name("onnx2tf"), "-i", copy, "-o", saved, "-osd", "-coion", "-n"]
    float32 = saved / "model_float32.tflite"
    rival_models.converted([*command, "-rtpo", "Erf"], float32, folder)
    float32.rename(made)
    shutil.rmtree(saved)
    copy.unlink()
    (folder / TRIAL_IMAGES).unlink()

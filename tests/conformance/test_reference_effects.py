# SPDX-License-Identifier: Apache-2.0
"""What the evaluator computes with touches nothing outside: no operator starts a process, connects or writes a file."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import Any

import numpy as np
import onnx
import onnx.parser
import PIL.Image
import pytest
from nndeploy_reference.session import EvaluatorSession

from nndeploy.errors import InputError

EFFECTS = (
    "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "socket.", "os.remove", "os.rename", "os.mkdir",
    "os.link", "os.symlink", "os.truncate", "os.chmod", "os.putenv", "shutil.", "tempfile.", "pickle.", "ftplib.",
    "urllib.",
)  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
LARGEST_BYTES = 1 << 16
"""Cases of larger inputs are left out: each operator has smaller ones."""

_seen: list[tuple[str, Any]] | None = None


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is None:
        return
    if event.startswith(EFFECTS) or (event == "open" and (arguments[2] or 0) & WRITES):
        _seen.append((event, arguments))


sys.addaudithook(_hear)


@contextmanager
def effects() -> Iterator[list[tuple[str, Any]]]:
    """Yields a list that gets what its block does to the world outside."""
    global _seen
    _seen = found = list[tuple[str, Any]]()
    try:
        yield found
    finally:
        _seen = None


def cases() -> dict[str, tuple[onnx.ModelProto, dict[str, Any]]]:
    """Returns a small case of ONNX's own suite for each operator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose while it makes its data
        from onnx.backend.test.loader import load_model_tests

        found = load_model_tests(kind="node")
    by_operator = dict[str, tuple[onnx.ModelProto, dict[str, Any]]]()
    for case in found:
        inputs = case.data_sets[0][0]
        if sum(np.asarray(one).nbytes for one in inputs if isinstance(one, np.ndarray)) > LARGEST_BYTES:
            continue
        for node in case.model.graph.node:
            if node.op_type not in by_operator:
                names = [one.name for one in case.model.graph.input]
                by_operator[node.op_type] = case.model, dict(zip(names, inputs, strict=False))
    return by_operator


@pytest.mark.slow  # the suite is made anew each time
def test_no_operator_has_an_effect() -> None:
    tried = 0
    for operator, (model, inputs) in cases().items():
        try:
            session = EvaluatorSession(model)
        except Exception:  # noqa: S112 - an operator that the evaluator has not
            continue
        with effects() as seen, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(Exception):  # what a refusal did counts, too
                session.run(inputs)
        assert seen == [], operator
        tried += 1
    assert tried > 150


IMAGE = PIL.Image.fromarray(np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3) * 3)
PLACES = {
    "graph": 'g (uint8[n] x) => (uint8[h,w,c] y) { y = ImageDecoder<pixel_format="%s">(x) }',
    "branch": """g (uint8[n] x, bool b) => (uint8[h,w,c] y) {
        y = If (b) <then_branch = t () => (uint8[h,w,c] t) { t = ImageDecoder<pixel_format="%s">(x) },
                    else_branch = e () => (uint8[h,w,c] e) { e = ImageDecoder(x) }> }""",
}


def encoded(kind: str, image: PIL.Image.Image = IMAGE) -> bytes:
    file = BytesIO()
    image.save(file, kind)
    return file.getvalue()


def decode(place: str, pixel_format: str, data: bytes) -> Any:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {PLACES[place] % pixel_format}')
    inputs = {"x": np.frombuffer(data, np.uint8), **({"b": np.array(True)} if place == "branch" else {})}
    return EvaluatorSession(model).run(inputs)["y"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["EPS", "PDF", "PPM", "JPEG2000", "ICO", "TGA", "PCX", "damaged", ""])
def test_an_image_of_no_format_of_the_reader_is_refused_unopened(kind: str, place: str) -> None:
    data = {"damaged": encoded("PNG")[:40], "": b""}.get(kind) if kind in ("damaged", "") else encoded(kind)
    with effects() as seen, pytest.raises(InputError):
        decode(place, "RGB", data or b"")
    assert seen == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("pixel_format", "want"),
    [
        ("RGB", np.asarray(IMAGE)),
        ("BGR", np.asarray(IMAGE)[:, :, ::-1]),
        ("Grayscale", np.asarray(IMAGE.convert("L"))[:, :, None]),
    ],
)
def test_images_are_decoded_as_they_are_stored(place: str, pixel_format: str, want: Any) -> None:
    for kind in ("PNG", "BMP", "TIFF"):
        np.testing.assert_array_equal(decode(place, pixel_format, encoded(kind)), want)
    grey = decode(place, pixel_format, encoded("PNG", IMAGE.convert("L")))
    assert grey.shape == want.shape


def test_more_pixels_than_a_stream_takes_are_refused() -> None:
    with pytest.raises(InputError):
        decode("graph", "RGB", encoded("PNG", PIL.Image.new("1", (1 << 14, (1 << 12) + 1))))

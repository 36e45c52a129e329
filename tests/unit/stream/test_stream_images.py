# SPDX-License-Identifier: Apache-2.0
"""Images become the tensor that the bundle describes; what is no such image is one clear line."""

import builtins
import io
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from nndeploy.bundle.manifest import ImageInput
from nndeploy.errors import InputError, UnavailableError
from nndeploy.files.image_files import FORMATS
from nndeploy.stream.formats import images
from nndeploy.stream.formats.images import array_from_image, best_label, decoded, read_image, require_pillow
from nndeploy.values.types import TensorType

RGB = ImageInput("x", 2, 3, "RGB", "NHWC", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def encoded(image, kind="PNG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def picture(mode="RGB", size=(3, 2)):
    pixels = np.arange(size[0] * size[1] * 3, dtype=np.uint8).reshape(size[1], size[0], 3) * 7
    return Image.fromarray(pixels).convert(mode)


def test_pixels_are_laid_out_and_scaled() -> None:
    image = picture()
    pixels = np.asarray(image, dtype=np.float32)
    assert array_from_image(image, RGB, "float32").tolist() == pixels[None].tolist()
    how = replace(RGB, layout="NCHW", channels="BGR", mean=(1.0, 2.0, 3.0), std=(4.0, 5.0, 6.0))
    found = array_from_image(image, how, "float32")
    assert found.shape == (1, 3, 2, 3)
    assert found.flags.c_contiguous
    want = (pixels[:, :, ::-1] - [1, 2, 3]) / [4, 5, 6]
    np.testing.assert_allclose(found[0], want.transpose(2, 0, 1), rtol=1e-6)


def test_grey_and_integer_inputs(digits) -> None:
    found = array_from_image(picture("L"), digits, "float32")
    assert found.shape == (1, 1, 2, 3)
    assert found.max() <= 1
    whole = array_from_image(picture("L"), replace(digits, std=(1.0,)), "uint8")
    assert whole.dtype == np.uint8
    assert whole[0, 0].tolist() == np.asarray(picture("L")).tolist()
    clipped = array_from_image(picture("L"), replace(digits, mean=(300.0,), std=(1.0,)), "uint8")
    assert clipped.max() == 0


def test_images_are_resized_to_the_input(digits) -> None:
    white = Image.new("L", (40, 30), 255)
    assert array_from_image(white, digits, "float32").tolist() == [[[[1, 1, 1], [1, 1, 1]]]]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_every_mode_that_is_taken_gives_the_same_shape(mode) -> None:
    image = decoded(encoded(picture(mode)))
    assert array_from_image(image, RGB, "float32").shape == (1, 2, 3, 3)


def png(width: int, height: int, body: bytes, bits: int = 8, colours: int = 2) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, 0)
    data = zlib.compress(body)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def bomb(width: int, height: int) -> bytes:
    return png(width, height, bytes(1000))


def deep_tiff(compression: int = 1, tile: tuple[int, int] | None = None) -> bytes:
    """Returns a TIFF of one pixel, RGB with 16 bits a colour, or one of 8 bits with tiles of some size."""
    bits = 16 if tile is None else 8
    tags = [(256, 3, 1), (257, 3, 1), (258, 3, bits), (259, 3, compression), (262, 3, 2), (277, 3, 3)]
    tags += [(273, 4, 200), (278, 3, 1), (279, 4, 6)] if tile is None else []
    tags += [] if tile is None else [(322, 4, tile[0]), (323, 4, tile[1]), (324, 4, 200), (325, 4, 6)]
    entries = b"".join(
        struct.pack("<HHIHH", tag, kind, 1, value, 0) if kind == 3 and tag != 258
        else struct.pack("<HHII", tag, kind, 3 if tag == 258 else 1, 180 if tag == 258 else value)
        for tag, kind, value in sorted(tags)
    )  # fmt: skip
    directory = struct.pack("<H", len(tags)) + entries + bytes(4)
    return (
        (b"II*\0" + struct.pack("<I", 8) + directory).ljust(180, b"\0")
        + struct.pack("<3H", *[bits] * 3).ljust(20, b"\0")
        + bytes(range(6))
    )


@pytest.mark.parametrize(
    ("kind", "mode"), [*((kind, "RGB") for kind in FORMATS), ("GIF", "P"), ("TIFF", "L"), ("BMP", "1")]
)
def test_every_format_is_read_as_the_pixels_that_were_written(kind, mode) -> None:
    image = Image.new(mode, (8, 6), {"RGB": (200, 30, 60), "P": 3, "L": 90, "1": 1}[mode])
    found = decoded(encoded(image, kind, **({"lossless": True} if kind == "WEBP" else {})))
    assert found.size == (8, 6)
    assert abs(np.asarray(found.convert("RGB"), int) - np.asarray(image.convert("RGB"), int)).max() <= 2


@pytest.mark.parametrize(("data", "message"), [
    (b"", "is not a supported image"),
    (b"hello", "is not a supported image"),
    (encoded(picture(), "EPS"), "is not a supported image"),
    (encoded(picture(size=(64, 64)))[:-40], "is a damaged image"),
    (encoded(picture(size=(64, 64)), "JPEG")[:-200], "is a damaged image"),
    (encoded(picture(size=(64, 64)), "TIFF", compression="tiff_lzw")[:-20], "is a damaged image|not a supported image"),
    (bomb(60_000, 60_000), "pixels, more than|damaged image: DecompressionBomb"),
    (bomb(9_000, 9_000), "has 9000 x 9000 pixels, more than 67108864"),
    (b"GIF89a" + struct.pack("<HH", 9000, 9000) + encoded(picture(), "GIF")[10:], "has 9000 x 9000 pixels"),
    (bomb(100, 100), "is a damaged image"),
    (deep_tiff(tile=(1 << 16, 1 << 15)), "tiles of more than 67108864"),
    (encoded(picture("CMYK"), "JPEG"), "of the mode CMYK"),
    (encoded(Image.new("F", (3, 2)), "TIFF"), "of the mode F"),
    (encoded(Image.new("I;16", (3, 2))), "16-bit"),
    (encoded(Image.new("I;16", (3, 2)), "TIFF"), "16-bit"),
    (png(1, 1, bytes(7), bits=16, colours=2), "16-bit"),
    (deep_tiff(), "16-bit"),
    (deep_tiff(compression=8), "16-bit"),
])  # fmt: skip
def test_other_images_are_refused(data, message) -> None:
    with pytest.raises(InputError, match=message) as caught:
        decoded(data)
    assert "\n" not in str(caught.value)


def test_the_error_names_the_file(tmp_path) -> None:
    (tmp_path / "a.png").write_bytes(b"hello")
    with pytest.raises(InputError, match=r"a.png: is not a supported image"):
        read_image(tmp_path / "a.png", RGB, TensorType("float32", None))
    (tmp_path / "b.png").write_bytes(encoded(picture()))
    assert read_image(tmp_path / "b.png", RGB, TensorType("float32", None)).shape == (1, 2, 3, 3)


def test_a_huge_file_is_not_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(images, "MAX_FILE_BYTES", 10)
    (tmp_path / "a.png").write_bytes(bytes(11))
    with pytest.raises(InputError, match="has 11 bytes, more than 10"):
        read_image(tmp_path / "a.png", RGB, TensorType("float32", None))


def test_without_pillow_the_extra_is_named(monkeypatch) -> None:
    require_pillow()
    real = builtins.__import__

    def without_pillow(name, *args, **options):
        if name.startswith("PIL"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(UnavailableError, match=r"nndeploy-toolchain\[vision\]"):
        require_pillow()


@pytest.mark.parametrize(("scores", "label", "probability"), [
    ([[0.25, 0.75]], "yes", 0.75), ([[0.0, 0.0]], "no", 0.5), ([[0.0, 100.0]], "yes", 1.0),
    ([[3.0, 3.0 + np.log(3.0)]], "yes", 0.75),
])  # fmt: skip
def test_scores_name_a_class(make_manifest, digits, scores, label, probability) -> None:
    manifest = make_manifest({"image": TensorType("float32", None)}, image=digits)
    found = best_label(manifest, {"y": np.array(scores, np.float32)})
    assert found[0] == label
    assert found[1] == pytest.approx(probability)


def test_what_is_no_class_score_has_no_label(make_manifest, digits) -> None:
    types = {"image": TensorType("float32", None)}
    assert best_label(make_manifest(types), {"y": np.zeros(2)}) is None
    assert best_label(make_manifest(types, image=digits), {"y": np.zeros(3)}) is None
    assert best_label(make_manifest(types, image=digits), {"y": np.array(["a", "b"])}) is None

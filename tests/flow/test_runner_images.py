# SPDX-License-Identifier: Apache-2.0
"""Images without Python: nndeploy-run makes of a PPM file the input that `nndeploy run` makes of a PNG."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import PIL.Image
import pytest
from nndeploy_kernels import build_runtime
from nndeploy_kernels.build import level_here
from runner_answers import answer

import nndeploy
from nndeploy.bundle.manifest import ImageInput
from nndeploy.files.image_files import decoded
from nndeploy.stream.formats.images import array_from_image

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits"
WAYS = {
    "RGB NCHW": ("RGB", "NCHW", "float32", (0.5, 100.0, 20.25), (255.0, 1.5, 3.0)),
    "BGR NHWC": ("BGR", "NHWC", "float32", (1.0, 2.0, 3.0), (1.0, 2.0, 4.0)),
    "L NCHW": ("L", "NCHW", "float32", (127.5,), (127.5,)),
    "RGB NHWC bytes": ("RGB", "NHWC", "uint8", (0.0, 0.0, 0.0), (1.0, 1.0, 2.0)),
    "L NHWC signed bytes": ("L", "NHWC", "int8", (128.0,), (1.0,)),
    "BGR NCHW half": ("BGR", "NCHW", "float16", (103.0, 116.0, 123.0), (57.0, 57.0, 58.0)),
}
SIZE = (23, 37)
"""Height, width of the input."""
ONNX_NAMES = {"float32": "float", "uint8": "uint8", "int8": "int8", "float16": "float16"}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, ImageInput]]:
    """Returns a function: way -> a bundle that gives its input back, and how an image becomes that."""
    folder = tmp_path_factory.mktemp("images")

    def of(way: str) -> tuple[Path, ImageInput]:
        channels, layout, dtype, mean, std = WAYS[way]
        shape = (len(channels), *SIZE) if layout == "NCHW" else (*SIZE, len(channels))
        kind = f"{ONNX_NAMES[dtype]}[n,{','.join(map(str, shape))}]"
        how = ImageInput("x", *SIZE, channels, layout, mean, std)
        bundle = folder / f"{way}.nnd"
        if not bundle.exists():
            body = f"g ({kind} x) => ({kind} y) {{ t = Transpose(x) y = Transpose(t) }}"
            model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {body}')
            options: dict[str, Any] = {"backends": ("native",), "objective": "priority", "threads": 1}
            nndeploy.compile_model(model, bundle, image_input=how, **options)
        return bundle, how

    return of


def drawn(height: int, width: int, channels: int) -> Any:
    """Returns pixels with edges and noise."""
    draw = np.random.default_rng(height * width)
    pixels = draw.integers(0, 256, (height, width, channels), np.uint8)
    pixels[height // 3 : height // 2] = 255
    pixels[:, width // 4 : width // 3] = 0
    return pixels[..., 0] if channels == 1 else pixels


def given(runner: Path, bundle: Path, path: Path, folder: Path) -> Any:
    done = subprocess.run(
        [runner, bundle, "-i", path, "-o", folder / "out"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return np.load(folder / "out" / "y.npy")


def assert_same_levels(found: Any, image: Any, how: ImageInput, dtype: str) -> None:
    """Passes values that are those of Python to one level of 255."""
    wanted = array_from_image(image, how, dtype)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    level = np.max(1 / np.abs(np.array(how.std))) + 1e-3 * (dtype == "float16")
    assert np.max(np.abs(found.astype(np.float64) - wanted.astype(np.float64))) <= level
    assert np.mean(found != wanted) < 0.01


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("height", "width", "channels"), [(23, 37, 3), (200, 41, 3), (9, 300, 1), (1, 1, 3), (23, 80, 3)]
)
def test_an_image_becomes_the_input_of_python(runner, compiled, tmp_path, way, height, width, channels) -> None:
    bundle, how = compiled(way)
    image = PIL.Image.fromarray(drawn(height, width, channels))
    image.save(tmp_path / "photo.ppm")
    assert_same_levels(given(runner, bundle, tmp_path / "photo.ppm", tmp_path), image, how, WAYS[way][2])


@pytest.mark.parametrize(
    "name", ["goldfish.jpg", "face_group.jpg", "text_photo.jpg", "wolves.jpg", "drawing_lines.png"]
)
def test_a_photo_becomes_the_input_of_python(runner, compiled, models_folder, tmp_path, name) -> None:
    path = models_folder / "inputs" / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    image = decoded(path.read_bytes()).convert("RGB")
    image.save(tmp_path / "photo.ppm")
    for way in ("RGB NCHW", "L NCHW"):
        bundle, how = compiled(way)
        assert_same_levels(given(runner, bundle, tmp_path / "photo.ppm", tmp_path), image, how, "float32")


IN_CPP = """
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include "nndeploy.hpp"
int main(int, char **words) {
  const nndeploy::Program program(words[1], 1);
  nndeploy::Call call(program);
  std::ifstream file(words[2], std::ios::binary);
  const std::vector<char> pixels{std::istreambuf_iterator<char>(file), {}};
  try {
    call.set_image(reinterpret_cast<const std::uint8_t *>(pixels.data()), 200, 41, std::atoi(words[3]));
  } catch (const nndeploy::Error &error) {
    return error.code;
  }
  call.run();
  const auto values = call.output<float>("y");
  std::fwrite(values.data, sizeof(float), values.size(), stdout);
  return program.image()->height == 23 && program.output_keys(0) == nullptr ? 0 : 1;
}
"""


def test_pixels_become_the_input_in_a_program(compiled, tmp_path) -> None:
    """Of RGBA the last channel is left out; another number of channels is refused."""
    compiler = shutil.which("c++") or pytest.skip("no c++")
    bundle, how = compiled("RGB NCHW")
    (tmp_path / "main.cc").write_text(IN_CPP)
    library = build_runtime.build_libraries(level_here().arch)[0]
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", build_runtime.RUNTIME]
    sources = [tmp_path / "main.cc", library, "-lpthread", "-lm"]
    subprocess.run([compiler, *flags, *sources, "-o", tmp_path / "program"], check=True)
    pixels = drawn(200, 41, 4)
    (tmp_path / "pixels").write_bytes(pixels.tobytes())
    done = subprocess.run([tmp_path / "program", bundle, tmp_path / "pixels", "4"], capture_output=True, check=False)
    assert done.returncode == 0
    found = np.frombuffer(done.stdout, np.float32).reshape(1, 3, *SIZE)
    assert_same_levels(found, PIL.Image.fromarray(pixels[..., :3]), how, "float32")
    wrong = subprocess.run([tmp_path / "program", bundle, tmp_path / "pixels", "2"], capture_output=True, check=False)
    assert wrong.returncode == 65


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from nndeploy.compiler.option_texts import image_input

    bundle = tmp_path_factory.mktemp("digits") / "digits.nnd"
    how = image_input(str(DIGITS / "image.toml"))
    nndeploy.compile_model(
        DIGITS / "digits.onnx", bundle, backends=("native",), objective="priority", threads=1, image_input=how
    )
    return bundle


def test_labels_are_those_of_python(nndeploy_command, digits, tmp_path) -> None:
    photos = sorted((DIGITS / "png").iterdir())[:4]
    program = tmp_path / "digits"
    assert nndeploy_command("export", digits, "-o", program).returncode == 0
    records = json.loads(nndeploy_command("run", digits, "-i", DIGITS / "png", "--json").stdout)["records"]
    wanted = {Path(one["origin"]).name: (one["label"], one["probability"]) for one in records}
    for photo in photos:
        PIL.Image.open(photo).convert("L").save(tmp_path / "photo.pgm")
        (found,) = answer([program, "-i", tmp_path / "photo.pgm"], 0)["records"]
        assert (found["label"], found["probability"]) == pytest.approx(wanted[photo.name], abs=2e-6)
    done = subprocess.run([program, "-i", "photo.pgm"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split()[:2] == ["photo.pgm", wanted[photos[-1].name][0]]


def test_an_image_comes_by_standard_input(digits, runner, tmp_path) -> None:
    PIL.Image.fromarray(drawn(50, 40, 3)).save(tmp_path / "photo.ppm")
    data = (tmp_path / "photo.ppm").read_bytes()
    found = subprocess.run([runner, digits, "-i", "-"], input=data, capture_output=True, check=False)
    named = subprocess.run([runner, digits, "-i", tmp_path / "photo.ppm"], capture_output=True, check=False)
    assert found.returncode == named.returncode == 0
    assert found.stdout.split()[1:] == named.stdout.split()[1:]


PIXELS = bytes(range(64))
HEADERS = {
    "plain": (b"P5 8 8 255\n", 0), "comments": (b"P5\n# made by hand\n8 # width\n8\n255\n", 0),
    "fewer levels": (b"P5 8 8 63\n", 0), "16 bits": (b"P5 8 8 65535\n", 65), "no size": (b"P5 8\n", 65),
    "nothing": (b"P5 ", 65), "cut": (b"P5 9 8 255\n", 65), "huge": (b"P5 99999999999 8 255\n", 65),
    "zero": (b"P5 0 8 255\n", 65), "colour": (b"P6 3 7 255\n", 0), "bitmap": (b"P4 8 8\n", 65),
    "too many pixels": (b"P5 100000 100000 255\n", 65), "negative": (b"P5 -8 8 255\n", 65),
    "no level": (b"P5 8 8 0\n", 65),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_what_is_no_whole_image_is_refused(digits, runner, tmp_path, name) -> None:
    header, code = HEADERS[name]
    (tmp_path / "x.pgm").write_bytes(header + PIXELS)
    done = subprocess.run([runner, digits, "-i", tmp_path / "x.pgm"], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == (code != 0)


def test_fewer_levels_are_spread(digits, runner, tmp_path) -> None:
    (tmp_path / "few.pgm").write_bytes(b"P5 8 8 63\n" + PIXELS)
    (tmp_path / "all.pgm").write_bytes(b"P5 8 8 255\n" + bytes(round(level * 255 / 63) for level in PIXELS))
    results = [
        subprocess.run([runner, digits, "-i", tmp_path / name, "-o", tmp_path / name[:3]], check=False).returncode
        for name in ("few.pgm", "all.pgm")
    ]
    assert results == [0, 0]
    few, every = (np.load(tmp_path / name / "probabilities.npy") for name in ("few", "all"))
    assert few.tobytes() == every.tobytes()


def test_bytes_alone_are_a_tensor(digits, runner, tmp_path) -> None:
    images = np.random.default_rng(3).uniform(0, 16, (2, 1, 8, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", images)
    (tmp_path / "x.raw").write_bytes(images.tobytes())
    (tmp_path / "cut.raw").write_bytes(images.tobytes()[:-1])
    (tmp_path / "empty.raw").write_bytes(b"")
    found = []
    for name, code in {"x.npy": 0, "x.raw": 0, "cut.raw": 65, "empty.raw": 65}.items():
        done = subprocess.run([runner, digits, "-i", tmp_path / name], capture_output=True, check=False)
        assert done.returncode == code
        found.append(done.stdout)
    assert found[0] == found[1]


def test_a_bundle_that_says_nothing_of_images_takes_none(runner, tmp_path) -> None:
    bundle = tmp_path / "m.nnd"
    nndeploy.compile_model(DIGITS / "digits.onnx", bundle, backends=("native",), objective="priority", threads=1)
    (tmp_path / "x.pgm").write_bytes(b"P5 8 8 255\n" + PIXELS)
    PIL.Image.fromarray(drawn(8, 8, 3)).save(tmp_path / "x.png")
    for name, code in {"x.pgm": 2, "x.png": 65}.items():
        done = subprocess.run([runner, bundle, "-i", tmp_path / name], capture_output=True, text=True, check=False)
        assert (done.returncode, len(done.stderr.splitlines())) == (code, 1)

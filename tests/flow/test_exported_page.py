# SPDX-License-Identifier: Apache-2.0
"""The page that `nndeploy export --for html` writes: it shows what Python computes, of the images that Python reads."""

import base64
import http.server
import io
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx.parser
import pytest
from node_runs import answering_process, node
from PIL import Image

import nndeploy
from nndeploy.bundle.manifest import ImageInput
from nndeploy.runtime import exported_web
from nndeploy.stream.formats.images import array_from_image

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits"
DRAW_A_DIGIT, FIND_FACES = (ROOT / "examples" / "web" / f"{name}.html" for name in ("draw_a_digit", "find_faces"))
HERE = Path(__file__).parent
MODULES = Path(exported_web.__file__).with_name("exported_page")
PLAYWRIGHT = ROOT / "build" / "web-tools" / "node_modules" / "playwright-core"
HOW = ImageInput("x", 8, 8, "RGB", "NCHW", (123.7, 116.3, 103.5), (58.4, 57.1, 57.4))
SUM = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n,3] x) => (float[n,3] doubled, int64[2] sizes) { doubled = Add(x, x) sizes = Shape(x) }"""


def called(module: str, function: str, *given: Any) -> Any:
    """Returns what a function of the page's modules returns."""
    job = {"module": str(MODULES / module), "function": function, "given": [sent(one) for one in given]}
    found = answering_process(HERE / "page_modules.mjs")(job)
    if "error" in found:
        raise ValueError(found["error"])
    return found["value"]


def sent(value: Any) -> Any:
    return {"bytes": base64.b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def plain_bytes(value: Mapping[str, str]) -> bytes:
    return base64.b64decode(value["bytes"])


@pytest.mark.parametrize("size", [(8, 8), (20, 31), (5, 3), (8, 19), (201, 8), (64, 64)], ids=str)
@pytest.mark.parametrize(
    "how",
    [
        HOW, replace(HOW, channels="BGR", layout="NHWC"), replace(HOW, channels="L", mean=(0.0,), std=(15.9375,)),
        replace(HOW, height=13, width=32),
    ],
    ids=["rgb", "bgr-nhwc", "l", "wide"],
)  # fmt: skip
def test_an_image_becomes_the_input_that_it_becomes_in_python(size, how) -> None:
    width, height = size
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 4), np.uint8)
    pixels[..., 3] = 255
    wanted = array_from_image(Image.fromarray(pixels[..., :3]), how, "float32")
    described = json.loads(exported_web.image_json(how))
    found = called("pixels.mjs", "imageInput", pixels.tobytes(), width, height, described)
    assert tuple(found["shape"]) == wanted.shape
    differences = np.abs(np.frombuffer(plain_bytes(found["elements"]), np.float32) - wanted.ravel())
    assert differences.max() <= 1.001 / min(how.std)  # one level of 255: Pillow may begin with the columns


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool", "uint8", "int8", "float16"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)], ids=str)
def test_arrays_are_read_and_written_as_numpy_does(dtype, shape) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    file = io.BytesIO()
    np.save(file, array)
    found = called("npy.mjs", "fromNpy", file.getvalue(), dtype)
    assert (plain_bytes(found["bytes"]), found["shape"]) == (array.tobytes(), list(shape))
    written = np.load(io.BytesIO(plain_bytes(called("npy.mjs", "toNpy", array.tobytes(), dtype, list(shape)))))
    assert (written.dtype, written.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(written, array)


def test_an_array_of_another_type_or_order_is_refused() -> None:
    for array in (np.zeros(3), np.asfortranarray(np.zeros((2, 3), np.float32))):
        file = io.BytesIO()
        np.save(file, array)
        with pytest.raises(ValueError, match="Error: the file"):
            called("npy.mjs", "fromNpy", file.getvalue(), "float32")


def exported(model: Any, out: Path, nndeploy_command: Any, **options: Any) -> Path:
    """Returns the page of a model."""
    bundle = out / "m.nnd"
    nndeploy.compile_model(model, bundle, backends=("native",), objective="priority", threads=1, **options)
    done = nndeploy_command("export", bundle, "-o", out / "m.html", "--for", "html", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["num_bytes"] == (out / "m.html").stat().st_size
    return out / "m.html"


def digit_page(out: Path, nndeploy_command: Any) -> Path:
    from nndeploy.compiler.option_texts import image_input

    return exported(DIGITS / "digits.onnx", out, nndeploy_command, image_input=image_input(str(DIGITS / "image.toml")))


def test_a_page_names_no_other_place_and_keeps_what_it_needs(nndeploy_command, tmp_path) -> None:
    text = digit_page(tmp_path, nndeploy_command).read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not [word for word in ("<link", " src=", "@import", "\nimport ", "\nexport ") if word in text]
    (tmp_path / "page.mjs").write_text(text.split('<script type="module">')[1].split("</script>")[0])
    subprocess.run([node(), "--check", tmp_path / "page.mjs"], check=True)
    done = nndeploy_command("export", tmp_path / "m.nnd", "-o", tmp_path / "again.html", "--for", "html", "--json")
    assert json.loads(done.stdout)["left_out"] == ["reference outputs"]


def test_a_name_from_a_model_stays_text(nndeploy_command, tmp_path) -> None:
    model = onnx.parser.parse_model(SUM)
    model.graph.name = "</script><script>alert(1)</script>"
    text = exported(model, tmp_path, nndeploy_command).read_text(encoding="utf-8")
    assert "<script>alert" not in text


def in_chromium(page: str, steps: Sequence[Mapping[str, Any]], *, loads: Sequence[str] = ()) -> list[Any]:
    """Returns what a page shows after each run or read; it `loads` nothing else. Skips where there is no browser."""
    chromium = shutil.which("chromium") or pytest.skip("there is no chromium: apt-get install chromium")
    if not PLAYWRIGHT.exists():
        pytest.skip("there is no playwright-core: make web-tools")
    job = {"playwright": str(PLAYWRIGHT), "chromium": chromium, "page": page, "steps": steps}
    command = [node(), HERE / "in_chromium.mjs"]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["requests"] == [page, *loads]
    assert found["errors"] == []
    shown: list[Any] = found["shown"]
    return shown


@pytest.mark.slow
def test_the_page_reads_digits_from_files_as_python_does(nndeploy_command, tmp_path) -> None:
    page = digit_page(tmp_path, nndeploy_command)
    files = sorted((DIGITS / "png").glob("*.png"))[:5]
    steps = [{"file": str(path), "run": True} for path in files]
    with nndeploy.load_bundle(tmp_path / "m.nnd", threads=1) as program:
        how = program.manifest.image_input
        for path, shown in zip(files, in_chromium(page.as_uri(), steps), strict=True):
            wanted = program.run({"image": array_from_image(Image.open(path), how, "float32")})["probabilities"][0]
            [output] = shown["outputs"]
            top, values = output["tables"]
            assert output["name"] == "probabilities"
            assert top[0][0] == str(wanted.argmax())
            np.testing.assert_allclose([float(value) for _, value in values], wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_the_page_reads_a_digit_that_is_drawn(nndeploy_command, tmp_path) -> None:
    steps = [{"draw": [0.5, 0.1, 0.5, 0.9]}, {"run": True}]
    [shown] = in_chromium(digit_page(tmp_path, nndeploy_command).as_uri(), steps)
    assert shown["outputs"][0]["tables"][0][0][0] == "1"


@pytest.mark.slow
def test_the_page_takes_numbers_and_arrays_and_says_what_is_wrong(nndeploy_command, tmp_path) -> None:
    page = exported(onnx.parser.parse_model(SUM), tmp_path, nndeploy_command)
    np.save(tmp_path / "x.npy", np.full((2, 3), 4, np.float32))
    np.save(tmp_path / "wide.npy", np.zeros((1, 4), np.float32))
    steps = [
        {"size": 2, "run": True}, {"text": "1 2.5, [3]", "run": True}, {"text": "1 2", "run": True},
        {"text": "one", "run": True}, {"file": str(tmp_path / "x.npy"), "run": True},
        {"file": str(tmp_path / "wide.npy"), "run": True},
    ]  # fmt: skip
    zeros, numbers, few, word, array, wide = in_chromium(page.as_uri(), steps)
    assert [output["name"] for output in zeros["outputs"]] == ["doubled", "sizes"]
    assert [value for _, value in zeros["outputs"][1]["tables"][-1]] == ["2", "3"]
    assert numbers["outputs"][0]["tables"][-1] == [["[0, 0]", "2"], ["[0, 1]", "5"], ["[0, 2]", "6"]]
    assert [value for _, value in array["outputs"][0]["tables"][-1]] == ["8"] * 6
    assert (zeros["error"], numbers["error"], array["error"]) == ("", "", "")
    assert all(one["error"] for one in (few, word, wide))


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, modules as JavaScript, and logs nothing."""

    extensions_map: ClassVar[dict[str, str]] = {".html": "text/html", ".mjs": "text/javascript"}

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """Returns where a web server has the files of `tmp_path`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_the_example_reads_a_digit_that_is_drawn(nndeploy_command, served, tmp_path) -> None:
    digit_page(tmp_path, nndeploy_command)
    done = nndeploy_command("export", tmp_path / "m.nnd", "-o", tmp_path / "digits.mjs", "--for", "wasm")
    assert done.returncode == 0, done.stderr
    shutil.copy(DRAW_A_DIGIT, tmp_path)
    steps = [{"draw": [0.5, 0.1, 0.5, 0.9], "read": "#digit"}]
    [text] = in_chromium(f"{served}/{DRAW_A_DIGIT.name}", steps, loads=[f"{served}/digits.mjs"])
    assert re.fullmatch(r"1 \(\d+ %\)", text)


def faces_by_python(bundle: Path, photo: Image.Image) -> list[tuple[float, list[float]]]:
    """Returns the scores and boxes, in pixels, that a network for 320 x 240 pixels gives: many of one face."""
    pixels = np.asarray(photo.convert("RGB").resize((320, 240)), np.float32)
    with nndeploy.load_bundle(bundle, threads=1) as program:
        found = program.run({"input": ((pixels - 127) / 128).transpose(2, 0, 1)[None]})
    sizes = np.array([*photo.size, *photo.size])
    pairs = zip(found["scores"][0, :, 1].tolist(), (found["boxes"][0] * sizes).tolist(), strict=True)
    return [(score, box) for score, box in pairs if score > 0.6]


def overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """Returns the share of two boxes that both cover, of what they cover together."""
    sides = [min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1)]
    both = max(0.0, sides[0]) * max(0.0, sides[1])
    return both / (sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)) - both)


@pytest.mark.slow
def test_the_example_finds_the_faces_that_python_finds(nndeploy_command, served, models_folder, tmp_path) -> None:
    bundle, file = tmp_path / "m.nnd", models_folder / "inputs" / "face_group.jpg"
    options: dict[str, Any] = {"backends": ("native",), "objective": "priority", "threads": 1}
    nndeploy.compile_model(models_folder / "ultraface_rfb320.onnx", bundle, **options)
    assert nndeploy_command("export", bundle, "-o", tmp_path / "faces.mjs", "--for", "wasm").returncode == 0
    shutil.copy(FIND_FACES, tmp_path)
    steps = [{"file": str(file), "read": "#faces"}]
    [text] = in_chromium(f"{served}/{FIND_FACES.name}", steps, loads=[f"{served}/faces.mjs"])
    count, *lines = text.splitlines()
    shown = [[float(number) for number in re.findall(r"[-\d.]+", line)] for line in lines]
    boxes = [(x, y, x + wide, y + high) for _, x, y, wide, high in shown]
    assert int(count.split()[0]) == len(boxes) > 3
    wanted = faces_by_python(bundle, Image.open(file))
    assert all(max(overlap(box, one) for _, one in wanted) > 0.5 for box in boxes)
    assert all(max(overlap(box, one) for one in boxes) > 0.3 for score, box in wanted if score > 0.9)
    assert all(overlap(a, b) < 0.35 for i, a in enumerate(boxes) for b in boxes[:i])

# SPDX-License-Identifier: Apache-2.0
"""A bundle -> one file that runs it in browsers and Node: an ES module, or a page that needs no server.

    the interpreter of bundles (`@nndeploy/run`) with the bundle and its WebAssembly modules inside, as gzip in base64

Comes in: an open bundle. Goes out: a file. Laws: as of `exported_program`; the file loads nothing.
"""

import base64
import gzip
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from nndeploy.bundle.manifest import ImageInput
from nndeploy.bundle.reader import Bundle
from nndeploy.bundle.writer import replace_file
from nndeploy.errors import UnavailableError, one_line
from nndeploy.files.page import escaped, filled
from nndeploy.runtime.exported_program import Exported, runnable
from nndeploy.values.types import TensorType

WEB_ARCH = "wasm32"
PAGE_SCRIPTS = ("npy.mjs", "pixels.mjs", "page.mjs")

_PAGE = "exported_page"
_PLACE = "const EMBEDDED = null;"


def export_module(bundle: Bundle, out: Path) -> Exported:
    """Writes an ES module whose `open()` opens the bundle.

    Raises:
        UnavailableError, BundleError, CannotCreateError, InputOutputError: as of `exported_program.export_program`.
    """
    script, bundle_bytes, left_out = _script(bundle)
    manifest = bundle.manifest
    lines = [f"{manifest.model_name}, by nndeploy export"]
    lines += [f"input {one.name}: {one.type}" for one in manifest.inputs]
    lines += [f"output {one.name}: {one.type}" for one in manifest.outputs]
    head = "".join(f"// {one_line(line)}\n" for line in lines)
    if manifest.image_input is not None:
        left_out = [*left_out, "the preprocessing of images and the labels"]
    return _written(out, head + script, bundle_bytes, left_out)


def export_page(bundle: Bundle, out: Path) -> Exported:
    """Writes a page with a form for the inputs of the bundle, which runs it without a network.

    Raises:
        UnavailableError, BundleError, CannotCreateError, InputOutputError: as of `exported_program.export_program`.
    """
    for one in (*bundle.manifest.inputs, *bundle.manifest.outputs):
        if not isinstance(one.type, TensorType) or one.type.dtype == "string":
            hint = "export --for wasm writes a module that takes it, and without --for a program"
            raise UnavailableError(f"{one.name!r} is {one.type}, which the page has no form for", hint=hint)
    script, bundle_bytes, left_out = _script(bundle)
    image = bundle.manifest.image_input
    parts = [script, *(_text(name) for name in PAGE_SCRIPTS)]
    page = filled(
        "nndeploy.runtime", f"{_PAGE}/page.html",
        {
            "title": escaped(bundle.manifest.model_name), "script": _joined(parts), "image_input": image_json(image),
        },
    )  # fmt: skip
    return _written(out, page, bundle_bytes, left_out)


def _script(bundle: Bundle) -> tuple[str, int, Sequence[str]]:
    """Returns the interpreter with the bundle inside, the bytes of the bundle in it, and what was left out."""
    part = runnable(bundle)
    package = part.backend.runner(WEB_ARCH, part.metadata)
    packed = _packed(b"".join(part.chunks))
    found = sorted(one for one in package.glob("nndeploy-*.wasm") if not one.stem.endswith("-threads"))
    # a module for each level of the kernels: a browser takes one
    modules = {one.stem.removeprefix("nndeploy-"): _packed(one.read_bytes()) for one in found}
    embedded = json.dumps({"bundle": packed, "modules": modules})
    script = package.joinpath("nndeploy.mjs").read_text(encoding="utf-8")
    assert script.count(_PLACE) == 1
    return script.replace(_PLACE, f"const EMBEDDED = {embedded};"), len(packed), part.left_out


def _packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, mtime=0)).decode("ascii")


def _text(name: str) -> str:
    return files("nndeploy.runtime").joinpath(_PAGE, name).read_text(encoding="utf-8")


def _joined(scripts: Iterable[str]) -> str:
    """Returns modules as one, which imports nothing from itself."""
    alone = re.sub(r"^import .*\n", "", "\n".join(scripts), flags=re.MULTILINE)
    return re.sub(r"^export ", "", alone, flags=re.MULTILINE)


def image_json(image: ImageInput | None) -> str:
    """Returns how images become an input, as the page reads it."""
    return json.dumps(None if image is None else asdict(image)).replace("<", "\\u003c")


def _written(out: Path, text: str, bundle_bytes: int, left_out: Iterable[str]) -> Exported:
    data = text.encode("utf-8", "backslashreplace")
    replace_file(out, [data])
    return Exported(len(data), bundle_bytes, tuple(left_out))

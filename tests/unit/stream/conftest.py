# SPDX-License-Identifier: Apache-2.0
"""Manifests and a program that need no bundle and no backend."""

import io
import sys
import wave
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import pytest

from nndeploy.bundle.manifest import ImageInput, Manifest, NamedType
from nndeploy.runtime.input_checks import InputChecks
from nndeploy.stream.stopping import Stop
from nndeploy.values.types import DimRange, TensorType, Value, ValueType


@pytest.fixture
def make_manifest() -> Callable[..., Manifest]:
    """Returns a function: input types, output types, image input -> manifest."""

    def make(
        inputs: Mapping[str, ValueType],
        outputs: Mapping[str, ValueType] | None = None,
        image: ImageInput | None = None,
        ranges: Mapping[str, DimRange] | None = None,
    ) -> Manifest:
        outputs = outputs or {"y": TensorType("float32", None)}
        return Manifest(
            model_name="m", model_sha256="0" * 64, inputs=tuple(NamedType(name, kind) for name, kind in inputs.items()),
            outputs=tuple(NamedType(name, kind) for name, kind in outputs.items()), submodels=(),
            values={**inputs, **outputs}, ranges=ranges or {}, image_input=image,
        )  # fmt: skip

    return make


@pytest.fixture
def stop() -> Iterator[Stop]:
    """A stop that nobody has asked for."""
    with closing(Stop()) as made:
        yield made


@pytest.fixture
def short_turns() -> Iterator[None]:
    """Threads change places as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class FakeProgram:
    """Checks inputs as a program does, and computes with a Python function."""

    rows_at_once = 1 << 31

    def __init__(self, manifest: Manifest, function: Callable[..., dict[str, Value]]) -> None:
        self.manifest = manifest
        self._checks = InputChecks(manifest.inputs, manifest.ranges)
        self._function = function

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        return self._function(**self._checks(inputs))


@pytest.fixture
def fake_program() -> type[FakeProgram]:
    return FakeProgram


@pytest.fixture
def digits() -> ImageInput:
    """How an image becomes the input `image`: 2 x 3 pixels, grey, 0..1."""
    return ImageInput("image", 2, 3, "L", "NCHW", (0.0,), (255.0,), ("no", "yes"))


@pytest.fixture
def tone() -> bytes:
    """Returns a WAV file: 100 samples at 8 kHz, 16 bits."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((1, 2, 8000, 0, "NONE", ""))
        writer.writeframes(bytes(200))
    return file.getvalue()

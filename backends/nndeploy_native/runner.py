# SPDX-License-Identifier: Apache-2.0
"""The program that runs plans without Python (`nndeploy_kernels/runtime`): where it is, and what it does not run."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nndeploy_kernels import loading
from nndeploy_kernels.levels import WEB_ARCH, WINDOWS_ARCH

from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import Json
from nndeploy_native.course import course_from_json, python_steps
from nndeploy_native.plan import DOCUMENT_FILE, PLAN_FORMATS, PLAN_FORMATS_OF_PYTHON_STEPS

STEPS = frozenset((
    "Compress", "Concat", "Equal", "Gather", "LabelEncoder", "NonMaxSuppression", "NonZero", "Reshape", "Take",
    "TextBytes", "Transpose", "ZipMap",
))  # fmt: skip
"""Steps beside plans that the program runs too."""


def runner(arch: str, metadata: Sequence[Mapping[str, Json]]) -> Path:
    """Returns the program for an architecture and artifacts with these metadata.

    For the architecture of browsers and Node it is the folder of their package. That for Windows computes in float32.

    Raises:
        UnavailableError: it is not installed.
    """
    precision = "bf16" if any(one.get("precision") == "bf16" for one in metadata) else "fp32"
    if (path := loading.runner_for(arch, precision)) is not None:
        return path
    if precision == "bf16" and arch not in (WEB_ARCH, WINDOWS_ARCH):
        hint = f"--runner names one, as the archive for C holds it; in a checkout, make runtime ARGS={arch}"
        raise UnavailableError(f"no runner with kernels for bfloat16 for {arch} is installed", hint=hint)
    hint = f"in a checkout, make runtime ARGS={arch}"
    if arch != WEB_ARCH:
        hint += "; --runner names one, as the wheel of that architecture holds it"
    raise UnavailableError(f"no runner for {arch} is installed", hint=hint)


def why_not_alone(metadata: Mapping[str, Json], file: Callable[[str], bytes | memoryview]) -> str:
    """Returns what of an artifact needs Python, "" where nothing does."""
    if metadata.get("format") not in PLAN_FORMATS:
        return f"a plan of format {metadata.get('format')}"
    if metadata["format"] not in PLAN_FORMATS_OF_PYTHON_STEPS:
        return ""
    steps = python_steps(course_from_json(bytes(file(DOCUMENT_FILE))).course)
    if others := sorted({step.operator for step in steps} - STEPS):
        return f"steps that are run by Python ({', '.join(others)})"
    has_real_keys = any(type(key) is float for step in steps for key in step.attributes.get("keys", ()))
    return "a table with real numbers as keys" if has_real_keys else ""

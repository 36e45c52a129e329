# SPDX-License-Identifier: Apache-2.0
"""The program that runs plans without Python (`nndeploy_kernels/runtime`): where it is, and what it does not run."""

from collections.abc import Mapping
from pathlib import Path

from nndeploy_kernels import loading

from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import Json
from nndeploy_native.plan import PLAN_FORMAT_OF_COURSES, PLAN_FORMATS

FORMATS = tuple(one for one in PLAN_FORMATS if one <= PLAN_FORMAT_OF_COURSES)
"""Those before steps of Python."""


def runner(arch: str) -> Path:
    """Returns the program for an architecture.

    Raises:
        UnavailableError: it is not installed.
    """
    if (path := loading.runner_for(arch)) is not None:
        return path
    hint = f"in a checkout, make runtime ARGS={arch}; --runner names one, as the wheel of that architecture holds it"
    raise UnavailableError(f"no runner for {arch} is installed", hint=hint)


def why_not_alone(metadata: Mapping[str, Json]) -> str:
    """Returns what of an artifact needs Python, "" where nothing does."""
    return "" if metadata.get("format") in FORMATS else "texts or maps"

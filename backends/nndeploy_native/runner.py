# SPDX-License-Identifier: Apache-2.0
"""The program that runs plans without Python (`nndeploy_kernels/runtime`): where it is, and what it does not run."""

from collections.abc import Mapping
from pathlib import Path

from nndeploy_kernels import loading

from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import Json
from nndeploy_native.course import course_from_json
from nndeploy_native.plan import (
    DOCUMENT_FILE,
    PLAN_FORMAT_OF_COURSES,
    PLAN_FORMAT_OF_FIXED,
    PLAN_FORMAT_OF_HALVES,
    document_from_json,
)

FORMATS = (PLAN_FORMAT_OF_FIXED, PLAN_FORMAT_OF_HALVES, PLAN_FORMAT_OF_COURSES)


def runner(arch: str) -> Path:
    """Returns the program for an architecture.

    Raises:
        UnavailableError: it is not installed.
    """
    if (path := loading.runner_for(arch)) is not None:
        return path
    hint = "the wheel of that architecture brings it; in a checkout, make runtime"
    raise UnavailableError(f"no runner for {arch} is installed", hint=hint)


def why_not_alone(files: Mapping[str, memoryview], metadata: Mapping[str, Json]) -> str:
    """Returns what of an artifact needs Python, "" where nothing does.

    Raises:
        BundleError: it is malformed.
    """
    found = metadata.get("format")
    if found == PLAN_FORMAT_OF_COURSES:
        plans = course_from_json(bytes(files[DOCUMENT_FILE])).plans
    elif found in FORMATS:
        plans = (document_from_json(bytes(files[DOCUMENT_FILE])),)
    else:
        return "texts, maps, or a cache that grows"
    return "a cache that grows" if any(plan.grown for plan in plans) else ""

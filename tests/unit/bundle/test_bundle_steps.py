# SPDX-License-Identifier: Apache-2.0
"""A variant's plan.json tells its steps; whatever else such a file holds is passed over."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.steps import steps_of
from nndeploy.bundle.writer import write_bundle
from nndeploy.errors import BundleError
from nndeploy.values.plan_steps import PlanStep, is_fused

MEMBER = "submodels/head/portable/plan.json"
COPY = {"kernel": "copy", "what": "moves", "num_bytes": 7}
FUSED = {"kernel": "separable", "window": "1x8x32", "buffer_bytes": 8192}


Written = Callable[[bytes], Path]


@pytest.fixture
def written(tmp_path: Path, manifest: Manifest, members: dict[str, bytes]) -> Written:
    """Returns a function that writes a bundle whose first submodel's variant has a plan."""
    head, tail = manifest.submodels
    (variant,) = head.variants
    told = replace(head, variants=(replace(variant, files={**variant.files, "plan.json": MEMBER}),))

    def write(plan: bytes) -> Path:
        path = tmp_path / "m.nnd"
        write_bundle(path, replace(manifest, submodels=(told, tail)), {**members, MEMBER: plan}, {})
        return path

    return write


def steps_in(path: Path, submodel: int = 0) -> list[PlanStep]:
    with open_bundle(path) as bundle:
        return steps_of(bundle, bundle.manifest.submodels[submodel].variants[0])


def test_steps_come_in_their_order(written: Written) -> None:
    plan = json.dumps({"arena_bytes": 5, "steps": [COPY, FUSED]}, indent=1).encode()
    assert steps_in(written(plan)) == [COPY, FUSED]
    assert [is_fused(step) for step in (COPY, FUSED)] == [False, True]


@pytest.mark.parametrize(
    "plan", [b"", b"no JSON", b"\xff", b"[1]", b"{}", b'{"steps": 1}', b'{"steps": {"a": 1}}', b"[" * 100_000]
)
def test_other_files_tell_nothing(written: Written, plan: bytes) -> None:
    assert steps_in(written(plan)) == []


@pytest.mark.parametrize("value", ["NaN", "1.5", "true", "null", "[]", "{}", "9" * 20, "1e999"])
def test_values_that_are_no_text_or_whole_number_are_passed_over(written: Written, value: str) -> None:
    plan = f'{{"steps": [1, {{"kernel": {value}}}, {json.dumps(COPY)}]}}'.encode()
    assert steps_in(written(plan)) == [COPY]


def test_variant_without_a_plan_has_no_steps(written: Written) -> None:
    assert steps_in(written(b"{}"), submodel=1) == []


def test_damaged_plan_is_an_error(written: Written) -> None:
    path = written(json.dumps({"steps": [COPY]}).encode())
    path.write_bytes(path.read_bytes().replace(b'"moves"', b'"MOVES"'))
    with pytest.raises(BundleError, match=r"plan\.json: damaged"):
        steps_in(path)

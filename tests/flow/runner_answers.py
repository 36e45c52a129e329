# SPDX-License-Identifier: Apache-2.0
"""What nndeploy-run and exported programs answer with --json, and bundles whose references are others."""

import dataclasses
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from nndeploy.bundle.container import encode_container
from nndeploy.bundle.manifest import Limits, Tolerance
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.values import encode_values
from nndeploy.bundle.writer import sealed_bundle

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "nndeploy" / "cli" / "answers.schema.json").read_text(encoding="utf-8"))


def with_reference(
    bundle: Path, out: Path, change: Callable[[dict[str, Any]], None], limits: Mapping[str, Limits],
    tolerances: Mapping[str, Tolerance],
) -> Path:  # fmt: skip
    """Writes a bundle whose first golden has other reference outputs and limits; returns it."""
    with open_bundle(bundle) as opened:
        (golden,) = opened.manifest.goldens
        wanted = {name: np.array(value) for name, value in opened.values(golden.outputs).items()}
        change(wanted)
        goldens = (dataclasses.replace(golden, limits=limits, boundaries=""),)
        manifest = dataclasses.replace(
            opened.manifest, goldens=goldens, tolerances={**opened.manifest.tolerances, **tolerances}, compressed={}
        )
        names = {name for name in opened.manifest.members if name not in (golden.boundaries, "report.json")}
        members = {name: opened.member(name) for name in names} | {golden.outputs: encode_values(wanted)}
        contents, _ = sealed_bundle(manifest, members, {})
    out.write_bytes(b"".join(encode_container(contents)))
    return out


def answer(command: list[Any], code: int) -> dict[str, Any]:
    """Returns what a command answers with --json, which is as the schema of answers says."""
    done = subprocess.run([*map(str, command), "--json"], capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == (code != 0)
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    assert found["ok"] == (code == 0)
    if code:
        assert found["error"]["exit_code"] == code
    return found

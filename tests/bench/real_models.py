# SPDX-License-Identifier: Apache-2.0
"""The real models beside the repository, each with its recorded sample, as index.json lists them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Array

MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"


@dataclass(frozen=True)
class RealModel:
    """A model and its recorded sample by tensor name; inputs and outputs are in the model's order."""

    name: str
    path: Path
    inputs: dict[str, Array]
    outputs: dict[str, Array]


def names_in(folder: Path) -> list[str]:
    """Returns the names of the models, in the order of the list; none where there is no list."""
    return list(_entries(folder))


def real_model(folder: Path, name: str) -> RealModel:
    """Returns a model of the folder.

    Raises:
        SystemExit: there is none of that name.
    """
    entry = _entries(folder).get(name)
    if entry is None:
        raise SystemExit(f"no model {name!r} in {folder}")
    with np.load(folder / entry["sample_npz"]) as arrays:
        sample = {key: arrays[key] for key in sorted(arrays.files)}
    inputs, outputs = (
        {entry["sample_keys"][key]: value for key, value in sample.items() if key.startswith(kind)}
        for kind in ("in", "out")
    )
    return RealModel(name, folder / entry["file"], inputs, outputs)


def _entries(folder: Path) -> dict[str, dict[str, Any]]:
    index = folder / "index.json"
    return {entry["name"]: entry for entry in json.loads(index.read_text())["models"]} if index.exists() else {}

# SPDX-License-Identifier: Apache-2.0
"""What the zoo's bench measures: every exported graph and every real model, each with inputs that run."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from interleaved import Array
from real_models import names_in, real_model


@dataclass(frozen=True)
class Subject:
    """A model to measure: its group heads a table of its own, `about` says what it is and who wrote it."""

    name: str
    group: str
    about: str
    path: Path
    inputs: dict[str, Array]


EXPORTED, REAL = "exported graphs", "real models"


def exported(folder: Path) -> list[str]:
    """Returns the names of the graphs that `make zoo` wrote; none where the folder is absent."""
    index = folder / "index.json"
    return list(json.loads(index.read_text())) if index.exists() else []


def subject(name: str, zoo: Path, models: Path) -> Subject:
    """Returns a graph of the zoo or a real model with its inputs.

    Raises:
        SystemExit: there is none of that name.
    """
    if name in exported(zoo):
        entry = json.loads((zoo / "index.json").read_text())[name]
        with np.load(zoo / "inputs" / f"{name}.npz") as arrays:
            inputs = {key: arrays[key] for key in arrays.files}
        about = f"{entry['kind']}; {entry['exporter']}"
        return Subject(name, EXPORTED, about, zoo / f"{name}.onnx", inputs)
    real = real_model(models, name)
    return Subject(name, REAL, "trained", real.path, real.inputs)


def all_names(zoo: Path, models: Path) -> list[str]:
    """Returns every name: the exported graphs, then the real models."""
    return [*exported(zoo), *names_in(models)]

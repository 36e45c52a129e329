# SPDX-License-Identifier: Apache-2.0
"""A file of what a compile decided, so that another compile decides alike without measuring.

JSON: which model and options it is for, the recipe of the placement that was chosen, and the table of all candidates
with their predicted and measured times. Law: a bundle made again from the same model, options and decisions holds the
same report.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nndeploy.bundle.report import Candidate, candidate_from_json
from nndeploy.compiler.placement.candidates import EXPORTED, OPTIMISED, Recipe
from nndeploy.errors import DataError
from nndeploy.files.decisions_file import read_decisions_file, write_decisions_file

FORMAT = 2
_KEYS = {"format", "model_sha256", "options_sha256", "chosen", "candidates", "measured_shapes", "dropped"}


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided: the recipe, the table behind it, and what candidates lost on the way."""

    recipe: Recipe
    candidates: tuple[Candidate, ...]
    measured_shapes: tuple[str, ...]
    dropped: tuple[str, ...]


def decisions_from_file(path: Path, model_sha256: str, options: Mapping[str, Any]) -> Decisions:
    """Returns the decisions for a model and the options of a compile.

    Raises:
        DataError: the file is malformed, or for another model or other options.
        InputOutputError: it cannot be read.
    """
    where, hint = str(path), "remove the file to decide anew"
    data = read_decisions_file(path)
    if not isinstance(data, dict) or data.keys() != _KEYS or data["format"] != FORMAT:
        raise DataError(f"not a decisions file of format {FORMAT}", where=where)
    if data["model_sha256"] != model_sha256:
        raise DataError("the decisions are for another model", where=where, hint=hint)
    if data["options_sha256"] != _digest(options):
        raise DataError("the decisions were made with other compile options", where=where, hint=hint)
    try:
        candidates = tuple(candidate_from_json(each) for each in data["candidates"])
        shapes, dropped = (tuple(map(str, data[key])) for key in ("measured_shapes", "dropped"))
        return Decisions(_recipe(data["chosen"]), candidates, shapes, dropped)
    except (TypeError, ValueError, AttributeError, KeyError) as err:
        raise DataError(f"malformed decisions: {err}", where=where) from err


def write_decisions(path: Path, decisions: Decisions, model_sha256: str, options: Mapping[str, Any]) -> None:
    """Writes the decisions: the whole file or nothing.

    Raises:
        CannotCreateError, InputOutputError: it cannot be written.
    """
    data = {
        "format": FORMAT,
        "model_sha256": model_sha256,
        "options_sha256": _digest(options),
        "chosen": dataclasses.asdict(decisions.recipe),
        "candidates": [dataclasses.asdict(candidate) for candidate in decisions.candidates],
        "measured_shapes": decisions.measured_shapes,
        "dropped": decisions.dropped,
    }
    write_decisions_file(path, data)


def _recipe(data: Any) -> Recipe:
    name, graph, order, pins, as_taken = (data[key] for key in ("name", "graph", "order", "pins", "as_taken"))
    pairs = [tuple(pin) for pin in pins]
    texts = [name, *order, *as_taken, *(text for pair in pairs for text in pair)]
    if graph not in (OPTIMISED, EXPORTED) or not order or any(len(pair) != 2 for pair in pairs):
        raise ValueError("the choice is not a recipe")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name is not a string")
    return Recipe(name, graph, tuple(order), tuple((glob, backend) for glob, backend in pairs), tuple(as_taken))


def _digest(options: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()

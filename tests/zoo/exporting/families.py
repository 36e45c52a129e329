# SPDX-License-Identifier: Apache-2.0
"""All modules that list graphs, imported in this order: a graph stands behind those that it is made from."""

import importlib
from collections.abc import Sequence

import exporting.torchvision_operators  # noqa: F401 -- before torchvision
from exporting.graphs import GRAPHS, Graph

FAMILIES = (
    "classifiers",
    "vision_transformers",
    "detectors",
    "segmenters",
    "yolo",
    "encoders",
    "decoders",
    "speech",
    "vision_language",
    "recurrent",
    "quantised",
    "half",
    "trees",
    "text_pipelines",
    "tables",
)


USUAL_SIZES = "usual_sizes"
"""The module of graphs that are no part of the zoo."""


def listed() -> dict[str, Graph]:
    """Returns every graph of the zoo by its name."""
    return _of(FAMILIES)


def of_usual_sizes() -> dict[str, Graph]:
    """Returns the transformers of usual sizes by their names."""
    return _of((USUAL_SIZES,))


def _of(modules: Sequence[str]) -> dict[str, Graph]:
    """Returns the graphs that modules list, whatever else was imported."""
    named = [f"exporting.{module}" for module in modules]
    for name in named:
        importlib.import_module(name)
    return {name: one for name, one in GRAPHS.items() if one.make.__module__ in named}

# SPDX-License-Identifier: Apache-2.0
"""All modules that list graphs, imported in this order: a graph stands behind those that it is made from."""

import importlib

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
)


USUAL_SIZES = "usual_sizes"
"""The module of graphs that are no part of the zoo."""


def listed() -> dict[str, Graph]:
    """Returns every graph of the zoo by its name."""
    for family in FAMILIES:
        importlib.import_module(f"exporting.{family}")
    return GRAPHS


def of_usual_sizes() -> dict[str, Graph]:
    """Returns the transformers of usual sizes by their names."""
    before = set(listed())
    importlib.import_module(f"exporting.{USUAL_SIZES}")
    return {name: one for name, one in GRAPHS.items() if name not in before}

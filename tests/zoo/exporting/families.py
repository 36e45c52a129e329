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


def listed() -> dict[str, Graph]:
    """Returns every graph by its name."""
    for family in FAMILIES:
        importlib.import_module(f"exporting.{family}")
    return GRAPHS

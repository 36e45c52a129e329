# SPDX-License-Identifier: Apache-2.0
"""The file of a cost table: written, and what a library cannot be limited to taken from the ratios of our kernels."""

import json
import math
import re
from pathlib import Path
from typing import Any

from nndeploy.partition import kinds

MEASURE = "native"
"""The backend whose ratio between two levels stands for that of libraries which cannot be limited."""
UNLIMITED = {
    "onnxruntime": frozenset(kinds.MEASURED_KINDS),
    "openvino": frozenset({kinds.ROW_PRODUCT, kinds.SMALL_PRODUCT, kinds.PRODUCT}),
}
"""Kinds by library that are computed with the widest instructions of the processor whatever is asked for."""


def write_table(path: Path, table: dict[str, Any]) -> None:
    """Writes a table, a line a point."""
    text = re.sub(r"\[\s+([\d.e+-]+),\s+([\d.e+-]+)\s+\]", r"[\1, \2]", json.dumps(table, indent=1))
    path.write_text(text + "\n", encoding="utf-8")


def with_factors(table: dict[str, Any], factors: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Returns a table with the factors of terms within networks, by backend."""
    backends = {name: {**one, "in_networks": factors.get(name, {})} for name, one in table["backends"].items()}
    return {**table, "backends": backends}


def with_ratios_of(widest: Path, lesser: Path) -> None:
    """Gives, in a lesser level's file, the libraries what could not be measured: the widest's by our own ratios."""
    wide, less = (json.loads(path.read_text(encoding="utf-8"))["backends"] for path in (widest, lesser))
    ratios = {
        kind: _ratio(points, wide[MEASURE]["curves"].get(kind, points))
        for kind, points in less[MEASURE]["curves"].items()
    }
    for backend, unlimited in UNLIMITED.items():
        if backend not in less or backend not in wide:  # it takes none of the kinds that were asked for
            continue
        curves = less[backend]["curves"]
        for kind, points in wide[backend]["curves"].items():
            if kind in unlimited or kind not in curves:
                ratio = ratios.get(kind, 1.0)
                curves[kind] = [(x, float(f"{y * ratio:.4g}")) for x, y in points]
    write_table(lesser, {**json.loads(lesser.read_text(encoding="utf-8")), "backends": less})


def _ratio(lesser: list[list[float]], wide: list[list[float]]) -> float:
    pairs = list(zip(lesser, wide, strict=False))
    return max(1.0, math.exp(math.fsum(math.log(a[1] / b[1]) for a, b in pairs) / len(pairs)))

# SPDX-License-Identifier: Apache-2.0
"""plan.json: what the run half needs of a library, and what whoever inspects it wants to see.

Law: `plan_from_json(plan_to_json(p)) == p`. Everything that is read is checked: it comes from a bundle.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nndeploy.errors import BundleError

ALIGNMENT = 64
"""A cache line, and the largest vector."""
PLAN_FILE = "plan.json"
LIBRARY_FILE = "kernels.so"
CONSTANTS_FILE = "constants.bin"
MAX_BYTES = 2**40
MAX_RANK = 64
FORMATS = ("fp32", "blocked fp32", "blocked bf16")
"""Of a border: "fp32" is plain."""


@dataclass(frozen=True, slots=True)
class Border:
    """An input or output: the shape of its memory, and what lies there. In a bundle all are fp32 in ONNX's order."""

    name: str
    shape: tuple[int, ...]
    format: str = "fp32"

    @property
    def is_blocked(self) -> bool:
        """Whether it is in channel blocks, which begin at a cache line."""
        return self.format != "fp32"


@dataclass(frozen=True, slots=True)
class Plan:
    """`scratch_bytes` are those of each thread; `steps` say what each step is, in order: for readers only."""

    isa: str
    arena_bytes: int
    scratch_bytes: int
    constants_bytes: int
    inputs: tuple[Border, ...]
    outputs: tuple[Border, ...]
    steps: tuple[Mapping[str, int | str], ...] = ()


def plan_to_json(plan: Plan) -> bytes:
    """Returns the bytes of plan.json."""
    data = {
        "isa": plan.isa,
        "arena_bytes": plan.arena_bytes,
        "scratch_bytes": plan.scratch_bytes,
        "constants_bytes": plan.constants_bytes,
        "inputs": [[border.name, list(border.shape), border.format] for border in plan.inputs],
        "outputs": [[border.name, list(border.shape), border.format] for border in plan.outputs],
        "steps": [dict(step) for step in plan.steps],
    }
    return json.dumps(data, indent=1, ensure_ascii=False).encode()


def plan_from_json(text: bytes) -> Plan:
    """Returns the plan.

    Raises:
        BundleError: it is malformed.
    """
    try:
        data = json.loads(text)
        return Plan(
            str(data["isa"]),
            _bytes(data["arena_bytes"]),
            _bytes(data["scratch_bytes"]),
            _bytes(data["constants_bytes"]),
            _borders(data["inputs"]),
            _borders(data["outputs"]),
            tuple(dict(step) for step in data["steps"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as err:
        raise BundleError(f"a malformed {PLAN_FILE}: {err!s:.200}") from err


def _borders(data: Sequence[Any]) -> tuple[Border, ...]:
    return tuple(Border(str(name), _shape(shape), _format(kind)) for name, shape, kind in data)


def _format(name: Any) -> str:
    if name not in FORMATS:
        raise ValueError(f"not a format: {name!r:.40}")
    return str(name)


def _shape(data: Sequence[Any]) -> tuple[int, ...]:
    if len(data) > MAX_RANK:
        raise ValueError(f"a shape of {len(data)} axes")
    return tuple(_bytes(size) for size in data)


def _bytes(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_BYTES:
        raise ValueError(f"not a size: {value!r:.40}")
    return value

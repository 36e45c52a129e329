# SPDX-License-Identifier: Apache-2.0
"""Whether a plan, the files beside it, the metadata and what the bundle says of the submodel are of one build.

All of it is read before a byte of the library is mapped. What passes keeps these laws:

    the library was made with this very plan.json and constants.bin: it holds their hash, the seal
    the metadata say the format, the instruction set and the machine that the plan's instruction set has
    inputs and outputs have the names, types and sizes that the bundle says; each name stands once
    sizes that are not fixed are entries of a table whose symbols the inputs give; else there is no table
    every array's bytes are a number that memory may have
"""

import hashlib
import math
from collections.abc import Mapping, Sequence

from nndeploy.errors import BundleError
from nndeploy.plugin.interface import Json, OpenOptions
from nndeploy.values.types import TensorType, ValueType
from nndeploy_native.isa import ISAS
from nndeploy_native.plan import (
    CONSTANTS_FILE,
    FORMAT,
    LIBRARY_FILE,
    MAX_BYTES,
    PLAN_FILE,
    SHAPES_FORMAT,
    Border,
    NativePlan,
)

DTYPES = {"fp32": "float32", "int32": "int32", "int64": "int64"}
_SEAL = b"nndeploy-native sha256:"


def seal_of(plan: bytes | memoryview, constants: bytes | memoryview) -> str:
    """Returns the text by which a library says which plan.json and constants.bin it was made with."""
    digest = hashlib.sha256(len(plan).to_bytes(8, "little"))
    digest.update(plan)
    digest.update(constants)
    return _SEAL.decode() + digest.hexdigest()


def check_plan(
    plan: NativePlan, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions
) -> None:
    """Passes a plan that fits to everything.

    Raises:
        BundleError: it does not; the error says what differs.
    """
    _check_metadata(plan, metadata)
    _check_names(plan)
    for side, borders, said in (("input", plan.inputs, options.inputs), ("output", plan.outputs, options.outputs)):
        if said is not None:
            _check_borders(side, borders, said)
    _check_sizes(plan)
    _check_files(plan, files)


def _check_metadata(plan: NativePlan, metadata: Mapping[str, Json]) -> None:
    isa = next((one for one in ISAS if one.name == plan.isa), None)
    if isa is None:
        raise BundleError(f"{PLAN_FILE} is for an unknown instruction set: {plan.isa!r:.40}")
    expected = {
        "format": FORMAT if plan.shapes is None else SHAPES_FORMAT,
        "isa": isa.name,
        "arch": isa.arch,
        "cpu_features": list(isa.cpu_features),
    }
    for key, value in expected.items():
        if metadata.get(key) != value:
            raise BundleError(f"the metadata say {key} {metadata.get(key)!r:.60}, {PLAN_FILE} {value!r:.60}")


def _check_names(plan: NativePlan) -> None:
    for borders in (plan.inputs, plan.outputs):
        if len({border.name for border in borders}) != len(borders):
            raise BundleError(f"{PLAN_FILE} names an input or output twice")
    if not plan.outputs:
        raise BundleError(f"{PLAN_FILE} has no outputs")


def _check_borders(side: str, borders: Sequence[Border], said: Mapping[str, ValueType]) -> None:
    names = {border.name for border in borders}
    if (side == "input" and not names <= set(said)) or (side == "output" and names != set(said)):
        raise BundleError(f"{PLAN_FILE} has other {side}s than the bundle says")
    for border in borders:
        expected = said[border.name]
        if not isinstance(expected, TensorType) or DTYPES.get(border.format) != expected.dtype:
            raise BundleError(f"{side} {border.name!r:.60}: {PLAN_FILE} says {border.format}, the bundle {expected}")
        if expected.shape is not None and not _is_shape(border, expected.shape):
            shape = ",".join(str(size) if isinstance(size, int) else "?" for size in border.shape)
            raise BundleError(f"{side} {border.name!r:.60}: {PLAN_FILE} says [{shape}], the bundle {expected}")


def _is_shape(border: Border, said: Sequence[object]) -> bool:
    """Whether a shape is what the bundle says; a size that is named there may be any here."""
    return len(border.shape) == len(said) and all(
        not isinstance(wanted, int) or size == wanted for size, wanted in zip(border.shape, said, strict=True)
    )


def _check_sizes(plan: NativePlan) -> None:
    for border in (*plan.inputs, *plan.outputs):
        if border.is_fixed and math.prod(border.sizes(())) * 8 > MAX_BYTES:
            raise BundleError(f"{PLAN_FILE} says {border.name!r:.60} is {border.shape}, more than any memory")
    is_dynamic = not all(border.is_fixed for border in plan.inputs)
    if is_dynamic != (plan.shapes is not None) or (plan.shapes is not None and not plan.shapes.symbols):
        raise BundleError(f"{PLAN_FILE} has a table of sizes and no size that depends on an input, or the other way")


def _check_files(plan: NativePlan, files: Mapping[str, memoryview]) -> None:
    if len(files[CONSTANTS_FILE]) != plan.constants_bytes:
        raise BundleError(
            f"{CONSTANTS_FILE} has {len(files[CONSTANTS_FILE])} bytes, the plan says {plan.constants_bytes}"
        )
    library = bytes(files[LIBRARY_FILE])
    if library.count(_SEAL) != 1 or seal_of(files[PLAN_FILE], files[CONSTANTS_FILE]).encode() not in library:
        raise BundleError(f"{LIBRARY_FILE} was made with another {PLAN_FILE} or {CONSTANTS_FILE} than is here")

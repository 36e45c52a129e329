# SPDX-License-Identifier: Apache-2.0
"""How near is near enough, by element type and by what was computed: the one table, each number with its reason.

`NETWORK` is for outputs of whole models and large pieces, whose errors have added up; the finer classes are for
tests of single operators. The law of the check (`nndeploy.comparison`): |got - want| <= atol + rtol * |want|.
"""

from enum import Enum

from nndeploy.bundle.manifest import Tolerance
from nndeploy.values.types import DTYPES


class OperatorClass(Enum):
    """What was computed."""

    MOVES = "moves"  # copies, comparisons, integer arithmetic: nothing is rounded
    ROUNDED = "rounded"  # one or a few correctly rounded steps, which a library may contract or reorder
    SUMS = "sums"  # long sums in another order: matrix products, convolutions, means
    FUNCTIONS = "functions"  # exp, tanh, erf, ...: polynomials, differently good
    NETWORK = "network"  # many layers of all that


_EXACT = Tolerance(rtol=0.0, atol=0.0)

_ONE_STEP = Tolerance(rtol=0.0, atol=1.0)
"""A quantised value that lies between two steps is rounded to either, as the sum before it came out."""

_NETWORK: dict[str, Tolerance] = {
    # Sums of some thousand float32 products come out within 1e-5 of their size; a hundred layers make that 1e-3.
    "float32": Tolerance(rtol=1e-3, atol=1e-4),
    "complex64": Tolerance(rtol=1e-3, atol=1e-4),
    # A library may take a polynomial that is good for float32 and a little more; real float64 sums are far better.
    "float64": Tolerance(rtol=1e-6, atol=1e-7),
    "complex128": Tolerance(rtol=1e-6, atol=1e-7),
    # Eight steps of the type: whether sums are kept in 16 bits or in 32 is the library's choice.
    "float16": Tolerance(rtol=1e-2, atol=1e-2),
    "bfloat16": Tolerance(rtol=6e-2, atol=2e-2),
    # One step of the type, relative to the element; atol is the smallest step around zero.
    "float8_e4m3fn": Tolerance(rtol=2**-3, atol=2**-9),
    "float8_e4m3fnuz": Tolerance(rtol=2**-3, atol=2**-10),
    "float8_e5m2": Tolerance(rtol=2**-2, atol=2**-16),
    "float8_e5m2fnuz": Tolerance(rtol=2**-2, atol=2**-17),
    "float8_e8m0fnu": Tolerance(rtol=1.0, atol=0.0),
    "float4_e2m1fn": Tolerance(rtol=2**-1, atol=0.5),
    **dict.fromkeys(("int8", "uint8", "int4", "uint4", "int2", "uint2"), _ONE_STEP),
}

_STEPS: dict[str, float] = {
    "float64": 2.0**-52, "complex128": 2.0**-52, "float32": 2.0**-23, "complex64": 2.0**-23, "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}  # fmt: skip
"""The relative distance of neighbouring numbers of a type."""

_NUM_STEPS = {
    OperatorClass.ROUNDED: 4.0,  # a product and a sum, contracted or not, twice
    OperatorClass.SUMS: 64.0,  # sums of up to 4,096 terms: the root of that
    OperatorClass.FUNCTIONS: 128.0,  # OpenVINO 2026.4's float32 functions are good to 1e-5
}


def tolerance_for(dtype: str, computed: OperatorClass = OperatorClass.NETWORK) -> Tolerance:
    """Returns the tolerance of one element type of `nndeploy.values.types.DTYPES`.

    The absolute part of the finer classes is for elements of size 1.
    """
    assert dtype in DTYPES, dtype
    network = _NETWORK.get(dtype, _EXACT)
    if computed is OperatorClass.NETWORK:
        return network
    if computed is OperatorClass.MOVES:
        return _EXACT
    if dtype not in _STEPS:
        return network
    size = _NUM_STEPS[computed] * _STEPS[dtype]
    return Tolerance(rtol=min(size, network.rtol), atol=min(size, network.atol))

# SPDX-License-Identifier: Apache-2.0
"""How near is near enough, by element type."""

from nndeploy.bundle.manifest import Tolerance


def tolerance_for(dtype: str) -> Tolerance:
    """Returns the tolerance of one element type of `nndeploy.value_types.DTYPES`."""
    if dtype in ("float16", "bfloat16"):
        return Tolerance(rtol=1e-2, atol=1e-2)
    if dtype.startswith(("float", "complex")):
        return Tolerance(rtol=1e-3, atol=1e-4)
    return Tolerance(rtol=0.0, atol=1.0 if dtype in ("int8", "uint8") else 0.0)

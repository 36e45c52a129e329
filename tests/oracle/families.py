# SPDX-License-Identifier: Apache-2.0
"""All families of operators; importing this fills the registry."""

from oracle import (  # noqa: F401
    convolutions,
    elementwise,
    indexing,
    linear,
    normalisation,
    pooling,
    recurrent,
    reductions,
    shapes,
)

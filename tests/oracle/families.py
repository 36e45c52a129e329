# SPDX-License-Identifier: Apache-2.0
"""All families of operators; importing this fills the registry."""

from oracle import (  # noqa: F401
    attention,
    casts,
    control_flow,
    convolutions,
    elementwise,
    indexing,
    linear,
    machines,
    normalisation,
    pooling,
    quantisation,
    recurrent,
    reductions,
    resizing,
    shapes,
    signals,
    text,
)

WITHOUT = {
    "Bernoulli": "random", "Multinomial": "random", "RandomNormal": "random", "RandomNormalLike": "random",
    "RandomUniform": "random", "RandomUniformLike": "random",
    "ImageDecoder": "formats of pictures, whose decoders may differ by a step",
    "SVMClassifier": "its schema gives no formula",
}  # fmt: skip
"""Operators that the oracle has not, each with the reason."""

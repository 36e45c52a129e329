# SPDX-License-Identifier: Apache-2.0
"""The backend `reference` keeps the promises of the interface."""

from nndeploy_reference.plugin import Plugin

from nndeploy.testing import BackendConformance


class TestReference(BackendConformance):
    backend = Plugin()
    library_is_onnx = True
    limits_threads = False  # numpy's matrix products take what its BLAS was told at the start of the process

# SPDX-License-Identifier: Apache-2.0
"""The backend `reference` keeps the promises of the interface."""

from nndeploy_reference.plugin import Plugin

from nndeploy.testing import BackendConformance


class TestReference(BackendConformance):
    backend = Plugin()
    library_is_onnx = True

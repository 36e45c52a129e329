# SPDX-License-Identifier: Apache-2.0
"""How a plugin's author runs nndeploy's suite: `pytest suite.py`."""

from nndeploy_numpy_example.plugin import Plugin

from nndeploy.testing import BackendConformance


class TestNumpyExample(BackendConformance):
    backend = Plugin()

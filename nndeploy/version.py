# SPDX-License-Identifier: Apache-2.0
"""The version of nndeploy, which bundles and pages name."""

__version__ = "0.1.0"

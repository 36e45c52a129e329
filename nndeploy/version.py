# SPDX-License-Identifier: Apache-2.0
"""The version of nndeploy, which bundles and pages name."""

__version__ = "0.2.0"

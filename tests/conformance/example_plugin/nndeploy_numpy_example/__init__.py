# SPDX-License-Identifier: Apache-2.0
"""An example of a backend from outside nndeploy."""

# SPDX-License-Identifier: Apache-2.0
"""The kernel library: C kernels and the interpreter of plans, built once for each level of each architecture.

`nndeploy_kernels.levels` says which libraries there are, `build` makes them, `loading` takes the one for this machine.
"""

from pathlib import Path

HEADERS = Path(__file__).with_name("c")
"""The folder of nndeploy_kernels.h."""

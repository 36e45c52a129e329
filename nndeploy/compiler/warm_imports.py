# SPDX-License-Identifier: Apache-2.0
"""Imports all of ours that a compile and the processes below it import, for a process that forks them."""

from nndeploy.jobs.deferred_imports import defer_imports

defer_imports()

import nndeploy.compiler.flow  # noqa: E402
import nndeploy.jobs.main  # noqa: E402, F401

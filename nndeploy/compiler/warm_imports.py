# SPDX-License-Identifier: Apache-2.0
"""Imports all of ours that a compile and the processes below it import, for a process that forks them.

What is imported stays, so no collection of garbage is to look at it: neither while it grows, nor in those processes,
where each look would cost a copy of the page.
"""

import gc

from nndeploy.jobs.deferred_imports import defer_imports

defer_imports()
gc.disable()

import nndeploy.compiler.flow  # noqa: E402
import nndeploy.jobs.main  # noqa: E402, F401

gc.freeze()
gc.enable()

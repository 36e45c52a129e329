# SPDX-License-Identifier: Apache-2.0
"""What a call imports, imported here beforehand: processes that are forked from this one then start in no time."""

import contextlib
import importlib
import os
import sys
from collections.abc import Callable


def imported_by(act: Callable[[], int]) -> None:
    """Imports here what `act` imports, which runs in a child: threads of a library would not survive a fork.

    Raises:
        AssertionError: the child ended without having done it.
    """
    start, end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            act()
            with os.fdopen(end, "w") as file:
                file.write("\n".join(sys.modules))
        finally:
            os._exit(0)
    os.close(end)
    with os.fdopen(start) as file:
        names = file.read().splitlines()
    os.waitpid(child, 0)
    assert names, "what was to be imported ended in the middle"
    for name in names:
        with contextlib.suppress(Exception):  # an alias, or one that is made by another
            importlib.import_module(name)

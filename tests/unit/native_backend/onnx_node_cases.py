# SPDX-License-Identifier: Apache-2.0
"""Cases of ONNX's own suite of operators, from those of its modules alone that a test asks for.

A module of the suite makes its data when it is imported, which takes seconds for all of them: a second for some that
pool. So cases are asked for in a test, and while tests are collected only from modules that are quick.
"""

import importlib
import re
import warnings
from typing import Any

from onnx.backend.test.case import node


def node_cases(names: str, *modules: str) -> dict[str, Any]:
    """Returns the cases of modules, as "averagepool", whose name matches a pattern from its beginning, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose while it makes its data
        for module in modules:
            importlib.import_module(f"{node.__name__}.{module}")
    return {case.name: case for case in node._NodeTestCases if re.match(names, case.name)}

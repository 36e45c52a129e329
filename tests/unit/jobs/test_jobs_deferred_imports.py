# SPDX-License-Identifier: Apache-2.0
"""A child imports SymPy when it is used, and then everything is as if it had been imported at once."""

import subprocess
import sys

import pytest

DEFERRED = """
import sys
from nndeploy.jobs.deferred_imports import RARELY_USED, defer_imports
defer_imports()
import onnx_ir as ir
assert not [name for name in sys.modules if name.startswith("sympy.")]
"""
USES = {
    "sum of sizes": "assert str(ir.SymbolicDim('n') + 1) == 'n + 1'",
    "text of a size": "assert ir.SymbolicDim('2*n').evaluate({'n': 3}) == 6",
    "module": "import sympy; assert sympy.Symbol('n') + 1 - 1 == sympy.Symbol('n')",
    "part of a module": "from sympy.core.numbers import Integer; assert Integer(2) == 2",
    "several threads": (
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "with Pool(8) as pool:\n"
        "    found = set(pool.map(lambda number: str(ir.SymbolicDim('n') + number % 2), range(64)))\n"
        "assert found == {'n', 'n + 1'}, found"
    ),
}


@pytest.mark.parametrize("use", USES)
def test_what_is_taken_out_of_a_deferred_module_is_there(use: str) -> None:
    done = subprocess.run([sys.executable, "-c", DEFERRED + USES[use]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_that_a_deferred_module_lacks_are_missing_as_ever() -> None:
    code = DEFERRED + "import sympy\ntry:\n    sympy.no_such_name\nexcept AttributeError as err:\n    print(err)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "no_such_name" in done.stdout


def test_a_module_that_is_imported_already_stays() -> None:
    code = "import sympy as s; from nndeploy.jobs.deferred_imports import *; defer_imports(); import sympy as t"
    subprocess.run([sys.executable, "-c", f"{code}; assert t is s and s.Symbol"], check=True)

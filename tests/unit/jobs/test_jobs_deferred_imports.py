# SPDX-License-Identifier: Apache-2.0
"""A child imports SymPy when it is used, and then everything is as if it had been imported at once."""

import subprocess
import sys

DEFERRED = """
import os, sys
from nndeploy.jobs.deferred_imports import defer_imports
defer_imports()
import onnx_ir as ir
assert not [name for name in sys.modules if name.startswith("sympy.")]
for number, use in enumerate(sys.argv[1:]):
    if os.fork() == 0:  # each finds SymPy unused
        exec(use)
        os.write(1, b"%d\\n" % number)  # at once, beside the others
        break
else:
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
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
    "a name that it lacks": (
        "import sympy\n"
        "try:\n"
        "    sympy.no_such_name\n"
        "except AttributeError as err:\n"
        "    assert 'no_such_name' in str(err)\n"
        "else:\n"
        "    raise AssertionError"
    ),
}


def test_what_is_taken_out_of_a_deferred_module_is_there_or_missing_as_ever() -> None:
    done = subprocess.run([sys.executable, "-c", DEFERRED, *USES.values()], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(map(int, done.stdout.split())) == list(range(len(USES)))


def test_a_module_that_is_imported_already_stays() -> None:
    code = "import sympy as s; from nndeploy.jobs.deferred_imports import *; defer_imports(); import sympy as t"
    subprocess.run([sys.executable, "-c", f"{code}; assert t is s and s.Symbol"], check=True)

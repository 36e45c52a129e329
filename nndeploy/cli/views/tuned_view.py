# SPDX-License-Identifier: Apache-2.0
"""What was found for a machine, as a table."""

from collections.abc import Sequence
from typing import Any

from nndeploy.cli.console import print_line, print_table
from nndeploy.runtime.tune_program import tables_of
from nndeploy.values.amounts import counted


def print_tuned(found: Sequence[Any], *, is_measured: bool) -> None:
    """Prints a row for each set of shapes: the time of a run before and after, and how many steps are changed."""
    rows = [
        (
            " ".join("x".join(map(str, shape)) or "1" for shape in table["shapes"]),
            f"{table['rule_us'] / 1e3:.3f}",
            f"{table['tuned_us'] / 1e3:.3f}",
            f"{table['rule_us'] / table['tuned_us']:.3f}" if table["tuned_us"] else "-",
            str(len(table["steps"])),
        )
        for table in tables_of(found)
    ]
    columns = ("shapes of the inputs", "by the rules, ms", "tuned, ms", "faster by", "steps changed")
    print_table("tuned for this machine", columns, rows, right=columns[1:])
    what = "kept" if is_measured else "taken over"
    print_line(f"{counted(len(rows), 'table')} {what}; `nndeploy run` uses what is faster")


def print_variants(found: Sequence[Any]) -> None:
    """Prints the variants of submodels that are taken, where others were tried."""
    for table in found:
        runs = ", ".join(f"{submodel} runs {variant}" for submodel, variant in table["variants"].items())
        print_line(f"{runs}: {table['tuned_us'] / 1e3:.3f} ms, before {table['rule_us'] / 1e3:.3f} ms")

# SPDX-License-Identifier: Apache-2.0
"""`nndeploy diff`: what differs between two bundles, part by part; nothing is run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.cli.options.value_types import BUNDLE_FILE
from nndeploy.values.amounts import size_text

if TYPE_CHECKING:
    from nndeploy.cli.views.bundle_differences import Difference

EXAMPLES = """\b
Examples:
  nndeploy diff old.nnd new.nnd
  nndeploy diff old.nnd new.nnd --json
"""

MAX_ROWS = 40
"""How many differences of one part the table shows; --json has all."""
MAX_TEXT = 100


@click.command("diff", epilog=EXAMPLES)
@click.argument("a", type=BUNDLE_FILE)
@click.argument("b", type=BUNDLE_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print every difference as JSON on standard output.")
@click.pass_context
def diff(context: click.Context, a: Path, b: Path, as_json: bool) -> None:
    """Show how bundle B differs from bundle A.

    Exit code 0: they are identical; 1: they differ.
    """
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.cli.views.bundle_differences import differences

    with open_bundle(a) as first, open_bundle(b) as second:
        found = differences(first, second)
        sizes = (first.size_bytes, second.size_bytes)
    if as_json:
        records = [{"part": d.part, "name": d.name, "a": d.a, "b": d.b} for d in found]
        print_json({"a": str(a), "b": str(b), "same": not found, "size_bytes": sizes, "differences": records})
    elif found:
        _print_differences(found, a, b)
        print_line(f"{a}: {size_text(sizes[0])}, {b}: {size_text(sizes[1])}, {len(found)} differences")
    else:
        print_line(f"{a} and {b} are the same")
    context.exit(1 if found else 0)


def _print_differences(found: "list[Difference]", a: Path, b: Path) -> None:
    rows: list[tuple[str, str, str, str]] = []
    for part in dict.fromkeys(difference.part for difference in found):
        of_part = [difference for difference in found if difference.part == part]
        rows += [(d.part, d.name, _text(d.a), _text(d.b)) for d in of_part[:MAX_ROWS]]
        if len(of_part) > MAX_ROWS:
            rows.append((part, f"... {len(of_part) - MAX_ROWS} more", "", ""))
    print_table("differences", ("part", "name", str(a), str(b)), rows)


def _text(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."

# SPDX-License-Identifier: Apache-2.0
"""`nndeploy diff`: what differs between two bundles, part by part; nothing is run."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.cli.options.ci_options import MARKDOWN
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.value_types import BUNDLE_FILE
from nndeploy.cli.views.difference_classes import CLASSES
from nndeploy.files.named_outputs import write_output
from nndeploy.values.amounts import size_text

if TYPE_CHECKING:
    from nndeploy.bundle.reader import Bundle
    from nndeploy.cli.views.bundle_differences import Difference

EXAMPLES = """\b
Classes:
  numbers     what the outputs may be: operators, weights, types, tolerances
  placement   which backend runs what, and where
  bytes       how the same content is stored
  provenance  options, versions, the model file, signatures, what was measured

\b
Examples:
  nndeploy diff old.nnd new.nnd
  nndeploy diff old.nnd new.nnd --ignore provenance --ignore bytes
  nndeploy diff old.nnd new.nnd --markdown review.md
"""


@click.command("diff", epilog=EXAMPLES)
@click.argument("a", metavar="OLD", type=BUNDLE_FILE)
@click.argument("b", metavar="NEW", type=BUNDLE_FILE)
@click.option(
    "--ignore", "ignored", type=click.Choice(CLASSES), multiple=True, help="Leave out a class; may be repeated."
)
@MARKDOWN
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print every difference as JSON on standard output.")
@click.pass_context
def diff(
    context: click.Context, a: Path, b: Path, ignored: tuple[str, ...], markdown: Path | None, as_json: bool
) -> None:
    """Show how bundle NEW differs from bundle OLD.

    Exit code 0: nothing differs that is not ignored; 1: something does.
    """
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.cli.views.bundle_differences import differences

    with open_bundle(a) as old, open_bundle(b) as new:
        found = differences(old, new)
        told = [one for one in found if one.kind not in ignored]
        if markdown is not None:
            text = _as_markdown(old, new, found, told)
            write_output(markdown, lambda file: file.write(text))
        if as_json:
            print_json(_as_json(old, new, found, ignored))
        else:
            _print(old, new, found, told)
    context.exit(1 if told else 0)


def _as_json(a: "Bundle", b: "Bundle", found: "list[Difference]", ignored: tuple[str, ...]) -> dict[str, object]:
    records = [{"part": d.part, "name": d.name, "a": d.a, "b": d.b, "class": d.kind} for d in found]
    return {
        "a": str(a.path),
        "b": str(b.path),
        "same": not found,
        "size_bytes": (a.size_bytes, b.size_bytes),
        "classes": {kind: sum(one.kind == kind for one in found) for kind in CLASSES},
        "ignored": sorted(set(ignored), key=CLASSES.index),
        "differences": records,
    }


def _as_markdown(a: "Bundle", b: "Bundle", found: "list[Difference]", told: "list[Difference]") -> bytes:
    from nndeploy.cli.views.difference_lines import difference_lines, markdown_rows, shown_rows
    from nndeploy.files.markdown_code import markdown_code

    name_a, name_b = (_named(one, markdown_code(str(one.path))) for one in (a, b))
    verdict = _verdict(name_a, name_b, found, told)
    return "".join(f"{line}\n" for line in (verdict, *markdown_rows(shown_rows(difference_lines(told))))).encode()


def _print(a: "Bundle", b: "Bundle", found: "list[Difference]", told: "list[Difference]") -> None:
    from nndeploy.cli.views.difference_lines import COLUMNS, difference_lines, shown_rows

    if rows := shown_rows(difference_lines(told)):
        print_table("differences", COLUMNS, rows)
    print_line(_verdict(_named(a, str(a.path)), _named(b, str(b.path)), found, told))


def _named(bundle: "Bundle", name: str) -> str:
    return f"{name} ({size_text(bundle.size_bytes)})"


def _verdict(a: str, b: str, found: "list[Difference]", told: "list[Difference]") -> str:
    """Returns in a line which classes differ, and which of them were ignored; `a` and `b` name the bundles."""
    if not found:
        return f"{a} and {b} are the same"
    kinds = [kind for kind in CLASSES if any(one.kind == kind for one in told)]
    left = [kind for kind in CLASSES if kind not in kinds and any(one.kind == kind for one in found)]
    what = f"differ: {', '.join(kinds)}" if kinds else "do not differ"
    ignored = f"; ignored: {', '.join(left)}" if left else ""
    return f"{a} and {b} {what}{ignored}"

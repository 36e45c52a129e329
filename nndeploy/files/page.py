# SPDX-License-Identifier: Apache-2.0
"""What the pages have in common: each is one file that loads nothing, and text in it stays text."""

import html
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from nndeploy.errors import one_line
from nndeploy.files.named_outputs import write_output


def escaped(text: str) -> str:
    """Returns a text as it stands in an element or between double quotes; control characters are shown."""
    return html.escape(one_line(text))


def filled(package: str, template: str, parts: Mapping[str, str]) -> str:
    """Returns a template of a package with its places `@name@` filled, and the style that all pages share."""
    parts = {**parts, "style": files("nndeploy.files").joinpath("page.css").read_text(encoding="utf-8")}
    # One pass, so that a name that looks like a place is not taken for one.
    places = "@(" + "|".join(parts) + ")@"
    return re.sub(places, lambda found: parts[found[1]], files(package).joinpath(template).read_text(encoding="utf-8"))


def write_page(path: Path, text: str) -> None:
    """Writes a page, whole or not at all.

    Raises:
        CannotCreateError: there is no place for it.
        InputOutputError: the disk is full or failed.
    """
    write_output(path, lambda file: file.write(text.encode("utf-8", "backslashreplace")))

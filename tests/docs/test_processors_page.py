# SPDX-License-Identifier: Apache-2.0
"""docs/reference/processors.md lists every processor with its fields and parameters, as the code has them."""

import dataclasses
import re
import tomllib
from dataclasses import MISSING
from importlib.metadata import distribution
from pathlib import Path
from typing import get_type_hints

import pytest

from nndeploy.processors.parameters import no_files, type_text
from nndeploy.processors.registry import GROUP, processor_class, processor_from_table
from nndeploy.version import DISTRIBUTION

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "processors.md").read_text(encoding="utf-8")
OURS = sorted(point.name for point in distribution(DISTRIBUTION).entry_points.select(group=GROUP))
SECTION = re.compile(r"^### (\S+)\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)


def fields_text(kind: type) -> str:
    """Returns what a processor takes and gives; what follows from parameters is that of their defaults."""
    if isinstance(getattr(kind, "takes", ()), property) and "show" in kind.__annotations__:
        takes = "what `show` names"
    else:
        takes = names(kind, "takes") or "nothing"
    return f"{takes} -> {names(kind, 'gives')}"


def names(kind: type, end: str) -> str:
    found = getattr(kind, end, ())
    return ", ".join(f"`{name}`" for name in (getattr(by_default(kind), end) if isinstance(found, property) else found))


def by_default(kind: type) -> object:
    """Returns a processor with the parameters that have defaults, and nothing else."""
    made = object.__new__(kind)
    for field in dataclasses.fields(kind):
        if field.default is not MISSING:
            object.__setattr__(made, field.name, field.default)
    return made


def section(kind: type) -> str:
    """Returns what the page must say of a processor: fields, docstring, parameters."""
    text = "\n".join(line.strip() for line in (kind.__doc__ or "").strip().splitlines())
    lines = [fields_text(kind), "", text]
    hints = get_type_hints(kind, include_extras=True)
    for i, field in enumerate(dataclasses.fields(kind)):
        key = field.name.replace("_", "-")
        default = "needed" if field.default is MISSING else shown(field.default)
        lines += [""] * (i == 0) + [f"* `{key}`: {type_text(hints[field.name])}; {default}"]
    return "\n".join(lines) + "\n"


def shown(default: object) -> str:
    if default is None:
        return "none by default"
    if isinstance(default, tuple):
        return f"`[{', '.join(map(toml, default))}]`"
    return f"`{toml(default)}`"


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_every_processor_has_a_section_and_no_other_has() -> None:
    assert [name for name, _ in SECTION.findall(PAGE)] == OURS


@pytest.mark.parametrize("name", OURS)
def test_a_section_says_what_the_code_says(name: str) -> None:
    assert dict(SECTION.findall(PAGE))[name].strip() == section(processor_class(name)).strip()


@pytest.mark.parametrize("block", re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
def test_examples_are_steps(block: str) -> None:
    for table in tomllib.loads(block)["steps"]:
        processor_from_table(table, "docs/reference/processors.md", no_files)


if __name__ == "__main__":  # python tests/docs/test_processors_page.py prints the sections
    for known in OURS:
        print(f"### {known}\n\n{section(processor_class(known))}")

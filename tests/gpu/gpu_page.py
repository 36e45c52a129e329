# SPDX-License-Identifier: Apache-2.0
"""Writes a section of a page of docs/figures from what `make gpu-check ARGS="--junitxml=gpu.xml"` found.

python tests/gpu/gpu_page.py gpu.xml PAGE.md
"""

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))

import figures

RESULTS = ("passed", "skipped", "failure", "error")


def section(junit: Path) -> str:
    """Returns the numbers of results a module, what failed, and the figures that tests recorded."""
    cases = list(ET.parse(junit).iter("testcase"))  # noqa: S314 - pytest wrote it
    counts = Counter((_module(case), _result(case)) for case in cases)
    lines = [f"| tests | {' | '.join(RESULTS)} |", "| --- |" + " ---: |" * len(RESULTS)]
    for module in sorted({_module(case) for case in cases}):
        numbers = [str(counts[module, result]) for result in RESULTS]
        lines += [f"| {module} | {' | '.join(numbers)} |"]
    failed = [f"- {_module(case)}: {case.get('name')}" for case in cases if _result(case) in ("failure", "error")]
    lines += ["", *failed, "", "| test | figures |", "| --- | --- |"]
    for case in cases:
        if found := _properties(case):
            name = (case.get("name") or "").partition("[")[2].removesuffix("]") or case.get("name")
            lines.append(f"| {name} | {', '.join(f'{key} {value}' for key, value in found.items())} |")
    return "\n".join(lines)


def _module(case: ET.Element) -> str:
    return (case.get("classname") or "").split(".")[2]


def _result(case: ET.Element) -> str:
    return next((result for result in RESULTS if case.find(result) is not None), "passed")


def _properties(case: ET.Element) -> Mapping[str, str]:
    return {one.get("name", ""): one.get("value", "") for one in case.iter("property")}


def main() -> None:
    """Writes the section."""
    junit, page = sys.argv[1:]
    said = f"`make gpu-check`, {figures.today()}, tree {figures.tree()}"
    figures.put_section(page, "On a GPU", f"{said}\n\n{section(Path(junit))}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The lines that jobs of a CI run, as a page shows them in YAML: what stands below `script:` (GitLab) or behind `run:`
(GitHub), also where it comes from the template or the action of configs/ci.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

CI = Path(__file__).resolve().parents[2] / "configs" / "ci"
OWN_ACTION = "./.github/actions/nndeploy"
SCRIPTS = ("before_script", "script", "run")


def jobs_of(text: str) -> list[list[str]]:
    """Returns the lines of each job of a block.

    Raises:
        ValueError: it is not YAML, or no job of it runs anything.
    """
    try:
        block = yaml.safe_load(text)
    except yaml.YAMLError as err:
        raise ValueError(str(err)) from None
    top = block.values() if isinstance(block, dict) else [block]
    jobs = [lines for lines in (list(_lines(one)) for one in top) if lines]
    if not jobs:
        raise ValueError("nothing in it has a `script` or a `run`")
    return jobs


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _lines(one)
    if not isinstance(value, dict):
        return
    if value.get("extends") == ".nndeploy":
        template = yaml.safe_load((CI / "gitlab.yml").read_text())[".nndeploy"]
        value = {**template, **value, "variables": {**template["variables"], **value.get("variables", {})}}
    if value.get("uses") == OWN_ACTION:
        yield from _lines(_steps_of_the_action(value.get("with", {})))
    for name, text in {**value.get("variables", {}), **value.get("env", {})}.items():
        yield f"export {name}={shlex.quote(text)}"
    for key, one in value.items():
        if key in SCRIPTS:
            yield from [one] if isinstance(one, str) else one
        else:
            yield from _lines(one)


def _steps_of_the_action(given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns the steps of our action, with what a job gives it."""
    action = yaml.safe_load((CI / "github" / "action.yml").read_text())
    inputs = {name: given.get(name, about.get("default", "")) for name, about in action["inputs"].items()}
    assert set(given) <= set(inputs)
    steps: list[dict[str, Any]] = action["runs"]["steps"]
    for step in steps:
        step["env"] = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], text)
            for name, text in step.get("env", {}).items()
        }
    return steps

# SPDX-License-Identifier: Apache-2.0
"""The pairs of a plan as people read them, and the plan as a file."""

from collections.abc import Sequence
from pathlib import Path

from nndeploy.bundle.pace_plan_file import PacePlanFile, identity_of, plan_file_to_json
from nndeploy.errors import UsageError
from nndeploy.pacing.pairs import ARROW
from nndeploy.runtime.program import Program


def edge(name: str, followed_by: Sequence[str], most: int | None = None) -> str:
    """Returns an operator and those that read what it makes: runs sleep between them, and between its parts.

    At most so many of the latter, and how many more there are.
    """
    if not followed_by:
        return name
    more = len(followed_by) - (most or len(followed_by))
    listed = ", ".join(followed_by[:most]) + f" and {more} more" * (more > 0)
    return f"{name} {ARROW} {listed}"


def write_plan(program: Program, path: Path) -> None:
    """Writes the plan of the shape that ran last to a file, whole or not at all.

    Raises:
        UsageError: there is no plan yet.
        CannotCreateError, InputOutputError: the file cannot be written.
    """
    from nndeploy.files.named_outputs import write_output

    assert program.pacer is not None
    learnt = program.pacer.learnt()
    if learnt is None:
        raise UsageError("too few runs to make a plan of", where=str(path))
    names = tuple((point.submodel, point.name) for point in program.points)
    manifest = program.manifest
    plan = PacePlanFile(identity_of(manifest), manifest.model_name, program.pacer.goal, names, learnt)
    write_output(path, lambda file: file.write(plan_file_to_json(plan)))

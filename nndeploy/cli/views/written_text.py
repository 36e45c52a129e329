# SPDX-License-Identifier: Apache-2.0
"""Texts on standard output as the loop of a pipeline writes them: `run --stream`."""

import sys

from nndeploy.cli.console import visible
from nndeploy.errors import UsageError
from nndeploy.stream.description import StreamPlan
from nndeploy.stream.engine.loop import TEXT
from nndeploy.stream.records import Record


class WrittenText:
    """Prints what each round adds to the text of a record; a line ends with its record."""

    def __init__(self, plan: StreamPlan) -> None:
        """Makes one for a plan.

        Raises:
            UsageError: no loop writes a text, or several could write at once.
        """
        loops = [one for one in plan.pipelines if one.loop is not None and TEXT in one.looped[0].gives]
        if not loops:
            hint = 'steps = [{ use = "sample", ... }] in [level.pipeline.loop]'
            raise UsageError(f"--stream prints what a loop writes, and no loop gives the field {TEXT!r}", hint=hint)
        if len(loops) > 1 or loops[0].num_runners > 1:
            raise UsageError("--stream prints one text at a time", hint="let one pipeline loop, with one runner")
        self._printed = ""

    def __call__(self, record: Record, is_last: bool) -> None:
        """Prints what is new after a round."""
        text = record.fields.get(TEXT, self._printed)
        new = text.removeprefix(self._printed) if isinstance(text, str) else ""
        self._printed += new
        sys.stdout.write("".join(c if c in "\n\t" else visible(c) for c in new))
        if is_last:
            self._printed = ""
            sys.stdout.write("\n")
        sys.stdout.flush()

# SPDX-License-Identifier: Apache-2.0
"""Jobs as a file for make: a target for each, which is a stamp.

`make -k` goes on after failures; a second call runs what has no stamp.
"""

import shlex
from collections.abc import Sequence

from nndeploy.farm.emit.job_command import JobCommand
from nndeploy.farm.emit.ninja import STAMPS


def make(commands: Sequence[JobCommand]) -> str:
    """Returns the file."""
    stamps = "".join(f" \\\n  {STAMPS}/{one.stamp}" for one in commands)
    return f".PHONY: all\nall:{stamps}\n" + "".join(map(_rule, commands))


def _rule(one: JobCommand) -> str:
    """Returns the rule of a job; in a recipe make reads the dollar alone, the rest is the shell's."""
    words = shlex.join(one.words).replace("$", "$$")
    return f"\n{STAMPS}/{one.stamp}:\n\t{words} && mkdir -p {STAMPS} && touch $@\n"

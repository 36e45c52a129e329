# SPDX-License-Identifier: Apache-2.0
"""Jobs as a file for ninja: a rule, a stamp for each job, one job at a time of those that need the GPU.

`ninja -k 0` goes on after failures; a second call runs what has no stamp. Source: ninja's manual, "Lexical syntax".
"""

import shlex
from collections.abc import Iterator, Sequence

from nndeploy.farm.emit.job_command import JobCommand

STAMPS = "nndeploy-stamps"
"""The folder of stamps, beside which ninja and make are called."""
_HEAD = """\
ninja_required_version = 1.5
pool gpu
  depth = 1
rule job
  command = $words && touch $out
  description = $id
"""


def ninja(commands: Sequence[JobCommand]) -> str:
    """Returns the file."""
    return "\n".join([_HEAD, *(line for one in commands for line in _lines(one))]) + "\n"


def _lines(one: JobCommand) -> Iterator[str]:
    yield f"build {STAMPS}/{one.stamp}: job"
    yield f"  words = {_value(shlex.join(one.words))}"
    yield f"  id = {_value(one.job)}"
    if one.needs_gpu:
        yield "  pool = gpu"


def _value(text: str) -> str:
    """Returns a text without line feeds as the value of a variable: a dollar alone means something there."""
    return text.replace("$", "$$")

# SPDX-License-Identifier: Apache-2.0
"""A process with nothing to do keeps little memory."""

import subprocess
import sys

HOLDS = """
from pathlib import Path
from nndeploy.sandbox import memory
held = int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) << 10
memory.MOST_KEPT_BYTES = held + (16 << 20)
said = [memory.keeps_much()]
blocks = [bytearray(b"x" * 50_000) for _ in range(1000)]
said.append(memory.keeps_much())
last = blocks.pop()
del blocks
print(*said, memory.keeps_much())
"""


def test_what_was_freed_is_given_back_and_what_is_held_is_told() -> None:
    done = subprocess.run([sys.executable, "-c", HOLDS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]

# SPDX-License-Identifier: Apache-2.0
"""Questions to a child process, one line each, answered by two texts: what ends the process costs one question."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence


def serve(answer: Callable[[str], tuple[str, str]]) -> None:
    """Answers the lines of standard input, an exception as "wrong"; what else is printed goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            found = answer(line.rstrip("\n"))
        except Exception as err:  # a failure of any kind is this question's outcome
            found = "wrong", f"{type(err).__name__}: {' '.join(str(err).split())[:300]}"
        answers.write(json.dumps(found) + "\n")
        answers.flush()


def ask(command: Sequence[str], questions: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yields (question, outcome, detail), where the outcome is "ended" if the process of a Python command ended."""
    process = _started(command)
    for question in questions:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(question + "\n")
        process.stdin.flush()
        if line := process.stdout.readline():
            yield question, *json.loads(line)
        else:
            yield question, "ended", f"the process ended with status {process.wait()}"
            process = _started(command)
    process.communicate()


def _started(command: Sequence[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "ORT_DISABLE_TELEMETRY": "1", "NNDEPLOY_CACHE_DIR": ""},
    )  # fmt: skip

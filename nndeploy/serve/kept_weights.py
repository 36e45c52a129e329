# SPDX-License-Identifier: Apache-2.0
"""Weights that the worker processes of a service have of their parent, so that they are in memory once.

The parent opens what may be open in a process that forks others, and keeps it open; a worker opens the same again,
which takes the weights that are there. All else each worker opens for itself. Law: the parent runs nothing, so it has
one thread, and loads no library that a fork breaks.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nndeploy.plugin.registry import backend
from nndeploy.runtime.forkable import is_forkable, unforkable
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program
from nndeploy.serve.infer_request import Say
from nndeploy.serve.open_served import open_models
from nndeploy.serve.options import ServeOptions
from nndeploy.stream.run.options import Load, Pace


class _UnforkableError(Exception):
    """This process must not open a bundle."""


@contextmanager
def kept_weights(bundles: Mapping[str, Path], options: ServeOptions, load: Load, say: Say) -> Iterator[None]:
    """Keeps open, within the block, what it can of bundles and pipelines; says which each worker will load for itself.

    Raises:
        NndeployError: as `open_models`.
    """

    def load_here(path: Path, options: LoadOptions, *, pace: Pace) -> Program:
        reasons = _asked_apart(path, options)
        if reasons:
            raise _UnforkableError(", ".join(reasons))
        program = load(path, options, pace=pace)
        others = [choice.backend for choice in program.choices if not is_forkable(backend(choice.backend))]
        if others:  # what was to be chosen did not open
            program.close()
            raise _UnforkableError(", ".join(dict.fromkeys(others)))
        return program

    with ExitStack() as kept:
        for name, path in bundles.items():
            with ExitStack() as stack:
                try:
                    open_models(stack, path, options, load_here)
                except _UnforkableError as err:
                    say(f"{name}: each process loads its own copy of the weights ({err})")
                else:
                    kept.push(stack.pop_all())
        yield


def _asked_apart(path: Path, options: LoadOptions) -> list[str]:
    """Returns what `unforkable` does, from a child: to ask loads libraries and drivers.

    Where it raises, nothing is returned: opening the bundle then raises the same.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(unforkable(path, options)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        told = answer.read()
    os.waitpid(pid, 0)
    found: list[str] = json.loads(told or "[]")
    return found

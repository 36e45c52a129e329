# SPDX-License-Identifier: Apache-2.0
"""The steps of a stage, done in a process of their own: what holds the interpreter's lock there holds up nothing here.

fields -> memory that both have -> the process does all steps -> memory -> the fields that they gave

A step's error is that of the record, as if it were done here. A process that ends fails the record that it was at, and
another one takes its place. Law: no process outlives the stream, or this process.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from nndeploy.errors import DataError, UnavailableError
from nndeploy.processors.parameters import FilesBeside, no_files
from nndeploy.runtime.asked_process import AskedProcess, CrashError
from nndeploy.runtime.shared_values import SharedValues
from nndeploy.sandbox.child_process import PARENT
from nndeploy.stream.description import StageStep, optional_fields, step_name
from nndeploy.stream.processes.plain_values import arrays_of, fields_in
from nndeploy.stream.processes.step_worker import MODULE
from nndeploy.values.types import Value

OPENING_SECONDS = 60.0
"""How long a process may take to import what its steps need."""


Tables: TypeAlias = tuple[tuple[Mapping[str, Any], str], ...]
"""Tables of steps in TOML, each with its place in the file."""


@dataclass(frozen=True, slots=True)
class StepTables:
    """What a process makes its steps of: their tables in TOML with their places in the file, and files they name.

    `files` tells where the folder of the pipeline is; None: it has none.
    """

    tables: Tables
    contents: Mapping[str, bytes]
    files: FilesBeside | None

    def to_fields(self) -> dict[str, Value]:
        """Returns it as fields, which pass to the process."""
        beside = None
        if self.files is not None:
            beside = {**asdict(replace(self.files, read=no_files)), "folder": str(self.files.folder)}
            del beside["read"]
        return {"tables": [list(one) for one in self.tables], "contents": dict(self.contents), "beside": beside}


class StepProcess:
    """One process, as the only step of a worker: it takes and gives what the steps of the stage do together."""

    def __init__(self, steps: Sequence[StageStep], tables: StepTables) -> None:
        """Starts nothing: the first record does."""
        self.gives = tuple(dict.fromkeys(name for step in steps for name in step.gives))
        self.takes = tuple(dict.fromkeys(name for step in steps for name in (*step.takes, *optional_fields(step))))
        self._names = ", ".join(map(step_name, steps))
        self._tables = tables
        self._given, self._made = SharedValues(), SharedValues()
        self._starter = ThreadPoolExecutor(1, "nndeploy step")  # a child dies with the thread that started it
        self._process: AskedProcess | None = None

    def __call__(self, fields: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the fields that the steps give.

        Raises:
            DataError: a step failed on these values, they cannot pass, or the process ended.
            NndeployError: what making the steps raised there.
        """
        given = arrays_of({name: fields[name] for name in self.takes if name in fields})
        process = self._running()
        try:
            told = process.answer(self._given.write(given), None)
        except CrashError as err:
            self._end()
            raise DataError(f"the process of the steps {self._names} {err}") from err
        return fields_in(self._made.read(told))

    def close(self) -> None:
        """Ends the process; a second call does nothing."""
        self._end()
        self._starter.shutdown()
        self._given.close()
        self._made.close()

    def _running(self) -> AskedProcess:
        if self._process is None:
            for values in (self._given, self._made):
                values.forget()
            self._process = self._starter.submit(self._started).result()
            try:
                self._process.opened(OPENING_SECONDS)
                self._process.answer(self._given.write(arrays_of(self._tables.to_fields())), OPENING_SECONDS)
            except (CrashError, TimeoutError) as err:
                self._end()
                why = str(err) or f"did not respond within {OPENING_SECONDS:.0f} s"
                raise UnavailableError(f"the process of the steps {self._names} {why} while it began") from err
            except BaseException:
                self._end()
                raise
        return self._process

    def _started(self) -> AskedProcess:
        """Starts it with the environment and the import paths of this process, whose own code its steps are."""
        if not sys.executable:
            raise UnavailableError("cannot start a child process: sys.executable is empty", hint="set sys.executable")
        descriptors = (self._given.descriptor, self._made.descriptor)
        paths = [str(Path(path).absolute()) for path in sys.path]
        process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path[:] = sys.argv[3:]; from {MODULE} import main; main()",
             *map(str, descriptors), *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, PARENT: str(os.getpid())},
            start_new_session=True,
            pass_fds=descriptors,
        )  # fmt: skip
        return AskedProcess(process)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

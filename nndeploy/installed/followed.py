# SPDX-License-Identifier: Apache-2.0
"""A program that follows its name: calls go on with the bundle that becomes current, and back where that one fails.

Looks at the name's state a few times a second; a new bundle is opened beside the one that runs, and calls go to it from
then on. On trial, a call that it fails on is given to the one before, so no record is lost. Law: a call is answered by
one bundle alone; a bundle that fails in its trial, or takes longer than the budget, is left, and the name goes back.
"""

import statistics
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from nndeploy.bundle.manifest import Manifest
from nndeploy.errors import InputError, NndeployError, UsageError
from nndeploy.installed.bundle_store import GONE, State, followed_name
from nndeploy.installed.interface import can_replace
from nndeploy.runtime.program import Program
from nndeploy.values.types import Value

LOOK_SECONDS = 0.25
TRIAL_CALLS = 50
"""So many calls of a new bundle are its trial."""


class FollowedProgram:
    """Runs the bundle that is current under a name; several threads may call `run` at once."""

    def __init__(self, program: Program, load: Callable[[Path], Program], say: Callable[[str], None]) -> None:
        """Begins with a program that is open; `load` opens others, `say` is told of every change.

        Raises:
            UsageError: it is none of an installed bundle.
        """
        self._store, self._name = followed_name(program.path)
        self._load, self._say = load, say
        self._now = program
        self._sha256 = program.path.stem
        self._before: Program | None = None  # while the trial of the current one lasts
        self._times = list[int]()
        self._left = set[str]()
        self._lock = threading.Lock()
        self._loader: threading.Thread | None = None
        self._looked = time.monotonic()
        self._seen = self._store.mark(self._name)
        self._is_closed = False

    @property
    def manifest(self) -> Manifest:
        """What the bundle is that calls go to now; inputs and outputs are the same of all that are followed."""
        return self._now.manifest

    @property
    def rows_at_once(self) -> int:
        """The most rows of the first axis that the chain which calls go to now was built for."""
        return self._now.rows_at_once

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name; raises as `Program.run` does."""
        self._look()
        while True:
            with self._lock:
                now, before = self._now, self._before
            start = time.perf_counter_ns()
            try:
                found = now.run(inputs)
            except InputError:
                raise
            except NndeployError as err:
                if isinstance(err, UsageError) and now is not self._now:
                    continue  # it was closed between the lock and the call
                if before is None:
                    raise
                return self._by_the_one_before(now, before, inputs, err)
            if before is not None:
                self._on_trial(now, time.perf_counter_ns() - start)
            return found

    def _by_the_one_before(
        self, now: Program, before: Program, inputs: Mapping[str, Value], failure: NndeployError
    ) -> dict[str, Value]:
        """Returns what the bundle before gives for a record on which the new one failed, which is left for it.

        Raises:
            NndeployError: it fails on that one too, so the record is at fault; or the trial ended meanwhile.
        """
        try:
            found = before.run(inputs)
        except UsageError:
            raise failure from None
        self._go_back(now, f"a call failed: {failure.what}")
        return found

    def close(self) -> None:
        """Closes what is open; a second call does nothing."""
        with self._lock:
            self._is_closed = True
            loader, self._loader = self._loader, None
        if loader is not None and loader is not threading.current_thread():
            loader.join()
        for program in (self._now, self._before):
            if program is not None:
                program.close()
        self._before = None

    def _look(self) -> None:
        """Starts to open another bundle where one became current; the call goes on meanwhile."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        with self._lock:
            self._looked = time.monotonic()
            mark = self._store.mark(self._name)
            if mark == self._seen or self._loader is not None or self._is_closed:
                return
            self._seen = mark
            if mark == GONE:
                self._say(f"{self._name}@ was uninstalled; this run goes on with its bundle")
                return
            self._loader = threading.Thread(target=self._open_current, name=f"follow {self._name}", daemon=True)
            self._loader.start()

    def _open_current(self) -> None:
        try:
            state = self._store.state(self._name)
            if state.current.sha256 not in (self._sha256, *self._left):
                self._take(state, self._load(self._store.file(self._name, state.current)))
        except NndeployError as err:
            self._say(f"{self._name}@ was not switched to its new version: {err}")
        finally:
            with self._lock:
                self._loader = None

    def _take(self, state: State, new: Program) -> None:
        if not can_replace(self._now.manifest, new.manifest):
            new.close()
            self._left.add(state.current.sha256)
            self._say(f"{self._name}@ was not switched: the new version has other inputs or outputs; restart to use it")
            return
        with self._lock:
            last, self._before, self._now = self._before, self._now, new
            self._sha256, self._times = state.current.sha256, []
        if last is not None:
            last.close()
        release = f" release {state.current.release}" if state.current.release else ""
        self._say(f"{self._name}@ switched to{release} {state.current.sha256:.12}")

    def _on_trial(self, now: Program, took_ns: int) -> None:
        """Counts a call of the trial; ends it where it was the last."""
        with self._lock:
            if now is not self._now or self._before is None:
                return
            self._times.append(took_ns)
            if len(self._times) < TRIAL_CALLS:
                return
            median, before = statistics.median(self._times), self._before
        budget = self._budget()
        if budget and median > budget:
            self._go_back(now, f"a call took {median / 1e6:.3g} ms, at most {budget / 1e6:.3g} ms are allowed")
            return
        with self._lock:
            if self._before is before:
                self._before = None
        before.close()

    def _budget(self) -> int:
        try:
            return self._store.state(self._name).max_latency_ns
        except NndeployError:
            return 0

    def _go_back(self, failed: Program, why: str) -> None:
        """Leaves a bundle for the one before it, for all that follow the name where this account may say so."""
        with self._lock:
            if failed is not self._now or self._before is None:
                return  # another thread did
            left, self._now, self._before = self._sha256, self._before, None
            self._left.add(left)
            self._sha256 = ""
        failed.close()
        self._say(f"{self._name}@ fell back from {left:.12}: {why}")
        try:
            state = self._store.go_back(self._name, why, only_from=left)
            self._sha256 = state.current.sha256
        except NndeployError as err:
            self._say(f"{self._name}@ is still {left:.12}, which is not run here: {err}")

# SPDX-License-Identifier: Apache-2.0
"""The worker processes of a service: forked off this one, watched, replaced when they end, and ended with it.

    start -> each worker tells that it is ready, or why it cannot be -> watch: who ends is replaced -> stop -> all end

A worker has a pipe to this process, on which it tells, and whose end says that it is gone; all have one of this
process, whose end tells them to finish. Signals come to this process alone: workers ignore those that a terminal or a
service manager sends to all. Law: no worker outlives this process, however it ends.
"""

import faulthandler
import gc
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import NoReturn, Self

from nndeploy.errors import CrashedError, NndeployError, describe_exit, error_from_json, error_to_json
from nndeploy.sandbox.child_process import PARENT, die_with_parent
from nndeploy.serve.infer_request import Say
from nndeploy.stream.stopping import Stop

FIRST_DELAY_SECONDS, MOST_DELAY_SECONDS = 0.5, 30.0
"""How long a worker that ended soon after it began is not replaced: twice as long each time, so long at most."""
SOON_SECONDS = 10.0
LOOK_SECONDS = 0.25
READY = b"ready\n"
"""What a worker tells when it answers; what else it tells is an error as JSON, a line."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MOST_TOLD = 1 << 16


class ThisWorker:
    """A worker as it sees itself."""

    def __init__(self, number: int, telling: int, ending: int) -> None:
        self.number = number
        self._telling, self._ending = telling, ending

    def ready(self) -> None:
        """Tells the parent that it answers."""
        os.write(self._telling, READY)

    def wait(self, is_sound: Callable[[], bool]) -> bool:
        """Returns True when it is to finish what it is at, False when it is no longer sound."""
        poll = select.poll()
        poll.register(self._ending, select.POLLIN)
        while not poll.poll(1e3 * LOOK_SECONDS):
            if not is_sound():
                return False
        return True


Work = Callable[[ThisWorker], bool]
"""What a worker does from its fork on; returns whether all that it was at has ended. A NndeployError ends it."""


class _Worker:
    """A worker as its parent sees it; `pid` is 0 where there is none."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid = 0
        self.listening = -1
        self.is_ready = False
        self.error: NndeployError | None = None
        self.began = self.due = 0.0
        self.num_soon = 0


class WorkerProcesses:
    """So many workers within a `with` block, whose end kills those that are left."""

    def __init__(self, count: int, work: Work, ended: Callable[[int], None], say: Say) -> None:
        """`ended` is told the number of each worker that has ended before its time, before there is another one."""
        self._work, self._ended, self._say = work, ended, say
        self._workers = [_Worker(number) for number in range(count)]
        self._ending, self._end = os.pipe2(os.O_CLOEXEC)
        self._epoll = select.epoll()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            if worker.pid:
                self._kill(worker)
        self._tell_end()
        os.close(self._ending)
        self._epoll.close()

    def start(self, stop: Stop) -> bool:
        """Starts all, and returns when all are ready; False when a stop was asked for before.

        Raises:
            NndeployError: what the first met that cannot be ready.
            CrashedError: it ended without a word.
        """
        gc.collect()
        gc.freeze()  # else collections in a worker write into what is there, which then is its own
        for worker in self._workers:
            self._fork(worker)
        while not all(worker.is_ready for worker in self._workers):
            if not stop.wait_readable(self._epoll.fileno()):
                return False
            for worker in self._heard():
                code = self._reap(worker)
                what = f"worker process {worker.number} {describe_exit(code)} before it was ready"
                raise worker.error or CrashedError(what)
        return True

    def watch(self, stop: Stop, look: Callable[[], float | None]) -> None:
        """Replaces workers that end until a stop is asked for; calls `look` within what it returned last."""
        while not stop.is_requested:
            seconds = look()
            now = time.monotonic()
            for worker in self._workers:
                if not worker.pid and worker.due <= now:
                    self._replace(worker)
            waits = [worker.due - now for worker in self._workers if not worker.pid]
            waits += [] if seconds is None else [seconds]
            stop.wait_readable(self._epoll.fileno(), min(waits, default=None))
            for worker in self._heard():
                self._replace_later(worker)

    def kill(self, number: int) -> None:
        """Ends a worker that hangs; where its threads are it writes on standard error."""
        worker = self._workers[number]
        if worker.pid:
            os.kill(worker.pid, signal.SIGABRT)

    def stop(self, seconds: float) -> bool:
        """Lets all finish what they are at, within so many seconds; returns whether they did.

        Those that are not ready are at nothing that anybody waits for, and are killed.
        """
        until = time.monotonic() + seconds
        self._tell_end()
        self._heard()
        for worker in self._workers:
            if worker.pid and not worker.is_ready:
                self._kill(worker)
        is_done = True
        while any(worker.pid for worker in self._workers) and (left := until - time.monotonic()) > 0:
            self._epoll.poll(left)
            for worker in self._heard():
                is_done = self._reap(worker) == 0 and is_done
        return is_done and not any(worker.pid for worker in self._workers)

    def _fork(self, worker: _Worker) -> None:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # whose handlers are this process's
        try:
            pid = os.fork()
            if pid == 0:
                self._begin(ThisWorker(worker.number, writer, self._ending), parent, before)
        except OSError:
            os.close(reader)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(writer)
        os.set_blocking(reader, False)
        self._epoll.register(reader, select.EPOLLIN)
        worker.pid, worker.listening, worker.began = pid, reader, time.monotonic()
        worker.is_ready, worker.error = False, None

    def _begin(self, this: ThisWorker, parent: int, mask: "set[int | signal.Signals]") -> NoReturn:
        """Does the work of a process that was just forked, and ends it: nothing of its parent's is run at its end."""
        code = NndeployError.exit_code  # of a bug
        try:
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.environ[PARENT] = str(parent)
            die_with_parent()
            with suppress(OSError, ValueError, RuntimeError):  # standard error may be no file, or closed
                faulthandler.enable()  # what `kill` ends tells where its threads are
            self._tell_end()  # its own copy of what all wait for
            self._epoll.close()
            for worker in self._workers:
                if worker.listening >= 0:
                    os.close(worker.listening)
            code = 0 if self._work(this) else 1
        except NndeployError as err:
            os.write(this._telling, json.dumps(error_to_json(err)).encode() + b"\n")
            code = err.exit_code
        except SystemExit:
            pass  # its parent has ended
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _heard(self) -> list[_Worker]:
        """Hears what workers tell; returns those that are gone."""
        gone = []
        descriptors = {descriptor for descriptor, _ in self._epoll.poll(0)}
        for worker in self._workers:
            if worker.listening not in descriptors:
                continue
            told = os.read(worker.listening, _MOST_TOLD)
            if not told:
                gone.append(worker)
            for line in told.splitlines(keepends=True):
                if line == READY:
                    worker.is_ready = True
                else:
                    worker.error = error_from_json(json.loads(line))
        return gone

    def _replace(self, worker: _Worker) -> None:
        try:
            self._fork(worker)
        except OSError as err:  # no process or descriptor is left: there may be one later
            worker.due = time.monotonic() + MOST_DELAY_SECONDS
            self._say(f"worker process {worker.number} cannot be started: {err.strerror}")

    def _replace_later(self, worker: _Worker) -> None:
        pid, code = worker.pid, self._reap(worker)
        now = time.monotonic()
        worker.num_soon = worker.num_soon + 1 if now - worker.began < SOON_SECONDS else 0
        delay = FIRST_DELAY_SECONDS * 2.0 ** (worker.num_soon - 2) if worker.num_soon > 1 else 0.0
        delay = min(delay, MOST_DELAY_SECONDS)
        worker.due = now + delay
        self._ended(worker.number)
        why = f"{describe_exit(code)}{f': {worker.error}' if worker.error else ''}"
        self._say(f"worker process {worker.number} ({pid}) {why}; replaced {f'in {delay:g} s' if delay else 'now'}")

    def _kill(self, worker: _Worker) -> None:
        os.kill(worker.pid, signal.SIGKILL)
        self._reap(worker)

    def _reap(self, worker: _Worker) -> int:
        """Waits for a worker that is gone, or is about to be; returns how it ended."""
        _, status = os.waitpid(worker.pid, 0)
        self._epoll.unregister(worker.listening)
        os.close(worker.listening)
        worker.pid, worker.listening = 0, -1
        return os.waitstatus_to_exitcode(status)

    def _tell_end(self) -> None:
        if self._end >= 0:
            os.close(self._end)
            self._end = -1

# SPDX-License-Identifier: Apache-2.0
"""One test: LoadGen on a thread of its own, the answers on others, and this thread waits for the end or an error.

LoadGen cannot be stopped. After an error every further sample is answered at once with nothing, which ends all
scenarios soon but server, whose queries come by the clock. So we wait a little and then leave LoadGen behind: its
thread is a daemon, and the command ends its process without waiting for it (`nndeploy.cli.main`).

Law: an error on any thread is raised here; logs of a test that did not end never appear in the user's folder.
"""

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from nndeploy.bundle.values import encode_values
from nndeploy.errors import BusyError, CannotCreateError, InputOutputError
from nndeploy.loadgen.answering import Answering, Answers
from nndeploy.loadgen.library import LOG_NAMES, complete, loadgen, run_test
from nndeploy.loadgen.samples import NamedSample
from nndeploy.loadgen.settings import Settings
from nndeploy.runtime.batching import JoinedCalls
from nndeploy.values.types import Value

DRAIN_SECONDS = 1.0
TELL_SECONDS = 5.0

_one_test = threading.Lock()  # LoadGen keeps its state in globals


def drive(
    calls: JoinedCalls,
    samples: Sequence[NamedSample],
    settings: Settings,
    folder: Path,
    *,
    num_workers: int,
    tell: Callable[[int], object] = bool,
) -> None:
    """Runs a test and leaves LoadGen's logs in `folder`; `tell` gets the number of answered samples now and then.

    Raises:
        NndeployError: the program could not answer a sample; LoadGen may still be running.
        BusyError: another test is running in this process.
        UnavailableError: LoadGen is not installed.
        InputOutputError: LoadGen could not write its logs.
    """
    loadgen()
    if not _one_test.acquire(blocking=False):
        raise BusyError("another test of LoadGen is running in this process")
    ended = threading.Event()
    answering = Answering(
        calls,
        samples,
        _complete_with_data if settings.accuracy else _complete_empty,
        num_workers=num_workers,
        on_error=ended.set,
    )

    def run() -> None:
        try:
            run_test(settings, len(samples), answering.issue, folder)
        except BaseException as err:
            answering.abort(err)
        finally:
            _one_test.release()
            ended.set()

    thread = threading.Thread(target=run, name="loadgen", daemon=True)
    thread.start()
    try:
        while not ended.wait(TELL_SECONDS):
            tell(answering.num_answered)
    except BaseException as err:  # Ctrl-C, or a signal that ends the command
        answering.abort(err)
        raise
    finally:
        thread.join(None if answering.error is None else DRAIN_SECONDS)
        answering.close()
    if answering.error is not None:
        raise answering.error
    if missing := [name for name in LOG_NAMES if not (folder / name).is_file()]:
        raise InputOutputError(f"LoadGen did not write {missing[0]}", where=str(folder))


@contextmanager
def log_folder(target: Path | None) -> Iterator[Path]:
    """Gives a new folder for logs; at the end of a block that did not raise they are moved to `target`, if any.

    Raises:
        CannotCreateError: `target` cannot be made or written.
        InputOutputError: the logs cannot be moved.
    """
    try:
        if target is not None:
            target.mkdir(exist_ok=True)
            if taken := [log for log in LOG_NAMES if (target / log).is_dir()]:
                raise CannotCreateError(f"{taken[0]} is a folder", where=str(target))
        temporary = tempfile.TemporaryDirectory(prefix=".nndeploy-loadgen-", dir=target)
    except OSError as err:
        raise CannotCreateError(
            f"the folder cannot be made: {err.strerror}", where=str(target or tempfile.gettempdir())
        ) from err
    with temporary as name:
        yield Path(name)
        if target is None:
            return
        try:
            for log in LOG_NAMES:
                (Path(name) / log).replace(target / log)
        except OSError as err:
            raise InputOutputError(f"{log} cannot be written: {err.strerror}", where=str(target)) from err


def _complete_empty(answers: Answers) -> None:
    complete([(question, b"") for question, _ in answers])


def _complete_with_data(answers: Answers) -> None:
    complete([(question, b"" if outputs is None else _data(outputs)) for question, outputs in answers])


def _data(outputs: Mapping[str, Value]) -> bytes:
    return encode_values(outputs)

# SPDX-License-Identifier: Apache-2.0
"""What both protocols do: find the model, let a request wait for it and no longer than it may, count what came of it.

Runs in the event loop. A client that goes away cancels its request, which is then never run where it still waits.
"""

import asyncio
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from nndeploy.errors import DeadlineError, MissingInputError, NndeployError, did_you_mean
from nndeploy.serve.access import Access
from nndeploy.serve.body_budget import BodyBudget
from nndeploy.serve.call_queue import ending
from nndeploy.serve.figures import Figures
from nndeploy.serve.infer_request import Answer, InferRequest, status_of, wanted
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.watched_record import Watch
from nndeploy.version import __version__

NAME = "nndeploy"
VERSION = __version__
EXTENSIONS = ("binary_tensor_data", "generate")
LAST_ANSWERS_SECONDS = 1.0
"""How long answers may still be on their way to clients when the service closes, after the last call has ended."""
INLINE_BYTES = 1 << 16
"""More than so many bytes of elements are read or written one by one in another thread, so that others go on."""
RAW_BYTES = 16
"""So many bytes of raw tensors, which may be texts, count as one of those."""

Result = TypeVar("Result")


@dataclass(slots=True)
class Counted:
    """A request that is counted for the model of this name."""

    name: str


@dataclass(slots=True)
class Answering:
    """The models of a service by name, and what holds for all their requests."""

    models: Mapping[str, ServedModel]
    options: ServeOptions
    access: Access
    budget: BodyBudget
    figures: Figures
    is_ending: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether every model is ready, and the service does not end."""
        return all(map(self.is_model_ready, self.models.values()))

    def is_model_ready(self, model: ServedModel) -> bool:
        """Whether a model is ready in every process of the service, and the service does not end."""
        return model.is_ready and self.figures.others_loaded and not self.is_ending

    def model(self, name: str, version: str) -> ServedModel:
        """Returns the model of a name, in the version that is asked for; "" for whichever answers.

        Raises:
            MissingInputError: there is none.
        """
        model = self.models.get(name)
        if model is None:
            raise MissingInputError(f"no model is called {name!r:.80}", hint=did_you_mean(name, self.models))
        if version and model.is_ready and version != model.version:
            raise MissingInputError(f"{name!r} has no version {version!r:.80}", hint=f"it has {model.version!r}")
        return model

    async def infer(
        self, model: ServedModel, request: InferRequest, began_ns: int, watch: Watch | None = None
    ) -> Answer:
        """Returns the outputs that a request asks for; `began_ns` is when it came, on the monotonic clock.

        `watch` sees a text grow, where a loop writes one; the inputs are then fields of the pipeline's source.

        Raises:
            UnavailableError: the service ends, which who asks whether it is ready is told from the same moment on.
            NndeployError: as `ServedModel.submit` and its future.
        """
        if self.is_ending:
            raise ending(model.name)
        limit_ns = round(self.options.request_timeout * 1e9)
        limit_ns = min(limit_ns, request.timeout_ns or limit_ns)
        until_ns = began_ns + limit_ns
        done = model.submit(dict(request.inputs), until_ns, watch)
        if not await _ended(done, (until_ns - time.monotonic_ns()) / 1e9):
            raise DeadlineError(f"no answer within {limit_ns / 1e6:.3g} ms", where=model.name)
        found = done.result()
        return Answer(wanted(found.outputs, request.outputs), found.version)

    @contextmanager
    def counted(self, name: str, protocol: str) -> Iterator[Counted]:
        """Counts what becomes of a request within the block, for the model that is then named."""
        began = time.monotonic()
        code, counted = "OK", Counted(name)
        try:
            yield counted
        except (asyncio.CancelledError, ConnectionError):  # the client went away: while it waited, or was answered
            code = "CANCELLED"
            raise
        except Exception as err:
            code = status_of(err)[1]
            if not isinstance(err, NndeployError):
                traceback.print_exception(err, file=sys.stderr)  # a bug, of which the client is told no more than that
            raise
        finally:
            known = counted.name if counted.name in self.models else ""
            self.figures.add(known, protocol, code, time.monotonic() - began)


async def _ended(done: "Future[Answer]", seconds: float) -> bool:
    """Returns whether a call ended within so many seconds; it is cancelled where it did not, or nobody waits any more.

    What `asyncio.timeout` around `asyncio.wrap_future` does, at a third of its cost, which is more than a small call's.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[bool] = loop.create_future()

    def end(is_in_time: bool) -> None:
        if not ended.done():
            ended.set_result(is_in_time)

    def tell(_: "Future[Answer]") -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(end, True)

    done.add_done_callback(tell)
    limit = loop.call_later(seconds, end, False)
    is_in_time = False
    try:
        is_in_time = await ended
    finally:
        limit.cancel()
        if not is_in_time:
            done.cancel()
    return is_in_time


async def apart(num_bytes: int, work: Callable[..., Result], *arguments: Any) -> Result:
    """Returns what `work` gives, from another thread where it goes through so many bytes of elements."""
    if num_bytes <= INLINE_BYTES:
        return work(*arguments)
    return await asyncio.get_running_loop().run_in_executor(None, work, *arguments)

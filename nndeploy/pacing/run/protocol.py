# SPDX-License-Identifier: Apache-2.0
"""What a program knows of pacing: its runs begin, pass points and end; it never asks whether that sleeps.

`NOT_PACED` stands where nothing is paced. It hands back what it is given, so a run is as fast as if there were no
pacing. What a backend knows of it is in `nndeploy.plugin.pacing`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from nndeploy.bundle.manifest import Submodel
from nndeploy.bundle.reader import Bundle
from nndeploy.values.types import Value

Run: TypeAlias = Callable[[dict[str, Value]], dict[str, Value]]
Sample: TypeAlias = Callable[[], Mapping[str, Value] | None]
Edges: TypeAlias = Callable[[], tuple[tuple[int, int], ...] | None]


class Step(Protocol):
    """A submodel of a program, which makes the values `outputs` from the values `inputs`."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Returns the outputs; `values` holds at least the inputs."""


class GpuWork(Protocol):
    """The work of a program that is queued on GPUs."""

    def wait(self) -> None:
        """Returns when it is done."""

    def on_host(self, values: dict[str, Value]) -> dict[str, Value]:
        """Returns the values, those on a GPU as copies on the host."""


class Part(NamedTuple):
    """A submodel of a program: its step, its session, of which backend that is, and whether it works on a GPU."""

    submodel: Submodel
    step: Step
    session: object
    backend: str
    is_on_gpu: bool


class ProgramPacing:
    """The pacing of one program; this one leaves it as it is."""

    is_paced = False
    """Whether sessions should be opened to pass points."""

    @property
    def notes(self) -> Sequence[str]:
        """How points were placed, a line for each submodel that tells."""
        return ()

    @property
    def warnings(self) -> Sequence[str]:
        """What a user should know of how runs were learnt, in lines."""
        return ()

    @property
    def runs_one_by_one(self) -> bool:
        """Whether submodels must not run at once; known once points were placed."""
        return False

    @property
    def needs_one_thread(self) -> bool:
        """Whether the thread that calls must do all of the work."""
        return False

    def place(
        self,
        parts: Sequence[Part],
        edges: Edges,  # noqa: ARG002
        gpu_work: GpuWork | None,  # noqa: ARG002
        sample: Sample,  # noqa: ARG002
    ) -> Sequence[Step]:
        """Returns the steps of the program, one for each part, that pass their points.

        `edges()` are (a, b) where part b reads what part a makes, None where one thread does one after another.
        `gpu_work` is what all parts queue on GPUs, `sample()` inputs to try points with.
        """
        return [part.step for part in parts]

    def paced(self, run: Run) -> Run:
        """Returns the call that begins a run, does it, and ends it."""
        return run

    def learn(self, run: Callable[[Mapping[str, Value]], object], bundle: Bundle) -> None:
        """Learns how long each operator takes, by running what the bundle carries."""

    def check(self, path: Path) -> None:
        """Checks that runs of the program, of the bundle at `path`, can sleep inside, and by the policy."""

    def close(self) -> None:
        """Ends it; no run may come later."""


NOT_PACED = ProgramPacing()

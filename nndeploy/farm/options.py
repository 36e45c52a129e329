# SPDX-License-Identifier: Apache-2.0
"""What a call of a batch may ask for beside its fleet file, as one value."""

from dataclasses import dataclass

from nndeploy.options.described import described
from nndeploy.options.texts import seconds_in

_JOBS, _RUN, _REPORT, _CLUSTER = "Which jobs", "Running", "Reports", "On a cluster"
WORKER_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Which jobs of a fleet to run, and how; what each means is its help."""

    filters: tuple[str, ...] = described(
        (), "Only jobs whose names match, e.g. 'model=yolo* target=rtx*' (repeatable: one of them must).",
        section=_JOBS, flags=("--filter",), metavar="KEY=GLOB", from_texts=tuple,
    )  # fmt: skip
    shard: str = described(
        "", "Only the K-th of N parts, for machines that share a batch.", section=_JOBS, metavar="K/N"
    )
    only: str = described(
        "", "Only this job, by its id. Calls for several may run at once, on machines that share the folder.",
        section=_JOBS, metavar="JOB",
    )  # fmt: skip
    jobs: int | None = described(
        None, "How many jobs run at once. Default: the fleet file's, or as cores and memory allow.",
        section=_RUN, flags=("-j", "--jobs"), least=1,
    )  # fmt: skip
    fresh: bool = described(
        False, "Forget what earlier calls of this batch did; the cache still knows what was built.", section=_RUN
    )
    retry_failed: bool = described(False, "Try again what is known to fail.", section=_RUN)
    fail_fast: bool = described(False, "Stop at the first failure.", section=_RUN)
    max_failures: int | None = described(None, "Stop after so many failures.", section=_RUN, least=1)
    journal: str | None = described(
        None, "The folder of journals. Default: .nndeploy/batch beside the fleet file.",
        section=_RUN, metavar="FOLDER", is_path=True,
    )  # fmt: skip
    cluster: str = described(
        "", "Build on the workers of a scheduler: tls://HOST:PORT, file:scheduler.json, fleet (as [cluster] of the "
        "fleet file says), or local (a worker of this machine, to try it).",
        section=_CLUSTER, metavar="ADDRESS",
    )  # fmt: skip
    certificates: str | None = described(
        None, "The folder of ca.pem, client.pem and client-key.pem, as `farm ca` makes them.",
        section=_CLUSTER, metavar="FOLDER", is_path=True,
    )  # fmt: skip
    insecure: bool = described(
        False, "Allow tcp:// on a network: whoever reaches it runs code on every worker.", section=_CLUSTER
    )
    worker_wait: float = described(
        WORKER_WAIT_SECONDS, "How long to wait for a worker where there is none, e.g. 10m. Default: 1m.",
        section=_CLUSTER, metavar="TIME", from_text=seconds_in("--worker-wait"),
    )  # fmt: skip
    events: str | None = described(
        None, "Write what happens to a file, a JSON object a line, while it happens.",
        section=_REPORT, metavar="FILE", is_path=True,
    )  # fmt: skip
    against: str | None = described(
        None, "The batch.json of an earlier batch: what got worse fails the batch.",
        section=_REPORT, metavar="FILE", is_path=True,
    )  # fmt: skip

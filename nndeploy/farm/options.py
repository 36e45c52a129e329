# SPDX-License-Identifier: Apache-2.0
"""What a call of a batch may ask for beside its fleet file, as one value."""

from dataclasses import dataclass

from nndeploy.options.described import described
from nndeploy.options.texts import seconds_in

_JOBS, _RUN, _REPORT, _CLUSTER = "Job selection", "Running", "Reports", "On a cluster"
WORKER_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Which jobs of a fleet to run, and how; what each means is its help."""

    filters: tuple[str, ...] = described(
        (), "Run only matching jobs, e.g. 'model=yolo* target=rtx*'. Repeatable: a job must match at least one filter.",
        section=_JOBS, flags=("--filter",), metavar="KEY=GLOB", from_texts=tuple,
    )  # fmt: skip
    shard: str = described("", "Run only part K of N, to split a batch across machines.", section=_JOBS, metavar="K/N")
    only: str = described(
        "", "Run only the job with this ID. Several such calls may run at once, on machines that share the folder.",
        section=_JOBS, metavar="JOB",
    )  # fmt: skip
    jobs: int | None = described(
        None, "Number of parallel jobs. Default: as in the fleet file, else limited by cores and memory.",
        section=_RUN, flags=("-j", "--jobs"), least=1,
    )  # fmt: skip
    fresh: bool = described(
        False, "Discard the journal of earlier runs of this batch; cached builds are still reused.", section=_RUN
    )
    retry_failed: bool = described(False, "Retry jobs that failed before.", section=_RUN)
    fail_fast: bool = described(False, "Stop at the first failure.", section=_RUN)
    max_failures: int | None = described(None, "Stop after this many failures.", section=_RUN, least=1)
    journal: str | None = described(
        None, "Journal directory. Default: .nndeploy/batch beside the fleet file.",
        section=_RUN, metavar="FOLDER", is_path=True,
    )  # fmt: skip
    cluster: str = described(
        "",
        "Build on the workers of a scheduler: tls://HOST:PORT, file:scheduler.json, `fleet` (the [cluster] table of "
        "the fleet file), or `local` (a worker on this machine, for testing).",
        section=_CLUSTER, metavar="ADDRESS",
    )  # fmt: skip
    certificates: str | None = described(
        None, "Folder with ca.pem, client.pem and client-key.pem, as created by `farm ca`.",
        section=_CLUSTER, metavar="FOLDER", is_path=True,
    )  # fmt: skip
    insecure: bool = described(
        False,
        "Allow unencrypted tcp:// on a network. Anyone who can reach it can run code on every worker.",
        section=_CLUSTER,
    )
    worker_wait: float = described(
        WORKER_WAIT_SECONDS, "How long to wait for a worker if none is connected, e.g. 10m. Default: 1m.",
        section=_CLUSTER, metavar="TIME", from_text=seconds_in("--worker-wait"),
    )  # fmt: skip
    events: str | None = described(
        None, "Write events to a file as they happen, one JSON object per line.",
        section=_REPORT, metavar="FILE", is_path=True,
    )  # fmt: skip
    against: str | None = described(
        None, "The batch.json of an earlier batch to compare with; regressions fail this batch.",
        section=_REPORT, metavar="FILE", is_path=True,
    )  # fmt: skip

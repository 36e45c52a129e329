# SPDX-License-Identifier: Apache-2.0
"""What a service may be told, with the defaults of the command."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nndeploy.errors import UsageError
from nndeploy.options.described import described
from nndeploy.options.texts import bytes_in
from nndeploy.runtime.load_options import CautiousLoadOptions, LoadOptions
from nndeploy.serve.address import Address, address_in
from nndeploy.stream.run.options import models_in, seconds_of_tuning

_NETWORK, _REQUESTS, _MODELS = "Network", "Requests", "Models"


@dataclass(frozen=True, slots=True)
class ServeOptions(CautiousLoadOptions):
    """Where a service listens, whom it answers, how much it takes; what each option means is its help."""

    http: Address | None = described(
        Address("127.0.0.1", 8000), "Address for HTTP: HOST:PORT, unix:PATH, or none. Default: 127.0.0.1:8000.",
        section=_NETWORK, metavar="ADDRESS", from_text=address_in("--http"),
    )  # fmt: skip
    grpc: Address | None = described(
        Address("127.0.0.1", 8001), "Address for gRPC: HOST:PORT, unix:PATH, or none. Default: 127.0.0.1:8001.",
        section=_NETWORK, metavar="ADDRESS", from_text=address_in("--grpc"),
    )  # fmt: skip
    tls_cert: Path | None = described(
        None,
        "TLS certificate chain (PEM). Required, with --tls-key and --token-file, unless the server listens only on "
        "this machine.",
        section=_NETWORK, is_path=True, metavar="FILE",
    )  # fmt: skip
    tls_key: Path | None = described(
        None,
        "Private key of --tls-cert (PEM); must not be readable by other users.",
        section=_NETWORK,
        is_path=True,
        metavar="FILE",
    )
    token_file: Path | None = described(
        None,
        "File with the token that clients send (Authorization: Bearer TOKEN); must not be readable by other users.",
        section=_NETWORK, is_path=True, metavar="FILE",
    )  # fmt: skip
    max_connections: int = described(
        256,
        "Maximum number of open HTTP connections, and of concurrent gRPC calls.",
        section=_NETWORK,
        least=1,
        most=65536,
    )
    max_body: int = described(
        64 << 20, "Maximum size of a request body. Default: 64MiB.",
        section=_REQUESTS, metavar="SIZE", from_text=bytes_in("--max-body"),
    )  # fmt: skip
    queue: int = described(
        64,
        "Maximum number of waiting requests per model; further requests are rejected (429).",
        section=_REQUESTS,
        least=1,
        most=65536,
    )
    request_timeout: float = described(
        30.0,
        "Time limit in seconds for each part of a request: receiving it, queueing and running it, sending the "
        "response.",
        section=_REQUESTS, least=0, most=86400, is_above=True, metavar="SECONDS",
    )  # fmt: skip
    grace: float = described(
        10.0, "Time in seconds that requests in progress have to finish after the first signal.",
        section=_REQUESTS, least=0, most=3600, metavar="SECONDS",
    )  # fmt: skip
    workers: int = described(1, "Number of concurrent calls per model.", section=_MODELS, least=1, most=256)
    processes: int = described(
        1,
        "Number of worker processes, each with its own --workers, --queue, --max-connections and --threads (default: a "
        "share of the cores). The weights of the native backend are in memory once; other backends load a copy in each "
        "process.",
        section=_MODELS,
        least=1,
        most=256,
    )
    batch: int = described(1, "Number of requests batched into one call.", section=_MODELS, least=1, most=4096)
    batch_delay_ms: float = described(
        0.0, "How long a request waits for its batch to fill, in milliseconds.", section=_MODELS, least=0, most=60_000
    )
    checks_goldens: bool = described(
        True,
        "Serve bundles without checking their reference outputs on this machine first.",
        section=_MODELS,
        flags=("--no-check",),
    )
    takes_bundled_pipeline: bool = described(
        True, "Serve only the model, even if a bundle contains a pipeline.", section=_MODELS, flags=("--no-pipeline",)
    )
    models: Mapping[str, str | os.PathLike[str]] = described(
        dict, "Bundle to use for a model of the pipeline (repeatable).",
        section=_MODELS, flags=("--model",), metavar="NAME=BUNDLE", from_texts=models_in,
    )  # fmt: skip
    tune_seconds: float = seconds_of_tuning()
    follow: bool = described(
        False, "Load a newly installed version of NAME@, and switch to it once its reference outputs match.",
        section=_MODELS,
    )  # fmt: skip

    def __post_init__(self) -> None:
        LoadOptions.__post_init__(self)
        if self.http is None and self.grpc is None:
            raise UsageError("--http none and --grpc none leave nothing to listen on")
        if self.http is not None and self.http == self.grpc and self.http.port != 0:
            raise UsageError(f"--http and --grpc are both {self.http}", hint="two ports")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError("--tls-cert and --tls-key go together")
        for address in (self.http, self.grpc):
            if address is not None and not address.is_local and (self.tls_cert is None or self.token_file is None):
                hint = "--tls-cert, --tls-key and --token-file; or 127.0.0.1, or unix:PATH"
                raise UsageError(f"{address} can be reached from other machines, without TLS and a token", hint=hint)
        if self.processes > 1 and self.grpc is not None and self.grpc.path:
            hint = "a port for --grpc, or --grpc none; HTTP can have unix:PATH"
            raise UsageError(f"--processes {self.processes} cannot share a gRPC socket at {self.grpc}", hint=hint)
        if not self.max_body:
            raise UsageError("--max-body 0 leaves no request")

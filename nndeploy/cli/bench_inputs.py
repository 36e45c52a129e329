# SPDX-License-Identifier: Apache-2.0
"""What `bench` runs: the inputs that were named, else the goldens of the bundle, else made-up ones."""

import sys
from collections.abc import Sequence
from itertools import islice

import numpy as np

from nndeploy.cli.standard_streams import binary_stdin
from nndeploy.errors import MissingInputError
from nndeploy.runtime.program import Program
from nndeploy.value_types import Value


def bench_inputs(
    program: Program, texts: Sequence[str], *, most: int, most_bytes: int | None = None, num_made_up: int = 1
) -> tuple[list[dict[str, Value]], str]:
    """Returns what to run, loaded, and what it is in words; at most `most` samples and about `most_bytes`.

    Raises:
        MissingInputError: there is nothing to run.
        NndeployError: an input cannot be read.
    """
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.runtime.sample_inputs import sample_inputs
    from nndeploy.stream.sources import source_from_texts

    if texts:
        source = source_from_texts(texts, program.manifest, binary_stdin)
        samples: list[dict[str, Value]] = []
        num_bytes = 0
        for item in islice(source.items, most):
            samples.append(item.load())
            num_bytes += sum(value.nbytes for value in samples[-1].values() if isinstance(value, np.ndarray))
            if most_bytes is not None and num_bytes > most_bytes:
                break
        if not samples:
            raise MissingInputError("there is nothing to run", where=", ".join(texts))
        if source.num_items is not None and len(samples) < source.num_items and most_bytes is not None:
            print(f"nndeploy: the first {len(samples):,} of {source.num_items:,} inputs are taken", file=sys.stderr)
        return samples, f"{len(samples)} inputs of {', '.join(texts)}"
    if program.manifest.goldens:
        with open_bundle(program.path) as opened:
            samples = [opened.values(golden.inputs) for golden in opened.manifest.goldens]
        return samples, f"{len(samples)} golden inputs"
    return [sample_inputs(program.manifest, seed) for seed in range(num_made_up)], "made-up inputs"

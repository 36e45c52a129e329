# SPDX-License-Identifier: Apache-2.0
"""What `bench` and `tune` run: the inputs that were named, else the goldens of the bundle, else made-up ones."""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from nndeploy.cli.console import note
from nndeploy.cli.standard_streams import binary_stdin
from nndeploy.errors import MissingInputError, NndeployError
from nndeploy.loadgen.samples import NamedSample
from nndeploy.runtime.program import Program
from nndeploy.values.amounts import counted

MAX_INPUTS = 64
"""Inputs that are kept in memory, where a command runs the same ones again and again."""


def bench_inputs(
    program: Program, texts: Sequence[str], *, most: int, most_bytes: int | None = None, num_made_up: int = 1
) -> tuple[list[NamedSample], str]:
    """Returns what to run, loaded, and what it is in words; at most `most` samples and about `most_bytes`.

    Raises:
        MissingInputError: no inputs to run.
        NndeployError: an input cannot be read; it names the file and the place in it.
    """
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.runtime.sample_inputs import sample_inputs
    from nndeploy.stream.sources.sources import source_from_texts

    if texts:
        source = source_from_texts(texts, program.manifest, binary_stdin)
        samples: list[NamedSample] = []
        num_bytes = 0
        for item in islice(source.items, most):
            try:
                samples.append(NamedSample(item.origin, item.load()))
            except NndeployError as err:
                raise err.about(item.origin) from err
            num_bytes += sum(value.nbytes for value in samples[-1].values.values() if isinstance(value, np.ndarray))
            if most_bytes is not None and num_bytes > most_bytes:
                break
        if not samples:
            raise MissingInputError("no inputs to run", where=", ".join(texts))
        if source.num_items is not None and len(samples) < source.num_items and most_bytes is not None:
            note(f"the first {len(samples):,} of {source.num_items:,} inputs are taken")
        return samples, f"{counted(len(samples), 'input')} of {', '.join(texts)}"
    if program.manifest.goldens:
        with open_bundle(program.path) as opened:
            samples = [
                NamedSample(f"golden {i}", opened.values(golden.inputs))
                for i, golden in enumerate(opened.manifest.goldens)
            ]
        return samples, counted(len(samples), "golden input")
    made_up = [
        NamedSample(f"made-up input {seed}", sample_inputs(program.manifest, seed)) for seed in range(num_made_up)
    ]
    return made_up, counted(len(made_up), "made-up input")

# SPDX-License-Identifier: Apache-2.0
"""Stage 5: small models of one or a few operators, each tier alone, against ONNX Runtime on the CPU.

Every model runs on three inputs, the first of them twice: a session keeps memory and a graph between calls.
"""

import re
from collections.abc import Iterator

from gpucheck import operator_models
from gpucheck.agreement import agreement, on_host
from gpucheck.options import Options
from gpucheck.reference import outputs_of, random_inputs, session_of
from gpucheck.rows import OK, REFUSED, WRONG, Row
from gpucheck.tiers import RefusedError, built, opened, target_of, why_unusable

STAGE = "operators"
SEEDS = (0, 1, 2, 0)


def items(options: Options) -> list[str]:
    """Returns "tier: model" for every model and usable tier, and "tier" for one that is not."""
    usable = [tier for tier in options.tiers if not why_unusable(tier)]
    found = [tier for tier in options.tiers if tier not in usable]
    names = [f"{tier}: {name}" for name in operator_models.names() for tier in usable]
    return found + [name for name in names if re.search(options.match, name)]


def run(item: str, options: Options) -> Iterator[Row]:
    """Yields what came of one model on one tier."""
    tier, _, name = item.partition(": ")
    if not name:
        yield Row(STAGE, "(all)", tier, REFUSED, why_unusable(tier))
        return
    proto = operator_models.model(name)
    try:
        artifact = built(tier, proto, target_of(options))
    except RefusedError as err:
        yield Row(STAGE, name, tier, REFUSED, str(err))
        return
    session, reference, worst = opened(tier, artifact), session_of(proto, threads=1), 0.0
    quantised = name.rpartition("/")[0] in operator_models.QUANTISED
    try:
        for seed in SEEDS:
            inputs = random_inputs(reference, seed)
            found = agreement(on_host(session.run(inputs)), outputs_of(reference, inputs), quantised)
            worst = max(worst, found.max_abs or 0.0)
            if not found.ok:
                yield Row(STAGE, name, tier, WRONG, f"inputs {seed}: {found.reason}", max_abs=worst)
                return
    finally:
        session.close()
    yield Row(STAGE, name, tier, OK, max_abs=worst)

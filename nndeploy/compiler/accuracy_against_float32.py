# SPDX-License-Identifier: Apache-2.0
"""The quantised bundle against the float32 model: the third of three runs, float32, quantised, and the bundle itself.

Backends compute with integers each in its own way. Law: a bundle that is further from float32 than was allowed, and
further than the quantised model as its file says, is not written.
"""

from dataclasses import replace

from nndeploy.bundle.report import QuantisationReport
from nndeploy.checking.cuts import behind_cuts
from nndeploy.compiler.pack import Packing
from nndeploy.errors import CheckError
from nndeploy.quantisation.accuracy import Outputs, worst_accuracy
from nndeploy.quantisation.task_measures import task_measures

SLACK_DB = 0.5
"""Right engines may differ by so much, which is a tenth of the noise."""


def with_accuracy(packing: Packing, got: Outputs) -> QuantisationReport | None:
    """Returns the report with the bundle's accuracy in it, `got` being its outputs on the samples; None without one.

    Raises:
        CheckError: it is too far from float32, and the quantised model is not.
    """
    report = packing.quantisation
    behind = behind_cuts(packing.loaded.model.graph)
    names = [named.name for named in packing.loaded.outputs if named.name not in behind]
    if report is None or not names:
        return report
    found = worst_accuracy(got, packing.float_outputs, names)
    by_file = worst_accuracy(packing.original.outputs, packing.float_outputs, names)
    if found.sqnr_db < min(report.least_db, by_file.sqnr_db) - SLACK_DB:
        raise CheckError(
            f"the bundle is less accurate than the quantised model: {found.output!r} has {found.sqnr_db:.1f} dB "
            f"against float32, not {by_file.sqnr_db:.1f} dB",
            hint="--backends onnxruntime computes as the quantised model says",
        )
    carried = packing.options.pipeline
    measures = task_measures(got, packing.float_outputs, names, None if carried is None else carried.results)
    return replace(report, bundle_db=round(found.sqnr_db, 1), measures=tuple(measures))

# SPDX-License-Identifier: Apache-2.0
"""What a batch leaves for people, CI and the next batch: every report, written whole.

batch.py          what all reports tell
gates.py          what got worse since the batch before
write_reports.py  each report to its file
batch_json.py     the whole truth, for programs; batch.schema.json describes it
junit.py          for what shows results of tests
markdown.py       for the summary of a CI job
openmetrics.py    a few figures, for what watches them over time
page.py           models by targets, for a browser

    batch = judged(Batch(...), read_batch(last), gates)
    write_reports(batch, ReportFiles(json=...), folder, os.environ)

Comes in: a batch that ended. Goes out: the files that were asked for, and on GitHub the summary of the step.
"""

from nndeploy.farm.reports.batch import Batch
from nndeploy.farm.reports.batch_json import read_batch
from nndeploy.farm.reports.gates import Gates, judged
from nndeploy.farm.reports.write_reports import ReportFiles, check_reports, write_reports

__all__ = ["Batch", "Gates", "ReportFiles", "check_reports", "judged", "read_batch", "write_reports"]

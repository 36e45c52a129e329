# SPDX-License-Identifier: Apache-2.0
"""A build farm: many models compiled for many boxes, on one machine or several.

fleet.py, fleet_file.py     what a fleet file says, and its reading
rooted_path.py, template.py what its paths mean
job_options.py              options of a compile in it
matching_files.py           globs with exclusions -> files
unique_names.py             files -> names by which a person tells them apart
expand.py                   models x targets x variants -> jobs
job_filter.py               which of them, by globs or by shard
job.py                      one job, as plain data too
resources.py, machine.py    how many of them at once, and what a machine has
outcome.py                  what came of one
reports/                    what came of all
build_job.py, run_batch.py  one build, and all of a batch; engine.py, local_engine.py: who builds; cluster/: elsewhere
"""

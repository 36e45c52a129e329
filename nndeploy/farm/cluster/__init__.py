# SPDX-License-Identifier: Apache-2.0
"""Jobs of a batch built by workers on other machines, through dask.distributed, which `engine.py` and below it import.

scheduler_address.py, certificates.py   texts and files that say where, and who may; place.py: both together
half.py                                 whether dask.distributed is installed
packed_job.py                           a job that travels, with its files by digest
engine.py, files.py                     this machine's side: who builds what, what goes there and what comes back
scheduler.py                            the scheduler
worker.py, worker_builds.py             a worker; blob_folder.py: the files that it has
local_cluster.py                        a scheduler and a worker on this machine, to try it
dask_setup.py, until_signal.py          what all of them share
"""

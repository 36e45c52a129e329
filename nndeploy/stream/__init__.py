# SPDX-License-Identifier: Apache-2.0
"""Streams: items of a source through a pipeline of models and steps into sinks, one outcome for each item.

items.py, records.py, item_plan.py  what flows
description.py, model_fit.py        what a stream is made of, and whether it fits its models
conditions/ which records a pipeline takes
formats/    values as JSON lines, .npy, .npz and images
sources/    where items come from
sinks/      where outcomes go, and how a run that was killed goes on
pipeline/   pipelines as files, put together with their models
engine/     the stations, queues and threads that do the work
"""

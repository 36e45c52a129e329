# SPDX-License-Identifier: Apache-2.0
"""The engine of streams: stations and the queues between them, threads that take work wherever it is.

engine.py    the run, on one page
assembly.py  a checked plan as queues and workers
schedule.py  who works on what next
"""

# SPDX-License-Identifier: Apache-2.0
"""Model -> bundle: `flow.py` is the whole way on one page, `job.py` the same in a process that can be stopped.

chains/     one chain of submodels: planned, built, compared, with fallbacks and variants for other boxes
placement/  which of many chains a bundle gets: candidates, predicted and raced
"""

# SPDX-License-Identifier: Apache-2.0
"""The commands of a batch for an engine that a site has already: SLURM, HyperQueue, ninja, make, any other."""

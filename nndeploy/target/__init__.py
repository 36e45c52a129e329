# SPDX-License-Identifier: Apache-2.0
"""Boxes that bundles are for: what one has, how this machine is asked, and the boxes that have names.

target.py         a box: architecture, CPU features, caches, GPUs, libraries; this machine
known_targets.py  boxes by name, from configs/targets
"""

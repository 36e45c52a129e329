# SPDX-License-Identifier: Apache-2.0
"""Runs of one program: items that pass points and sleep, and what they achieved."""

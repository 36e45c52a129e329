# SPDX-License-Identifier: Apache-2.0
"""Pipelines to begin with, written from a model and the files that exporters put beside it."""

# SPDX-License-Identifier: Apache-2.0
"""Pipelines as TOML files: read, put together with their models, sources and sinks, and carried in bundles."""

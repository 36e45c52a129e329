# SPDX-License-Identifier: Apache-2.0
"""The bundle: manifest, container, values, writer and reader; the contract between the two halves."""

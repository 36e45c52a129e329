# SPDX-License-Identifier: Apache-2.0
"""A build farm: many models compiled for many boxes, on one machine or several."""

# SPDX-License-Identifier: Apache-2.0
"""The public interface of a backend, and how backends are found."""

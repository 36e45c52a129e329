# SPDX-License-Identifier: Apache-2.0
"""Items of a pipeline: when the next is let in, and until when each of its runs may take."""

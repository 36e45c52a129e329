# SPDX-License-Identifier: Apache-2.0
"""A run as the command and Python ask for it: what is opened, where items come from and go, how it goes on.

options.py       what may be asked for, with its defaults
loaded.py        the pipeline, if there is one, and the programs that its runners need
open_run.py      loaded, source, sink and stream put together
run_pipeline.py  all of it in one call
"""

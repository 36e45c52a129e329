# SPDX-License-Identifier: Apache-2.0
"""Calls to backends' libraries, in this process or each in a child process with limits.

    tasks.py    what can be asked: supports, build (and run), evaluate, measure
    workers.py  `InProcessWorkers` and `ChildWorkers`: the same calls, here or in a child
    shared_workers.py the children that all Python calls of a process share
    messages.py a request and a response as files in a folder
    child.py    a child process: feeds it folders, watches the clock, takes what it left
    main.py     the child's side
    deferred_imports.py what a process of ours saves its processor

A child gets a private folder and an almost empty environment, dies with its parent, and its whole group is killed
when its time is over. A crash of a library is then one more refusal with a reason; the next job gets a new child.
"""

# SPDX-License-Identifier: Apache-2.0
"""What a process of ours may do that handles what a stranger made: read, write and call no more than it is told.

    allowed.py       `Sandbox`: what a process may read and write, as a value that crosses processes
    places.py        the files that Python, its packages and the libraries of the system are made of; devices; secrets
    enter.py         `enter`: from here on this process, and all that it starts, is kept to it
    child_process.py a process that is started in a sandbox, and ended with all that it started
    idle_threads.py  what threads of ours do when they have nothing to do
    landlock.py      files, TCP, signals and abstract sockets, by the kernel's Landlock
    seccomp.py       system calls, by a filter in the kernel; system_calls.py: which
    capabilities.py  what is left of root's rights

Law: what was given up is never had again, by no child either. A kernel that lacks a part keeps the process to the rest;
`missing()` says what that is.
"""

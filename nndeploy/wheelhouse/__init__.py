# SPDX-License-Identifier: Apache-2.0
"""A folder with every wheel that a box needs, made where there is a network, installed where there is none.

here.py            what this Python must have for it
gather.py          the flow: our wheels, pip's answer, the closure, the folder
box.py             for whom: the tags of its wheels, and how the conditions of requirements are answered for it
pip_download.py    pip, asked for another machine
wheels.py          what wheels say of themselves, and which of them a box needs
install_files.py   what stands beside the wheels: hashes and a script

Comes in: a box, extras. Goes out: a folder, whole or not at all. Law: what is in it is enough, by the metadata of every
wheel and the conditions as the box answers them, not as this machine does; nothing is installed or run here.
"""

# SPDX-License-Identifier: Apache-2.0
"""Files and folders: read only what is safe to read, write so that a reader sees the whole of one or none.

whole_files.py      regular files and output folders
held_folder.py      a folder that lives as long as its process
handed_file.py      a file that a process with fewer rights writes
toml_file.py        TOML files, with places in messages
toml_table.py       their tables, value by value; a key that nobody asked for is refused
page.py             pages of HTML that load nothing
shared_object.py    shared libraries from memory
account_folders.py  the folders of the account
shipped_configs.py  the files of configs/
"""

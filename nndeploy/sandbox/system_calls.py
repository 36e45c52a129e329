# SPDX-License-Identifier: Apache-2.0
"""System calls that no library needs to read a model, build for it or run it, with their numbers on x86-64 and aarch64.

-1: the architecture has no such call. Those from 424 on have the same number everywhere.

Source: Linux, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
"""

X86_64, AARCH64 = "x86_64", "aarch64"
ARCHITECTURES = (X86_64, AARCH64)

_REACH_OTHERS = {  # by the network, or by what other processes of the user wait for
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242),
    "msgget": (68, 186), "semget": (64, 190), "shmget": (29, 194), "mq_open": (240, 180),
}  # fmt: skip
_TOUCH_OTHERS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
}  # fmt: skip
_CHANGE_THE_MACHINE = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "swapon": (167, 224), "swapoff": (168, 225), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "acct": (163, 89), "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58), "iopl": (172, -1),
    "ioperm": (173, -1), "unshare": (272, 97), "setns": (308, 268), "fanotify_init": (300, 262),
}  # fmt: skip
_CHANGE_FILES_BY_NAME = {  # which Landlock does not refuse: owners, attributes, and before Linux 6.2 their size
    "chown": (92, -1), "lchown": (94, -1), "fchown": (93, 55), "fchownat": (260, 54), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469),
    "truncate": (76, 45),
}  # fmt: skip
_WIDE_DOORS_OF_THE_KERNEL = {
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
}  # fmt: skip

REFUSED = {
    **_REACH_OTHERS, **_TOUCH_OTHERS, **_CHANGE_THE_MACHINE, **_CHANGE_FILES_BY_NAME, **_WIDE_DOORS_OF_THE_KERNEL
}  # fmt: skip
"""The calls of `REFUSED` are not permitted."""
UNKNOWN = {
    "clone3": (435, 435), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427)
}  # fmt: skip
"""Those of `UNKNOWN` are as on a kernel that has none, for which libraries have another way: a filter would see neither
what flags they have nor what they do."""
SESSIONS = {"setsid": (112, 157), "setpgid": (109, 154)}
"""A process leaves the group that is ended with it by `SESSIONS`."""
CLONE, PRLIMIT = (56, 220), (302, 261)

"""Calls what the filter was never told about: numbers of today's kernel and of tomorrow's.

Everything that is on no list is ENOSYS, as a kernel without it would say.
"""

GUEST = """
beyond = sorted(
    {syscall(n, 0, 0, 0, 0, 0, 0) for n in list(range(463, 1025)) + [0x3FFFFFFF, 0x7FFFFFFF]}
)
recent = {
    name: syscall(number, 0, 0, 0, 0, 0, 0)
    for name, number in {
        "set_mempolicy_home_node": 450,
        "cachestat": 451,
        "map_shadow_stack": 453,
        "lsm_get_self_attr": 459,
        "lsm_set_self_attr": 460,
        "lsm_list_modules": 461,
        "landlock_restrict_self": 446,
    }.items()
}
report(beyond=beyond, recent=sorted(set(recent.values())))
"""

EXPECT = {"beyond": ["ENOSYS"], "recent": ["ENOSYS"]}

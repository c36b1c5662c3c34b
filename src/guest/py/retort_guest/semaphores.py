"""What joblib is told when it tries a semaphore.

It does so when it is imported, and where there is none it does all its work in one process from then on. A
zygote has none, as its sessions would share it; each session has its own. So joblib's trial succeeds.
"""

import contextlib

try:
    import _multiprocessing as semaphores
    real = semaphores.SemLock
except (ImportError, AttributeError):  # a Python without them
    semaphores, real = None, object


class SemLock(real):
    """A module may keep this name, so it makes what the real one makes."""

    def __new__(cls, kind, value, maxvalue, name, unlink):
        return None if name.startswith("/joblib-") else real(kind, value, maxvalue, name, unlink)


@contextlib.contextmanager
def promised():
    """What is imported in it finds semaphores where joblib tries one."""
    if semaphores:
        semaphores.SemLock = SemLock
    try:
        yield
    finally:
        if semaphores:
            semaphores.SemLock = real

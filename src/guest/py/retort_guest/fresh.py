"""What must differ between two children of one zygote, done in each right after the fork."""

import os
import struct
import sys
import threading


generators = []  # of modules that were learned: learned.py


def reseed():
    threading.main_thread()._set_native_id()
    loaded = sys.modules.get
    if loaded("random"):
        loaded("random").seed()
    if loaded("numpy.random"):
        loaded("numpy.random").seed(struct.unpack("<8I", os.urandom(32)))
    if loaded("torch"):
        loaded("torch").seed()
    if loaded("ssl"):
        # OpenSSL notices a fork by the pid, and kernels of different boxes have the same.
        loaded("ssl").RAND_add(os.urandom(32), 32.0)
    if loaded("tempfile"):
        loaded("tempfile")._name_sequence = None
        loaded("tempfile").tempdir = None
    if loaded("uuid"):
        loaded("uuid")._node = loaded("uuid")._last_timestamp = None
    if loaded("multiprocessing.process"):
        process = loaded("multiprocessing.process")
        process.current_process().authkey = os.urandom(32)
    for generator in generators:
        bits = getattr(generator, "bit_generator", None)
        if bits:
            bits.state = type(bits)().state
        elif loaded("numpy.random") and isinstance(generator, loaded("numpy.random").RandomState):
            generator.seed(struct.unpack("<8I", os.urandom(32)))
        else:
            generator.seed()


class ForkHooks:
    """Collects os.register_at_fork() calls while the zygote imports.

    Run at every fork of the zygote, hooks of big packages cost up to a millisecond for nothing:
    one thread, no lock held, random state renewed above. A kernel registers them for real,
    since its own forks (multiprocessing) need them.
    """

    def __init__(self):
        self.register = os.register_at_fork
        self.kept = []
        os.register_at_fork = self._keep

    def _keep(self, **hooks):
        # A module may have taken this function by name, so it goes on working after release().
        if self.kept is None:
            self.register(**hooks)
        else:
            self.kept.append(hooks)

    def release(self):
        kept, self.kept = self.kept, None
        for hooks in kept:
            self.register(**hooks)
        os.register_at_fork = self.register

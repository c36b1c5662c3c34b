"""What must differ between two children of one zygote, done in each right after the fork."""

import contextlib
import gc
import os
import struct
import sys
import threading
import weakref

generators = []  # of random numbers, of modules' own: noted()


@contextlib.contextmanager
def noted():
    """While modules are imported: has reseed() seed the generators anew that they make and leave to
    chance. One that is given a seed is meant to have the same numbers wherever it is imported."""
    import random

    made, seed = [], random.Random.seed

    def note(self, a=None, version=2):
        if a is None:
            made.append(weakref.ref(self))
        return seed(self, a, version)

    random.Random.seed = note
    try:
        yield
    finally:
        random.Random.seed = seed
    generators.extend(filter(None, (generator() for generator in made)))


def note_numpy():
    """The same for those of numpy that have come since the last gc.freeze()."""
    numpy = sys.modules.get("numpy.random")
    for thing in gc.get_objects() if numpy else ():
        if type(thing) in (numpy.RandomState, numpy.Generator):
            bits = thing._bit_generator
            seeds = getattr(bits, "seed_seq", None) or getattr(bits, "_seed_seq", None)
            if getattr(seeds, "entropy", None) and seeds.entropy.bit_length() > 64:  # nobody's choice
                generators.append(thing)


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
        bits = getattr(generator, "_bit_generator", None)
        if bits:
            bits.state = type(bits)().state
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

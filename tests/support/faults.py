"""A server whose clock is set and whose disk fails, by faults.c: Server(..., env=faults.env)."""

import os
import struct
from pathlib import Path

from support import retort


class Faults:
    def __init__(self, place):
        self.file = Path(place) / "faults"
        self.file.write_bytes(bytes(48))
        self.file.chmod(0o666)
        self.env = {"LD_PRELOAD": str(Path(retort.PROGRAM).parent / "retort-faults.so"),
                    "RETORT_TEST_FAULTS": str(self.file)}

    def _put(self, at, *numbers):
        fd = os.open(self.file, os.O_WRONLY)
        os.pwrite(fd, struct.pack(f"={len(numbers)}q", *numbers), at)
        os.close(fd)

    def set_clock(self, seconds_ahead):
        self._put(0, seconds_ahead)

    def break_disk(self, path, number):
        """Nothing can be written to the file system of this path: every try fails with this errno."""
        self._put(8, os.stat(path).st_dev, number)

    def mend_disk(self):
        self._put(8, 0, 0)

    def hold_disk(self, path):
        """Long writes to the file system of this path wait until let_go()."""
        self._put(8, os.stat(path).st_dev, 0, 1, 0)

    def held(self):
        """How many writes wait, or have waited."""
        return struct.unpack_from("=q", self.file.read_bytes(), 32)[0]

    def let_go(self, number):
        """Those that wait, and all after them, fail with this errno."""
        self._put(16, number, 0)

    def hold_syncs(self, path, but):
        """Nothing reaches the file system of this path, but for one file, until let_syncs_go(). held() tells
        how often all of it was to be synced."""
        self._put(8, os.stat(path).st_dev, 0, 0, 0)
        self._put(40, os.stat(but).st_ino)

    def let_syncs_go(self):
        self._put(40, 0)

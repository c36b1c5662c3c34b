"""matplotlib's list of fonts: seconds to make, so it is made once, in the zygote.

MPLCONFIGDIR is writable there and nowhere else. Kernels and the programs in their box find the
list in the user's own cache directory, where matplotlib looks when MPLCONFIGDIR is not set: a
directory it cannot write would earn a warning and be ignored.
"""

import glob
import importlib.util
import os
import subprocess
import sys

_found = []


def prepare():
    """In the zygote: makes the list if there is none."""
    folder = os.environ.get("MPLCONFIGDIR")
    pattern = os.path.join(glob.escape(folder), "fontlist-*.json") if folder else ""
    if "matplotlib" in sys.modules:
        importlib.import_module("matplotlib.font_manager")
    elif folder and not glob.glob(pattern) and importlib.util.find_spec("matplotlib"):
        # In a process of its own: a pool that does not preload it keeps its memory small.
        subprocess.run([sys.executable, "-I", "-B", "-c", "import matplotlib.font_manager"],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    if folder:
        _found[:] = glob.glob(pattern)
        del os.environ["MPLCONFIGDIR"]


def share():
    """In a new kernel: puts the list where matplotlib looks for it."""
    if not _found:
        return
    folder = os.path.join(os.path.expanduser("~"), ".cache", "matplotlib")
    try:
        os.makedirs(folder, exist_ok=True)
        for path in _found:
            os.symlink(path, os.path.join(folder, os.path.basename(path)))
    except OSError:
        pass  # there from the kernel before this one; or no room, then it is made again

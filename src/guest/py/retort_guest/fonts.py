"""matplotlib's list of fonts: seconds to make, so it is made once, in the zygote.

MPLCONFIGDIR is writable there and nowhere else. Kernels and the programs in their box find the
list in the user's own cache directory, where matplotlib looks when MPLCONFIGDIR is not set: a
directory it cannot write would earn a warning and be ignored.

widen(): texts with Chinese, Japanese or Korean characters find a font that has them, whatever the
theme of the chart names. Another font to ask costs a chart half its time again, so it is asked
from the first such text on, and charts without one do not pay.
"""

import glob
import importlib.util
import os
import re
import subprocess
import sys

_found = []
_FAR_EAST = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]")
_FAR_EAST_FONTS = ("/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc",
                   "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
                   "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
_TEX_CACHE = ("texcache", "_texcache", "_cache_dir")  # until matplotlib 3.7, 3.10, and since then


def prepare():
    """In the zygote: makes the list if there is none."""
    folder = os.environ.get("MPLCONFIGDIR")
    pattern = os.path.join(glob.escape(folder), "fontlist-*.json") if folder else ""
    if "matplotlib" in sys.modules:
        importlib.import_module("matplotlib.font_manager")
        widen()
    elif folder and not glob.glob(pattern) and importlib.util.find_spec("matplotlib"):
        # In a process of its own: a pool that does not preload it keeps its memory small.
        subprocess.run([sys.executable, "-I", "-B", "-c", "import matplotlib.font_manager"],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    if folder:
        _found[:] = glob.glob(pattern)
        del os.environ["MPLCONFIGDIR"]


def widen():
    """Lets matplotlib, which is imported, find one more font when a text needs it."""
    from matplotlib import font_manager, text

    manager = font_manager.FontManager
    find = getattr(manager, "_find_fonts_by_props", None)  # since 3.6; before, one font was all
    path = next(filter(os.path.exists, _FAR_EAST_FONTS), None)
    if find is None or path is None or hasattr(find, "narrow"):
        return
    set_text = text.Text.set_text
    needed = []

    def find_more(self, *args, **kwargs):
        found = find(self, *args, **kwargs)
        return [*found, path] if needed and path not in found else found

    def set_more(self, s):
        if not needed and s is not None and _FAR_EAST.search(str(s)):
            needed.append(True)
        set_text(self, s)

    find_more.narrow = find
    set_more.__doc__ = set_text.__doc__
    manager._find_fonts_by_props = find_more
    text.Text.set_text = set_more


def move():
    """In a new kernel: what was imported in the zygote looks for the user's own directories."""
    matplotlib = sys.modules.get("matplotlib")
    for name in ("get_configdir", "get_cachedir") if matplotlib else ():
        # They keep their first answer in a closure, and there is no other way to take it back.
        asked = getattr(matplotlib, name)
        kept = dict(zip(asked.__code__.co_freevars, asked.__closure__ or ()))
        if "called" in kept:
            kept["called"].cell_contents = False
    tex = getattr(sys.modules.get("matplotlib.texmanager"), "TexManager", None)
    for name in _TEX_CACHE if tex else ():
        kept = vars(tex).get(name)
        if isinstance(kept, (str, os.PathLike)):
            setattr(tex, name, type(kept)(os.path.join(_cache(), "tex.cache")))


def _cache():
    return os.path.join(os.path.expanduser("~"), ".cache", "matplotlib")


def share():
    """In a new kernel: puts the list where matplotlib looks for it."""
    move()
    if not _found:
        return
    folder = _cache()
    try:
        os.makedirs(folder, exist_ok=True)
        for path in _found:
            os.symlink(path, os.path.join(folder, os.path.basename(path)))
    except OSError:
        pass  # there from the kernel before this one; or no room, then it is made again

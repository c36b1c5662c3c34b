"""matplotlib's list of fonts: seconds to make, so it is made once, in the zygote.

MPLCONFIGDIR is writable there and nowhere else. Kernels and the programs in their box find the
list in the user's own cache directory, where matplotlib looks when MPLCONFIGDIR is not set: a
directory it cannot write would earn a warning and be ignored.

widen(): texts with Chinese, Japanese or Korean characters find a font that has them, whatever the
theme of the chart names. Another font to ask costs a chart half its time again, so it is asked
from the first such text on, and charts without one do not pay. Programs written for other systems
name the fonts of those, such as SimHei: the font that is here goes by these names, too.
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
# The usual names in programs that draw with Chinese, Japanese or Korean text.
_FAR_EAST_NAMES = (
    # Windows
    "SimHei", "SimSun", "NSimSun", "SimKai", "KaiTi", "KaiTi_GB2312", "FangSong",
    "FangSong_GB2312", "LiSu", "YouYuan", "DengXian", "Microsoft YaHei", "Microsoft YaHei UI",
    "Microsoft JhengHei", "MingLiU", "PMingLiU", "DFKai-SB", "MS Gothic", "MS PGothic",
    "MS Mincho", "Yu Gothic", "Yu Mincho", "Meiryo", "Malgun Gothic", "Batang", "Gulim",
    "Arial Unicode MS",
    # macOS
    "STHeiti", "STSong", "STKaiti", "STFangsong", "STXihei", "STZhongsong", "Heiti SC", "Heiti TC",
    "Songti SC", "Kaiti SC", "PingFang SC", "PingFang TC", "PingFang HK", "Hiragino Sans",
    "Hiragino Sans GB", "Apple SD Gothic Neo", "AppleGothic",
    # Linux, Android, and the font that Qwen-Agent brings
    "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Noto Sans CJK SC", "Noto Sans CJK TC",
    "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Serif CJK SC", "Noto Sans SC", "Noto Sans JP",
    "Source Han Sans CN", "Source Han Sans SC", "Source Han Serif CN", "Source Han Serif SC",
    "Droid Sans Fallback", "AR PL UMing CN", "AR PL UKai CN", "NanumGothic",
    "Alibaba PuHuiTi", "Alibaba PuHuiTi 3.0", "AlibabaPuHuiTi-3-45-Light",
)


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
    _name_alike(font_manager, path)
    signs = font_manager.findfont("DejaVu Sans")  # such as the minus of an axis
    set_text = text.Text.set_text
    needed = []

    def find_more(self, *args, **kwargs):
        found = find(self, *args, **kwargs)
        if path in found:
            return [*found, signs] if signs not in found else found
        return [*found, path] if needed else found

    def set_more(self, s):
        if not needed and s is not None and _FAR_EAST.search(str(s)):
            needed.append(True)
        set_text(self, s)

    find_more.narrow = find
    set_more.__doc__ = set_text.__doc__
    manager._find_fonts_by_props = find_more
    text.Text.set_text = set_more


def _name_alike(font_manager, path):
    """Lets the font of this path be found by the names of those that are not here."""
    fonts = font_manager.fontManager.ttflist
    here = {font.name.lower() for font in fonts}
    fonts.extend(font_manager.FontEntry(fname=path, name=name, style="normal", variant="normal",
                                        weight=400, stretch="normal", size="scalable")
                 for name in _FAR_EAST_NAMES if name.lower() not in here)


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

"""Starts as the user's own python3, prepares an interpreter, and is forked ever after.

    python -I -B zygote.py FD [--preload a,b,c] [--learned d,e]

FD is the socket to the warden. What is learned is imported if it can be, unlike what is to be preloaded. What happens here happens once per pool: imports, the IPython
shell, warming up. The less a kernel does after the fork, the sooner it is ready and the fewer
pages it owns.
"""

import os
import sys

# Before anything that may start threads is imported: a fork takes one thread along, and the
# others' locks stay locked for ever.
for _name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "VECLIB", "BLIS"):
    os.environ[_name + "_NUM_THREADS"] = "1"
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"  # without its library, 8 MB with the first figure

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _HOME)

import argparse
import faulthandler
import gc
import importlib
import importlib.util
import signal
import traceback

import _retort

from retort_guest import fresh, lean
from retort_guest.link import link

PACKAGES = {"IPython": ("ipython", "python3-ipython"),
            "matplotlib_inline": ("matplotlib-inline", "python3-matplotlib-inline")}


def missing():
    """The sentence for a Python that lacks what cells need, or None."""
    names = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if not names:
        return None
    return "Python at %s has no %s: install it with 'pip install %s' (Debian: apt install %s)" % (
        sys.executable, " and no ".join(names),
        " ".join(PACKAGES[name][0] for name in names),
        " ".join(PACKAGES[name][1] for name in names))


def first_line(error):
    return traceback.format_exception_only(type(error), error)[-1].strip()


def preload(names):
    """Imports the pool's modules. The sentence for the first that fails, or None."""
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            return "Python at %s cannot import '%s': %s" % (sys.executable, name, first_line(error))
    return None


def prepare(names, wanted):
    """(shell, learned, None) ready for its first cell, or (None, None, why not)."""
    text = missing()
    if text:
        return None, None, text
    lean.load()
    from retort_guest import figures, fonts, kernel, learned, packages, programs, semaphores, shell, streams, warm

    packages.install()
    streams.install()
    kernel.refuse_questions()
    programs.install()
    made = shell.make()
    # Packages look for get_ipython() to know where they are.
    with made.builtin_trap, fresh.noted(), semaphores.promised():
        text = preload(names)
        there = [] if text else learned.load(wanted)
    if text:
        return None, None, text
    warm.allow_old_xlrd()
    figures.install()
    fonts.prepare()
    # What has been imported stays, so looking through it for garbage, again and again, takes long and
    # finds little: a fifth of a start went there. Only what the warming up leaves is looked through.
    gc.freeze()
    gc.enable()
    warm.up(made)
    return made, there, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fd", type=int)
    parser.add_argument("--preload", default="")
    parser.add_argument("--learned", default="")
    args = parser.parse_args()

    hooks = fresh.ForkHooks()
    gc.disable()
    signal.signal(signal.SIGINT, link.on_sigint)
    try:
        made, there, text = prepare(*([name for name in text.split(",") if name]
                                      for text in (args.preload, args.learned)))
    except BaseException as error:
        traceback.print_exc(file=sys.__stderr__)
        sys.__stderr__.flush()
        text = "Python at %s cannot be prepared: %s" % (sys.executable, first_line(error))
    if text:
        _retort.fail(args.fd, text)

    from retort_guest import kernel, warm
    from retort_guest.imports import finder

    sys.argv = [""]
    sys.path.remove(_HOME)
    finder.install()
    sys.path.insert(0, "")
    faulthandler.enable(file=2)
    gc.collect()
    warm.plug()
    _retort.plug()
    gc.freeze()
    is_kernel = _retort.zygote_loop(args.fd, ",".join(there))

    if not is_kernel:
        hooks.release()
        warm.lesson(made, _retort.teach)
        os._exit(0)
    kernel.main(made, hooks)


if __name__ == "__main__":
    main()

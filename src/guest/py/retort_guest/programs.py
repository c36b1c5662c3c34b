"""Programs that cells start: !command, x = !command, %%bash and its kin.

IPython runs them under a pty or in a thread with pipes; here they inherit fds 1 and 2, so
their output keeps its place and costs nothing.
"""

import errno
import os
import signal
import subprocess
import sys

from IPython.core import magic_arguments
from IPython.core.magic import cell_magic, magics_class
from IPython.core.magics import script
from IPython.utils.process import arg_split

from . import packages
from .link import link
from .streams import Stream

GRACE = 0.3  # seconds between asking a program to stop and stopping it

_execute_child = subprocess.Popen._execute_child
_system = os.system


def _settled_child(self, *args, **kwargs):
    link.settle()
    return _execute_child(self, *args, **kwargs)


def _settled_system(command):
    link.settle()
    return _system(command)


def install():
    """Whatever starts a program says first what was printed before it."""
    subprocess.Popen._execute_child = _settled_child
    os.system = _settled_system


def run(command, text=None):
    """Runs a shell line (str) or an argument list to its end; its exit status as of Popen.

    Its output goes where print goes at the moment: the pipes, or what took their place.
    """
    direct = type(sys.stdout) is Stream and type(sys.stderr) is Stream
    shell = isinstance(command, str)
    program = subprocess.Popen(
        command, shell=shell, executable=os.environ.get("SHELL") if shell else None,
        stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
        stdout=None if direct else subprocess.PIPE, stderr=None if direct else subprocess.PIPE,
        start_new_session=True)
    try:
        out, err = program.communicate(text)
    except BaseException:
        _stop(program)
        raise
    if not direct:
        sys.stdout.write(out.decode("utf-8", "replace"))
        sys.stderr.write(err.decode("utf-8", "replace"))
    packages.refresh()
    if shell:
        packages.explain(command, program.returncode)
    return program.returncode


def output(command):
    """What a shell line prints, both streams together."""
    program = subprocess.Popen(
        command, shell=True, executable=os.environ.get("SHELL"), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        return program.communicate()[0].decode("utf-8", "replace")
    except BaseException:
        _stop(program)
        raise


def _stop(program):
    # The whole session of it: a shell's children do not see a signal to the shell.
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(program.pid, number)
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise
        try:
            program.wait(GRACE)
        except subprocess.TimeoutExpired:
            pass


@magics_class
class ScriptMagics(script.ScriptMagics):
    @magic_arguments.magic_arguments()
    @script.script_args
    @cell_magic("script")
    def shebang(self, line, cell):
        """%%script PROGRAM: run the rest of the cell with a program."""
        args, command = self.shebang.parser.parse_known_args(arg_split(line, posix=True))
        if args.bg or args.out or args.err or args.proc:
            return super().shebang(line, cell)
        text = cell if cell.endswith("\n") else cell + "\n"
        try:
            status = run(command, text.encode("utf-8", "replace"))
        except FileNotFoundError:
            print("Couldn't find program: %r" % command[0])
            return None
        if status and getattr(args, "raise_error", False):
            raise subprocess.CalledProcessError(status, text.encode("utf-8", "replace"))
        return None

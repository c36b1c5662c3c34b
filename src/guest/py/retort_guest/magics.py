"""Magics that a notebook's kernel has beside IPython's own, as far as they make sense without a
notebook and a terminal. Where one does not, a sentence says so: a notebook that only wants to be
saved now and then goes on, and what was asked of an editor is an error, as nothing was done."""

import shlex
import sys

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class

from . import programs

NO_NOTEBOOK = "There is no notebook to save here: files and variables are kept with the session."
NO_CONNECTION = "There is no connection file: cells come through the server's own interfaces."
NO_EDITOR = ("There is no editor here: write the file with %%writefile, "
             "and run it with %run.")
NO_WINDOW = "There is no window here: cells come through the server's own interfaces."


@magics_class
class KernelMagics(Magics):
    @line_magic
    def autosave(self, line):
        """%autosave SECONDS: there is no notebook to save."""
        print(NO_NOTEBOOK, file=sys.stderr)

    @line_magic
    def connect_info(self, line):
        """%connect_info: there is nothing to connect to."""
        print(NO_CONNECTION, file=sys.stderr)

    @line_magic
    def clear(self, line):
        """%clear: takes back what the cell has shown."""
        self.shell.display_pub.clear_output()

    @line_magic
    def less(self, line):
        """%less FILE: the text of a file."""
        if not line:
            raise UsageError("Missing filename.")
        try:
            with open(line, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError as error:
            raise UsageError("%s: %s" % (line, error.strerror)) from None
        print(text, end="" if text.endswith("\n") else "\n")

    @line_magic
    def more(self, line):
        """%more FILE: as %less."""
        self.less(line)

    @line_magic
    def man(self, line):
        """%man NAME: a page of the manual, as plain text."""
        if not line:
            raise UsageError("What manual page do you want?")
        # Its settings are in the part of /etc that no session has, and man stops without any.
        programs.run("MANPAGER=cat MANWIDTH=80 man -C /dev/null -P cat %s"
                     % " ".join(map(shlex.quote, line.split())))

    @line_magic
    def edit(self, line):
        """%edit: there is no editor."""
        raise UsageError(NO_EDITOR)

    @line_magic
    def qtconsole(self, line):
        """%qtconsole: there is no window."""
        raise UsageError(NO_WINDOW)

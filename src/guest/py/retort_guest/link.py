"""The connection to the server: messages on the socket, bytes on fds 1 and 2, in one order.

The server reads three channels, so order has to be made. A display waits for its answer;
before bytes go into one pipe, what is still unread in the other (or a message that got no
answer) is settled with MSG_SYNC. Output that is already in order costs one ioctl.

Only a cell may talk: between cells the main thread waits in recv() and would take another
thread's answer, and the server listens to nothing but the pipes. What threads display then
is kept for the next cell. A forked child shares the socket with its parent, so it must never
use it; it has the pipes.
"""

import os
import select
import threading

import _retort

from .wire import (MSG_ACK, MSG_CELL, MSG_DONE, MSG_IDLE, MSG_SYNC, TAG_CELL_NO, TAG_CODE,
                   TAG_ENV, TAG_NAME, TAG_STATUS)

ZYGOTE = 0  # nobody listens: what warming up says is thrown away
IDLE = 1    # between cells
BUSY = 2    # a cell runs
CHILD = 3   # a fork of user code

LATE_MAX = 64  # displays of threads kept between two cells


class Link:
    def __init__(self):
        self.mode = ZYGOTE
        self.id = 0
        self.late = []
        self.unsettled = False  # a message without an answer is under way
        self.running = False    # user code runs: SIGINT is for it
        self.held = False       # the main thread is inside a message: SIGINT has to wait
        self.interrupted = False
        self.idling = False     # between cells, tasks go on
        self.calm = set()       # code of ours in which an exception out of nowhere would do harm
        self.main = 0
        self._new_lock()

    def _new_lock(self):
        # Reentrant: a signal handler or __del__ that prints may run inside a message.
        self.lock = threading.RLock()

    # --- life ---

    def open(self):
        """Called once in a new kernel."""
        self.mode = IDLE
        self.main = threading.get_ident()
        os.register_at_fork(after_in_child=self._on_fork)
        _retort.send(MSG_IDLE, 0, [])

    def next_cell(self, loop):
        """Waits for a cell: (code, number, environment), or None when the server is gone.
        Tasks of the event loop go on meanwhile."""
        while True:
            if loop.has_work():
                self._go_on(loop)
            message = _retort.recv()
            if message is None:
                return None
            kind, ident, body = message
            if kind == MSG_ACK:
                continue  # of a message whose sender was torn away by an exception
            if kind != MSG_CELL:
                raise RuntimeError("message 0x%x is not for a kernel" % kind)
            fields = _retort.fields(body)
            env = [value for tag, value in fields if tag == TAG_ENV]
            fields = dict(fields)
            self.id = ident
            code = fields.get(TAG_CODE, b"").decode("utf-8", "replace")
            if code.startswith("\ufeff"):
                code = code[1:]  # a script may begin with a byte order mark
            return code, int.from_bytes(fields.get(TAG_CELL_NO, b""), "little"), env

    def _is_called(self):
        """Whether a message waits."""
        return bool(select.select([_retort.fileno()], [], [], 0)[0])

    def _go_on(self, loop):
        while True:
            try:
                self.idling = True
                loop.go_on(_retort.fileno())
                self.idling = False
                return
            except BaseException:  # a task's sys.exit(), an interrupt: there is no cell to end
                self.idling = False

    def begin(self):
        with self.lock:
            self.mode = BUSY
            late, self.late = self.late, []
        for kind, fields in late:
            self.ask(kind, fields)

    def end(self, status, modules=b""):
        with self.lock:
            fields = [(TAG_STATUS, status)]
            if modules:
                fields.append((TAG_NAME, modules))
            self._hold(_retort.send, MSG_DONE, self.id, fields)
            self.mode = IDLE
            self.unsettled = self.interrupted = False

    # --- messages ---

    def ask(self, kind, fields):
        """Sends what the server answers, and waits for it. False: nobody to send it to."""
        with self.lock:
            if self.mode == BUSY:
                self._hold(_retort.call, kind, self.id, fields)
                self.unsettled = False
            elif self.mode == IDLE:
                self.late.append((kind, fields))
                del self.late[:-LATE_MAX]
            elif self.mode == CHILD:
                return False
        return True

    def tell(self, kind, fields):
        """Sends what the server does not answer. False: nobody to send it to."""
        with self.lock:
            if self.mode == BUSY:
                self._hold(_retort.send, kind, self.id, fields)
                self.unsettled = True
        return self.mode in (BUSY, ZYGOTE)

    def settle(self):
        """Returns when the server has all that was said so far: before a program starts."""
        if self.mode == BUSY and (self.unsettled or _retort.unread(1) or _retort.unread(2)):
            self.ask(MSG_SYNC, [])

    def write(self, fd, data):
        if self.mode == BUSY and (self.unsettled or _retort.unread(3 - fd) > 0):
            self.ask(MSG_SYNC, [])
        size = len(data)
        done = 0
        while done < size:
            try:
                done += os.write(fd, data[done:] if done else data)
            except BlockingIOError:  # someone made the pipe non-blocking
                select.select([], [fd], [])

    # --- signals and forks ---

    def _hold(self, send, kind, ident, fields):
        # A KeyboardInterrupt in the middle would leave half a message or an answer that the
        # next question takes for its own. Signal handlers run in the main thread alone.
        if threading.get_ident() != self.main or self.held:
            return send(kind, ident, fields)
        self.held = True
        try:
            send(kind, ident, fields)
        finally:
            self.held = False
        if self.running:
            self.check()

    def on_sigint(self, number, frame):
        """The handler of SIGINT, from the zygote on: Ctrl-C in a terminal is not for it."""
        if self.mode == CHILD:
            raise KeyboardInterrupt
        if self.mode == IDLE and self.idling and self._is_called():
            self.interrupted = True  # a task kept the cell from starting: it ends, and so does the cell
            raise KeyboardInterrupt
        if self.mode != BUSY:
            return
        if not self.running or self.held or frame is None or frame.f_code in self.calm:
            self.interrupted = True
        else:
            raise KeyboardInterrupt

    def check(self):
        """Raises the interrupt that came before there was code to interrupt."""
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt

    def _on_fork(self):
        self.mode = CHILD
        self.late = []
        self._new_lock()


link = Link()

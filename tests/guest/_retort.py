"""Stands for the C extension: the same calls, over plain sockets and fork().

zygote_loop() takes requests of three fds (socket, stdout, stderr) from the test and forks a
kernel for each, so the kernels under test are made as the real ones are.
"""

import array
import fcntl
import os
import socket
import struct
import termios

HEAD = struct.Struct("<HHIQ")
FIELD = struct.Struct("<HHI")
BODY_MAX = 48 * 1024
MORE = 1
MSG_ACK = 0x11

_sock = None


def pack(fields):
    out = []
    for tag, value in fields:
        if isinstance(value, int):
            value = struct.pack("<Q", value)
        if not isinstance(value, bytes):
            raise TypeError("field of type %s" % type(value).__name__)
        out += [FIELD.pack(tag, 0, len(value)), value]
    return b"".join(out)


def fields(body):
    out = []
    at = 0
    while at < len(body):
        tag, zero, size = FIELD.unpack_from(body, at)
        at += FIELD.size
        assert zero == 0 and size <= len(body) - at
        out.append((tag, body[at:at + size]))
        at += size
    return out


def put(sock, kind, ident, items):
    body = pack(items)
    while True:
        part, body = body[:BODY_MAX], body[BODY_MAX:]
        sock.sendall(HEAD.pack(kind, MORE if body else 0, len(part), ident) + part)
        if not body:
            return


def get(sock):
    """One whole message, or None at the end."""
    body = b""
    while True:
        packet = sock.recv(HEAD.size + BODY_MAX)
        if not packet:
            return None
        kind, flags, size, ident = HEAD.unpack_from(packet)
        assert size == len(packet) - HEAD.size
        body += packet[HEAD.size:]
        if not flags & MORE:
            return kind, ident, body


def fileno():
    return _sock.fileno()


def recv():
    return get(_sock)


def send(kind, ident, items):
    put(_sock, kind, ident, items)


def call(kind, ident, items):
    send(kind, ident, items)
    kind, _, _ = recv()
    assert kind == MSG_ACK


def unread(fd):
    room = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, room)
    return room[0]


def plug():
    pass


def teach():
    os._exit(0)


def fail(fd, text):
    os.write(fd, b"fail " + text.encode())
    os._exit(1)


def zygote_loop(fd, modules):
    global _sock
    sock = socket.socket(fileno=fd)
    sock.sendall(b" ".join(filter(None, (b"up", modules.encode()))))
    while True:
        message, fds, _, _ = socket.recv_fds(sock, 4096, 3)
        if not message:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            sock.close()
            os.chdir(message)
            os.environ["HOME"] = os.path.dirname(message.decode())
            _sock = socket.socket(fileno=fds[0])
            null = os.open(os.devnull, os.O_RDWR)
            for number, new in enumerate((null, fds[1], fds[2])):
                os.dup2(new, number)
                os.close(new)
            return True
        for new in fds:
            os.close(new)
        sock.sendall(b"%d" % pid)

"""Streams that are silent for longer than the ten seconds in which each must say something."""

import http.client
import socket
import time

from talk import Talk, body


def timed(server, key, request):
    """The events of a stream that is silent for long, and the seconds before its head and between them."""
    begun = time.monotonic()
    with Talk(server, key) as talk, talk.begin(request) as events:
        assert events.status == 200
        times, found = [begun, time.monotonic()], []
        for event in events:
            times.append(time.monotonic())
            found.append(event)
    return found, [after - before for before, after in zip(times, times[1:])]


def dawdled(server):
    """All events of one who does not read for long while more waits for it than a connection holds."""
    steps = [[{"bash": "head -c 100000 /dev/zero | tr '\\0' '\\1'"}] * 9, [{"sleep_ms": 10000}, {"text": "end"}]]
    with Talk(server) as talk:
        talk.client.connection = http.client.HTTPConnection("localhost", server.port)
        talk.client.connection.sock = wire = socket.socket()
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        wire.connect(("127.0.0.1", server.port))
        events = talk.begin(body(steps))
        time.sleep(8.5)
        return list(events)


def begin(threads, house, server):
    """All at a time, and while other tests run."""
    return [
        threads.submit(timed, house, house.key, body([[{"sleep_ms": 11000}, {"fail": {"status": 503}}]])),
        threads.submit(timed, server, None, body([[{"text": "x"}, {"bash": "sleep 11"}]])),
        threads.submit(dawdled, server)]

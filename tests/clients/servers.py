"""The servers that clients meet: they want a key, as one on a network does."""

import contextlib
import re

from support.server import Server


@contextlib.contextmanager
def locked(*flags, **more):
    """A server with scripts in place of a model; server.key is a key that it takes, server.admin an administrator's."""
    one = Server("--model-script", "-", "--memory", "1G", *flags, **more)
    one.key, one.admin = (one.keys("create", "--tenant", "clients", "--quiet", *more).strip() for more in ((), ("--admin",)))
    with one:
        yield one


def is_refusal(text):
    """Whether this is what a client tells of a wrong key."""
    return re.search("401|unauthorized|authorization error|AuthRequired|valid key", text, re.I) is not None

"""tests/serve/test_crash.py on PostgreSQL."""

from serve.test_crash import *  # noqa: F401,F403

"""tests/serve/test_sessions.py on PostgreSQL."""

from serve.test_sessions import *  # noqa: F401,F403

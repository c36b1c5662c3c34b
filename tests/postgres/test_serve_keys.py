"""tests/serve/test_keys.py on PostgreSQL."""

from serve.test_keys import *  # noqa: F401,F403

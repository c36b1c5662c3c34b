"""tests/serve/test_lists.py on PostgreSQL."""

from serve.test_lists import *  # noqa: F401,F403
from serve.test_lists import server  # noqa: F401  (its own, with many rows)

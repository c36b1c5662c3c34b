"""tests/serve/test_files.py on PostgreSQL."""

from serve.test_files import *  # noqa: F401,F403

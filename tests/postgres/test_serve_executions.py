"""tests/serve/test_executions.py on PostgreSQL."""

from serve.test_executions import *  # noqa: F401,F403

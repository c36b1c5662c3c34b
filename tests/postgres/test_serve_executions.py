"""tests/serve/test_executions.py on PostgreSQL."""

from serve import test_executions as tests
from support.again import all_of

globals().update(all_of(tests))

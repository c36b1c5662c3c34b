"""tests/serve/test_sessions.py on PostgreSQL."""

from serve import test_sessions as tests
from support.again import all_of

globals().update(all_of(tests))

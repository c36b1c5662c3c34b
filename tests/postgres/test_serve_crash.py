"""tests/serve/test_crash.py on PostgreSQL."""

from serve import test_crash as tests
from support.again import all_of

globals().update(all_of(tests))

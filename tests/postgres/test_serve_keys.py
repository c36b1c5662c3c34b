"""tests/serve/test_keys.py on PostgreSQL."""

from serve import test_keys as tests
from support.again import all_of

globals().update(all_of(tests))

"""tests/serve/test_lists.py on PostgreSQL."""

from serve import test_lists as tests
from support.again import all_of

globals().update(all_of(tests))

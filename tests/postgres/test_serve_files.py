"""tests/serve/test_files.py on PostgreSQL."""

from serve import test_files as tests
from support.again import all_of

globals().update(all_of(tests))

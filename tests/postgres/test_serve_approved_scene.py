"""tests/serve/test_approved_scene.py on PostgreSQL."""

from serve import test_approved_scene as tests
from support.again import all_of

globals().update(all_of(tests))

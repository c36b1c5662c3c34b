"""tests/serve/test_approved_scene.py on PostgreSQL."""

from serve.test_approved_scene import *  # noqa: F401,F403

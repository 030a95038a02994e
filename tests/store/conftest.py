"""Fixtures of the tests of the store: see stores.py."""
import contextlib

import pytest
from stores import Server, Store, closing


@pytest.fixture
def host(nothing_left):
    """host(old, ...) -> Store, which is closed after the test, and must close well."""
    with contextlib.ExitStack() as stack:
        yield lambda *args, **how: stack.enter_context(closing(Store(*args, **how)))


@pytest.fixture
def serve(nothing_left):
    """serve(torch) -> Server"""
    with contextlib.ExitStack() as stack:
        yield lambda torch: stack.enter_context(closing(Server(torch)))

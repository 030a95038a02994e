"""Fixtures of the tests on systems of other releases."""
import contextlib

import pytest

from roots import CantBeMade, Root


@pytest.fixture
def make_root():
    """make_root(release, packages=()) -> Root, gone after the test."""
    with contextlib.ExitStack() as made:
        def make(release, packages=()):
            try:
                return made.enter_context(Root(release, packages))
            except CantBeMade as why:
                pytest.skip(f"no {release} can be made here: {why}")

        yield make

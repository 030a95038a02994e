"""A fixture that the fault tests share with the attacks."""
import pytest


@pytest.fixture
def measured(request):
    """measured(name, value): for the table at the end of a run that includes the attacks."""
    return lambda name, value: request.node.user_properties.append((name, value))

"""Fixtures of the attacks, and the table of what they have measured."""
import collections

import pytest
from arena import Attack, end_cgroup, make_cgroup


@pytest.fixture
def attack(place, nothing_left):
    """attack(helpers, ...) -> Attack: a job, which is ended with all of its helpers at the end."""
    attacks = []

    def start(*args, **how):
        attacks.append(Attack(place, *args, **how))
        return attacks[-1]

    yield start
    left = [each.close() for each in attacks]
    assert not any(left), f'left behind: {left}'


@pytest.fixture
def measured(request):
    """measured(name, value): for the table at the end."""
    return lambda name, value: request.node.user_properties.append((name, value))


@pytest.fixture
def cgroup(request):
    """A delegated cgroup, empty again at the end; parametrized by the user that it is for."""
    made = make_cgroup(getattr(request, 'param', None))
    if not made:
        pytest.skip('there is no cgroup2 that we can make a cgroup in')
    yield made
    below = end_cgroup(made)
    assert not below, f'cgroups are left: {below}'


def pytest_terminal_summary(terminalreporter):
    worst, said = collections.defaultdict(lambda: [0, 0.0]), []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, 'when', '') != 'call':
                continue
            for name, value in report.user_properties:
                if name.startswith('gone after '):
                    worst[name][0] += 1
                    worst[name][1] = max(worst[name][1], value)
                else:
                    said.append(f'{name}: {value}')
    if worst or said:
        terminalreporter.section('what the attacks have measured')
    for name, (count, value) in sorted(worst.items()):
        terminalreporter.write_line(f'{name:60} {count:4} times, worst {value * 1000:7.1f} ms')
    for line in sorted(said):
        terminalreporter.write_line(line)

"""The campaign's model itself: it must be able to say no."""
from model import MS, Cause, expect, signalled_cause, worker_cause


def test_the_first_of_two_workers_counts():
    first, second = Cause(0, 7, 0, own=True), Cause(6 * MS, 8, 1, own=True)
    assert expect([second, first], exact=True).statuses == {7}
    assert expect([second, first], exact=True).ranks == {0}


def test_closer_ones_are_both_allowed():
    first, second = Cause(0, 7, 0, own=True), Cause(4 * MS, 8, 1, own=True)
    assert expect([first, second], exact=True).statuses == {7, 8}


def test_what_a_clock_outside_tells_is_less_sharp():
    worker, outside = Cause(0, 7, 0, own=True), Cause(50 * MS, 143)
    assert expect([worker, outside], exact=True).statuses == {7, 143}
    assert expect([worker, Cause(200 * MS, 143)], exact=True).statuses == {7}


def test_a_killed_guard_counts_whenever_it_comes():
    assert expect([Cause(0, 7, 0), Cause(900 * MS, -9, kills=True)], True).statuses == {7, -9}


def test_nothing_that_is_sure_leaves_success():
    assert expect([], True).statuses == {0}
    assert expect([Cause(0, 137, 0, sure=False)], True).statuses == {0, 137}


def test_a_workers_own_end():
    assert worker_cause('exit:0@5', 1, 5) is None
    assert worker_cause('exit:3@5', 1, 5) == Cause(5, 3, 1, own=True)
    assert worker_cause('signal:11@5', 1, 5) == Cause(5, 139, 1, own=True)


def test_a_signal_from_outside():
    assert signalled_cause(15, 0, 1, 'ignore', False) is None
    assert signalled_cause(15, 0, 1, 'exit:4', True).status == 4
    assert signalled_cause(11, 0, 1, '', True) is None
    assert signalled_cause(9, 0, 1, 'ignore', True).status == 137

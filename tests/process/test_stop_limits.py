"""Who goes on beating but says nothing more, once the job is to stop: nobody waits for it without end.
A relay takes its words away, so to the others it is a launcher that hangs, or none."""
import pytest

from relay import Lost, Relay
from together import Cluster, errors, warnings

STOP, ENDED = 22, 26
LIMIT_S = 120  # the limits themselves are above 30 s

# fails where it is told to (if one clings to life, once that does), or clings, or ends on TERM
WORKER = '''
import os, signal, sys, time
rank = os.environ['RANK']
if rank == os.environ['FAILS']:
    if 'CLUNG' in os.environ:
        open(os.environ['CLUNG'], 'rb', 0).read(1)
    sys.exit(7)
signal.signal(signal.SIGTERM, signal.SIG_IGN if rank == os.environ['CLINGS'] else signal.SIG_DFL)
if rank == os.environ['CLINGS']:
    open(os.environ['CLUNG'], 'wb', 0).write(b'x')
time.sleep(600)
'''


def begin(start, place, nodes, fails, clings=None):
    clung = {'CLUNG': place.fifo('clung').path} if clings is not None else {}
    return Cluster(start, nodes, [place.write('worker.py', WORKER)],
                   {'FAILS': str(fails), 'CLINGS': str(clings), **clung},
                   lambda node: (['--node-timeout=8', '--shutdown-timeout=1',
                                  f'--report={place.path}/report.%n'], {}), begin=False)


@pytest.mark.long
def test_a_node_that_does_not_tell_of_its_end(start, place):
    cluster = begin(start, place, 3, fails=0)
    cluster.begin(0)
    with Relay(cluster.port + 1, up=Lost(ENDED)) as relay:
        cluster.begin(1, [f'--control-port={relay.port}'])
        cluster.begin(2)
        results = [cluster.jobs[node].end(LIMIT_S) for node in (0, 2)]
    assert relay.changed == 1
    for result in results:
        assert result.rc == 7 and 'root cause: rank 0 ' in errors(result)[0], result
    [line] = [line for line in warnings(results[0]) if 'is considered lost' in line]
    assert ': node 1, ' in line and line.endswith(
        'it still sends heartbeats, but did not report within 29 s of being told to stop that its workers have ended')
    assert 'node 1 ' in results[0].err.split(line)[1], 'and so says the report'
    assert cluster.jobs[1].end().rc == 7


@pytest.mark.long
def test_a_hub_that_does_not_say_what_follows(start, place):
    """It waits for this node, and has much patience; nor did its order to stop come."""
    cluster = begin(start, place, 2, fails=1)
    cluster.begin(0, ['--shutdown-timeout=600'])
    with Relay(cluster.port + 1, up=Lost(ENDED), down=Lost(STOP)) as relay:
        cluster.begin(1, [f'--control-port={relay.port}'])
        result = cluster.jobs[1].end(LIMIT_S)
    assert relay.changed == 2 and result.rc == 7, result
    assert 'root cause: rank 1 ' in errors(result)[0]
    [line] = [line for line in warnings(result) if 'lost contact' in line]
    assert "it still sends heartbeats, but did not say within 37 s of the end of this node's workers what follows; " \
        "its launcher hangs, or another program has its port" in line
    result = cluster.jobs.pop(0).end()
    assert result.rc == 7 and 'root cause: rank 1 ' in errors(result)[0], result


def test_the_orders_grace_is_the_most(start, place):
    """Also of workers that are stopping already, as one beside them has failed."""
    cluster = begin(start, place, 2, fails=1, clings=2)
    cluster.begin(0)
    cluster.begin(1, ['--shutdown-timeout=600', '--nproc_per_node=2'])
    for result in cluster.end():
        assert result.rc == 7 and 'root cause: rank 1 ' in errors(result)[0], result

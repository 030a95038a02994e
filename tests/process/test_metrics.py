"""Issue 16: --metrics-file and --metrics-listen, what Prometheus reads of a job."""
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from harness import LIMIT, is_idle, let_pass, native, settled, supervisor_of, until
from together import Cluster, free_ports, listens

LONG = '--shutdown-timeout=600'  # so that nothing but what is tested ends a worker
SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\d+(?:\.\d+)?)\n')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
PROMTOOL = shutil.which('promtool')
SOURCE = pathlib.Path(__file__).resolve().parents[2]
MAN_PAGE = SOURCE / 'config' / 'docs' / 'launchd.1.in'
DASHBOARD = SOURCE / 'examples' / 'grafana' / 'launchd.json'


class Page:
    """A page of metrics, strictly parsed: every family has its HELP and TYPE and stands once."""

    def __init__(self, text):
        self.text = text
        self.types, self.values, self.labels = {}, {}, {}
        assert text.endswith('\n')
        for block in text.split('# HELP ')[1:]:
            match = re.match(r'(launchd_[a-z_]+) [A-Z][^\n]*[.;1]\n# TYPE \1 (counter|gauge)\n', block)
            assert match, block
            name = match[1]
            assert name not in self.types
            self.types[name] = match[2]
            rest = block[match.end():]
            while rest:
                sample = SAMPLE.match(rest)
                assert sample and sample[1] == name, rest
                labels = LABEL.findall(sample[2])
                self.labels[name] = dict(labels[:2])
                key = (name, *(value for _, value in labels[2:]))
                assert key not in self.values and len(dict(labels)) == len(labels)
                self.values[key] = float(sample[3])
                rest = rest[sample.end():]
            assert any(key[0] == name for key in self.values), name

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        return self.values[(f'launchd_{key[0]}', *key[1:])]

    def __contains__(self, name):
        return f'launchd_{name}' in self.types

    def of(self, name):
        """Values that aren't 0, by the label."""
        return {key[1]: value for key, value in self.values.items()
                if key[0] == f'launchd_{name}' and value != 0}


def read(path):
    return Page(pathlib.Path(path).read_text())


def reads(path, holds):
    """Waits until the page is so."""
    def look():
        page = read(path) if path.exists() else None
        return page if page and holds(page) else None
    return until(look, lambda: path.read_text() if path.exists() else f'{path} to be there')


@pytest.fixture
def prom(place):
    return place.path / 'job.prom'


def test_during_and_after(start, prom, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    before = time.time()
    job = start([f'--metrics-file={prom}', '--rdzv-id=r"1\\', *native('ending', '--nproc_per_node=3')],
                {'TELL': ready.path, 'GO': go.path, 'END': 'exit:0'})
    ready.expect('ready', 3)
    page = reads(prom, lambda page: page.of('workers') == {'running': 3})
    assert page.labels['launchd_workers'] == {'job_name': r'r\"1\\', 'node_rank': '0'}
    assert before - 1 <= page['job_start_time_seconds'] <= page['attempt_start_time_seconds'] <= \
        time.time() + 1
    assert page['attempts_total'] == 1 and page['restarts_total'] == 0
    assert page.of('nodes') == {'joined': 1}
    assert 'job_exit_code' not in page and 'job_end_time_seconds' not in page
    go.go()
    reads(prom, lambda page: page.of('workers') == {'running': 2, 'succeeded': 1})
    go.go(2)
    assert job.end().rc == 0
    page = read(prom)
    assert page.of('workers') == {'succeeded': 3}
    assert page.of('attempt_ends_total') == {'success': 1}
    assert page.of('worker_failures_total') == {}
    assert page['job_exit_code'] == 0
    assert page['job_start_time_seconds'] <= page['job_end_time_seconds'] <= time.time() + 1
    assert [path.name for path in prom.parent.glob('job.prom*')] == ['job.prom']


def test_restarts_and_what_they_cost(launch, prom):
    started = time.monotonic()
    result = launch([f'--metrics-file={prom}', '--max-restarts=2', '--restart-delay=0.3', LONG,
                     *native('ending', '--nproc_per_node=3')], {'END_1': 'exit:3'})
    took = time.monotonic() - started
    assert result.rc == 3
    page = read(prom)
    assert (page['attempts_total'], page['restarts_total'], page['job_max_restarts']) == (3, 2, 2)
    assert page.of('attempt_ends_total') == {'exit': 3}
    assert page.of('worker_failures_total') == {'exit': 3}
    assert page.of('workers') == {'failed': 1, 'stopped': 2}
    assert page['job_exit_code'] == 3
    # delays of 0.3 and 0.6 s
    assert 0.9 <= page['restart_downtime_seconds_total'] <= took
    assert 0 < page['failed_attempts_seconds_total'] <= took - 0.9


@pytest.mark.parametrize('end, cause, code', [('exit:9', 'exit', 9), ('signal:11', 'signal', 139)])
def test_failures_by_cause(launch, prom, end, cause, code):
    assert launch([f'--metrics-file={prom}', *native('ending')], {'END': end}).rc == code
    page = read(prom)
    assert page.of('worker_failures_total') == page.of('attempt_ends_total') == {cause: 1}
    assert page['job_exit_code'] == code


def test_a_worker_that_cannot_be_started(launch, prom, place):
    text = place.path / 'text'
    text.write_bytes(b'\x7fELF' + bytes(60))
    text.chmod(0o755)
    result = launch([f'--metrics-file={prom}', '--nproc_per_node=2', '--no_python', '--use_env',
                     str(text)])
    assert result.rc == 126
    page = read(prom)
    assert page.of('worker_failures_total') == {'not_startable': 1}
    assert page.of('workers') == {'failed': 1, 'stopped': 1}


def test_requests(start, launch, prom, place):
    ready = place.fifo('ready')
    job = start([f'--metrics-file={prom}', *native('report_signals')],
                {'TELL': ready.path, 'STAY': '1'})
    ready.expect('ready', 1)
    job.signal(signal.SIGTERM)
    ready.expect('SIGTERM', 1)
    reads(prom, lambda page: page.of('workers') == {'stopping': 1})
    job.signal(signal.SIGTERM)
    job.signal(signal.SIGTERM)
    job.end()
    assert read(prom).of('attempt_ends_total') == {'stop_signal': 1}
    assert launch([f'--metrics-file={prom}', '--max-runtime=0.1', *native('ending')]).rc == 124
    assert read(prom).of('attempt_ends_total') == {'max_runtime': 1}


def test_bytes_of_output(launch, prom, place):
    say = 'for i in 1 2 3; do echo 1234567; done; echo 123 >&2'
    result = launch([f'--metrics-file={prom}', '--log-dir=logs', '-t', '3', '--nproc_per_node=2',
                     '--no_python', '--use_env', 'sh', '-c', say])
    assert result.rc == 0
    page = read(prom)
    assert page.of('output_bytes_total') == page.of('log_bytes_total') == {'stdout': 48, 'stderr': 8}
    assert page.of('output_dropped_lines_total') == {}
    # those that workers write themselves
    result = launch([f'--metrics-file={prom}', '--log-dir=logs', '-r', '1', '--nproc_per_node=2',
                     '--no_python', '--use_env', 'sh', '-c', say])
    assert read(prom).of('output_bytes_total') == {'stderr': 8}
    assert read(prom).of('log_bytes_total') == {'stdout': 48}


def test_lines_that_were_dropped(start, prom, place):
    begin, end = os.pipe()
    try:
        job = start([f'--metrics-file={prom}', '--console-overflow=drop', '--no_python', '--use_env',
                     'sh', '-c', 'seq 1 200000'], out=end)
        os.close(end)
        end = -1
        page = reads(prom, lambda page: page.of('workers') == {'succeeded': 1})
        shown = b''
        while piece := os.read(begin, 65536):
            shown += piece
        assert job.end().rc == 0
    finally:
        os.close(begin)
        if end >= 0:
            os.close(end)
    page = read(prom)
    assert page['output_bytes_total', 'stdout'] == 1288895
    assert page['output_dropped_lines_total', 'stdout'] == 200000 - shown.count(b'\n') > 0


def test_a_reader_never_sees_half_a_page(start, prom, place):
    """One that reads all the time while the job restarts as fast as it can."""
    report = place.path / 'report.json'
    job = start([f'--metrics-file={prom}', f'--report={report}', '--max-restarts=1000',
                 '--restart-delay=0.5', *native('ending', '--nproc_per_node=2')], {'END_1': 'exit:1'})
    seen, count = set(), 0
    while count <= 100 or len(seen) < 4:
        assert job.process.poll() is None
        if prom.exists():
            page = read(prom)  # which takes no other
            count += 1
            seen.add(page['attempts_total'])
    job.signal(signal.SIGTERM)
    assert job.end().rc in (1, 143)  # whether it comes between two attempts or not
    attempts = json.loads(report.read_text())['goodput']['attempts']
    assert read(prom)['attempts_total'] == attempts >= max(seen)


def test_nothing_wakes_up(start, prom, place):
    ready = place.fifo('ready')
    job = start([f'--metrics-file={prom}', *native('ending')], {'TELL': ready.path})
    ready.expect('ready', 1)
    reads(prom, lambda page: page.of('workers') == {'running': 1})
    supervisor = supervisor_of(job.pid)
    until(lambda: is_idle(supervisor), 'the supervisor to sleep')

    def switches():
        total = 0
        for task in pathlib.Path(f'/proc/{supervisor}/task').iterdir():
            total += sum(int(number) for number in re.findall(
                r'ctxt_switches:\s*(\d+)', (task / 'status').read_text()))
        return total
    before = settled(switches, 0.5)
    let_pass(2.5, 'nothing wakes up')
    assert switches() == before
    job.signal(signal.SIGTERM)
    job.end()


def test_a_file_for_each_node(start, place):
    ready = place.fifo('ready')
    go = place.fifo('go')
    cluster = Cluster(start, 3, [f'--metrics-file={place.path}/%n.prom', LONG, '--max-restarts=1',
                                 '--restart-delay=0.2', *native('ending')],
                      {'TELL': ready.path, 'GO_1': go.path, 'END_1': 'exit:5'})
    ready.expect('ready', 3)
    files = [place.path / f'{node}.prom' for node in range(3)]
    page = reads(files[0], lambda page: page.of('nodes') == {'joined': 3} and
                 len(page.of('beat_round_trip_seconds')) == 2)
    assert set(page.of('beat_round_trip_seconds')) == {'1', '2'}
    assert all(0 < trip < 60 for trip in page.of('beat_round_trip_seconds').values())
    page = reads(files[2], lambda page: page.of('workers') == {'running': 1} and
                 set(page.of('beat_round_trip_seconds')) == {'0'})
    assert 'nodes' not in page
    assert page['job_nodes'] == page['job_workers'] == 3
    go.go()
    ready.expect('ready', 3)
    go.go()
    assert [result.rc for result in cluster.end()] == [5, 5, 5]
    for node, path in enumerate(files):
        page = read(path)
        assert page.labels['launchd_workers']['node_rank'] == str(node)
        assert (page['attempts_total'], page['restarts_total'], page['job_exit_code']) == (2, 1, 5)
        assert page.of('attempt_ends_total') == {'exit': 2}
        assert page.of('worker_failures_total') == ({'exit': 2} if node == 1 else {})
        assert page['restart_downtime_seconds_total'] >= 0.2
    assert read(files[0]).of('nodes') == {'ended': 3}


def test_a_lost_node(start, place):
    ready = place.fifo('ready')
    cluster = Cluster(start, 2, [f'--metrics-file={place.path}/%n.prom', LONG, *native('ending')],
                      {'TELL': ready.path})
    ready.expect('ready', 2)
    os.kill(supervisor_of(cluster.jobs[1].pid), signal.SIGKILL)
    place.orphans_expected = place.launcher_killed = True
    assert cluster.end()[0].rc == 137
    page = read(place.path / '0.prom')
    assert page.of('nodes') == {'ended': 1, 'lost': 1}
    assert page.of('attempt_ends_total') == {'node_lost': 1}


def test_mode_and_umask(launch, prom):
    prom.with_suffix('.real').touch(0o600)
    prom.symlink_to('job.real')
    result = launch([f'--metrics-file={prom}', *native('ending')], {'END': 'exit:0'},
                    before=lambda: os.umask(0o077))
    assert result.rc == 0
    assert prom.is_symlink() and prom.stat().st_mode & 0o777 == 0o644


def test_a_file_that_cannot_be(launch, refused, place):
    refused(['--metrics-file=/nowhere/a.prom', *native('ending')], '--metrics-file',
            'its directory /nowhere')
    refused([f'--metrics-file={place.path}', *native('ending')], '--metrics-file', 'is a directory')
    refused(['--metrics-file=%x.prom', *native('ending')], '--metrics-file', '%x')
    result = launch(['--metrics-file=/dev/full', '--max-restarts=1', '--restart-delay=1.5',
                     *native('ending')], {'END': 'exit:1', 'OMP_NUM_THREADS': '1'})
    assert result.rc == 1
    assert result.err.count('launchd: warning: --metrics-file: /dev/full can\'t be written: '
                            'No space left on device\n') == 1


@pytest.fixture
def everything(start, place):
    """Every family that there is, each with its labels: node rank 0's, while its job runs and when it
    has ended."""
    ready = place.fifo('ready')
    cluster = Cluster(start, 2, [f'--metrics-file={place.path}/%n.prom', '--store=agent',
                                 *native('ending')], {'TELL': ready.path})
    ready.expect('ready', 2)
    file = place.path / '0.prom'
    pages = [reads(file, lambda page: page.of('workers') == {'running': 1})]
    cluster.jobs[0].signal(signal.SIGTERM)
    cluster.end()
    pages.append(read(file))
    found = {}
    for name, labels in re.findall(r'^(launchd_\w+)\{(.*)\} ', ''.join(page.text for page in pages),
                                   re.M):
        for label, value in LABEL.findall(labels):
            found.setdefault(name, {}).setdefault(label, set()).add(value)
    return found


def test_the_man_page_lists_every_metric(everything):
    """And no other, nor does it forget a value of state, cause or stream."""
    page = MAN_PAGE.read_text()
    documented = re.findall(r'^\.It (launchd_\w+)', page, re.M)
    assert len(documented) == len(set(documented))
    assert set(documented) == set(everything)
    section = page[page.index('.Sh METRICS'):page.index('.Sh EXIT STATUS')]
    for labels in everything.values():
        for label in labels.keys() & {'state', 'cause', 'stream'}:
            assert [value for value in labels[label] if not re.search(rf'\b{value}\b', section)] == []


def expressions_of(dashboard):
    for panel in dashboard['panels']:
        for target in panel['targets']:
            yield target['expr']
    for note in dashboard['annotations']['list']:
        yield note['expr']
    for variable in dashboard['templating']['list']:
        if variable['type'] == 'query':
            yield variable['query']['query']


def test_the_dashboard_names_what_there_is(everything):
    dashboard = json.loads(DASHBOARD.read_text())
    ids = [panel['id'] for panel in dashboard['panels']]
    assert len(ids) == len(set(ids)) and min(ids) > 0
    spots = [panel['gridPos'] for panel in dashboard['panels']]
    assert all(spot['x'] + spot['w'] <= 24 for spot in spots)
    assert not [(one, other) for one in spots for other in spots if one is not other and
                one['x'] < other['x'] + other['w'] and other['x'] < one['x'] + one['w'] and
                one['y'] < other['y'] + other['h'] and other['y'] < one['y'] + one['h']]
    variables = {variable['name'] for variable in dashboard['templating']['list']}
    named = set()
    for text in expressions_of(dashboard):
        assert set(re.findall(r'\$(\w+)', text)) <= variables | {'__rate_interval', '__interval'}
        for name, _, matchers in re.findall(r'(launchd_\w+)(\{([^}]*)\})?', text):
            named.add(name)
            for label, value in re.findall(r'(\w+)=~?"([^"]*)"', matchers):
                assert value.startswith('$') or value in everything[name][label], text
        for labels in re.findall(r'\bby \((\w+)\)', text):
            name = re.search(r'launchd_\w+', text)[0]
            assert labels in everything[name], text
    assert named <= set(everything)
    assert {'launchd_workers', 'launchd_restarts_total', 'launchd_worker_failures_total',
            'launchd_restart_downtime_seconds_total', 'launchd_log_bytes_total',
            'launchd_beat_round_trip_seconds'} <= named
    for panel in dashboard['panels']:
        for legend, target in ((target['legendFormat'], target) for target in panel['targets']):
            name = re.search(r'launchd_\w+', target['expr'])[0]
            assert set(re.findall(r'{{(\w+)}}', legend)) <= everything[name].keys() | {'version'}


@pytest.mark.skipif(not PROMTOOL, reason='no promtool here')
def test_promtool_understands_the_dashboard(place):
    rules = []
    for text in expressions_of(json.loads(DASHBOARD.read_text())):
        if not text.startswith('label_values('):
            text = re.sub(r'\$__(rate_)?interval', '5m', text)
            rules.append({'record': f'r{len(rules)}', 'expr': re.sub(r'\$\w+', 'x', text)})
    file = place.write('rules.yml', json.dumps({'groups': [{'name': 'g', 'rules': rules}]}))
    result = subprocess.run([PROMTOOL, 'check', 'rules', file], text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f'{len(rules)} rules found' in result.stdout


@pytest.mark.parametrize('options, name', [
    ([], 'job'), (['--rdzv-id=seven'], 'seven'), (['--standalone'], 'job'),
    (['--config=dir/train.conf', '--rdzv-id=seven'], 'train'), (['--config=train.ini'], 'train.ini'),
    (['--config=.conf'], '.conf'), (['--config=a.conf.b'], 'a.conf.b'),
    (['--job-name=mine', '--config=train.conf', '--rdzv-id=seven'], 'mine')])
def test_the_job_has_a_name(launch, prom, place, options, name):
    for option in options:
        if option.startswith('--config='):
            place.write(option.partition('=')[2], '[launchd]\n')
    assert launch([f'--metrics-file={prom}', *options, *native('ending')], {'END': 'exit:0'}).rc == 0
    assert read(prom).labels['launchd_workers']['job_name'] == name


# --- --metrics-listen

def get(port, path='/metrics', host='127.0.0.1', method='GET', limit=LIMIT):
    request = urllib.request.Request(f'http://{host}:{port}{path}', method=method)
    with urllib.request.urlopen(request, timeout=limit) as answer:
        return answer.read().decode(), answer


def many_files(crowd):
    """As many as this process may have; given back by crowd."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    crowd.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)


@pytest.fixture
def listening(start, place):
    """A job whose worker runs, and its port."""
    def begin(*options, host='127.0.0.1'):
        ready = place.fifo('ready')
        port = free_ports()
        job = start([f'--metrics-listen={host}:{port}', *options, *native('ending')],
                    {'TELL': ready.path})
        ready.expect('ready', 1)
        return job, port
    return begin


def end(job):
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143


def test_asking(listening, launch):
    job, port = listening('--nproc_per_node=1')
    text, answer = get(port)
    assert answer.headers['Content-Type'] == 'text/plain; version=0.0.4; charset=utf-8'
    page = Page(text)
    assert page.of('workers') == {'running': 1} and page['attempts_total'] == 1
    assert Page(get(port, '/metrics?name[]=x')[0])['job_workers'] == 1
    text, answer = get(port, method='HEAD')
    assert text == '' and int(answer.headers['Content-Length']) > 1000
    for path, method, code in [('/', 'GET', 404), ('/metrics', 'POST', 405), ('/x', 'HEAD', 404)]:
        with pytest.raises(urllib.error.HTTPError) as refusal:
            get(port, path, method=method)
        assert refusal.value.code == code
        refusal.value.close()
    end(job)
    assert not listens(port)


def test_the_values_are_those_of_now(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    port = free_ports()
    job = start([f'--metrics-listen=127.0.0.1:{port}', '--max-restarts=1', '--restart-delay=300',
                 *native('ending', '--nproc_per_node=2')],
                {'TELL': ready.path, 'GO_1': go.path, 'END_1': 'exit:4'})
    ready.expect('ready', 2)
    assert Page(get(port)[0]).of('workers') == {'running': 2}
    go.go()
    until(lambda: Page(get(port)[0]).of('workers') == {'failed': 1, 'stopped': 1}, 'the attempt')
    page = Page(get(port)[0])
    assert page.of('worker_failures_total') == {'exit': 1}
    assert page['restarts_total'] == 0 and 'job_exit_code' not in page  # it is waiting
    end(job)


def test_all_addresses(listening):
    job, port = listening(host='[::]')
    assert Page(get(port, host='127.0.0.1')[0]).of('workers') == {'running': 1}
    if socket.has_ipv6 and pathlib.Path('/proc/net/if_inet6').exists():
        assert Page(get(port, host='[::1]')[0]).of('workers') == {'running': 1}
    end(job)


def test_no_rank_is_known_before_the_nodes_have_met(start):
    port = free_ports()
    job = start([f'--metrics-listen=127.0.0.1:{port}', '--control=auto', '--nnodes=2', '--node_rank=0',
                 '--master_addr=127.0.0.1', f'--master_port={free_ports()}', *native('ending')],
                {'LAUNCHD_CONTROL': 'auto'})
    until(lambda: listens(port), 'the port')
    page = until(lambda: Page(get(port)[0]), 'the page')
    assert page.labels['launchd_build_info'] == {'job_name': 'job', 'node_rank': ''}
    assert page.of('nodes') == {'awaited': 1, 'joined': 1}
    assert 'workers' not in page
    job.signal(signal.SIGTERM)
    job.end()


def test_slow_and_silent_clients(listening):
    """More than there is room for keep nobody out, nor the loop awake, and the job ends in time."""
    job, port = listening()
    silent = [socket.create_connection(('127.0.0.1', port)) for _ in range(70)]
    try:
        silent[0].sendall(b'GET /metr')
        assert Page(get(port)[0]).of('workers') == {'running': 1}
        for client in silent:
            client.settimeout(LIMIT)
            with contextlib.suppress(ConnectionResetError):  # its half a request was not read
                assert client.recv(100) == b''  # dropped, the last ones after 10 s
        end(job)
    finally:
        for client in silent:
            client.close()


@pytest.mark.parametrize('sends', [b'', b'GET /metr', b'GET /metrics HTTP/1.1\r\n\r\n'],
                         ids=['silent', 'half a request', 'never reads'])
def test_a_scrape_beside_2000_slow_connections(listening, sends):
    """Each of them may stay for 10 s: none of that is waited for."""
    job, port = listening()
    with contextlib.ExitStack() as crowd:
        many_files(crowd)
        for _ in range(2000):
            slow = crowd.enter_context(socket.socket())
            slow.setblocking(False)
            slow.connect_ex(('127.0.0.1', port))
            with contextlib.suppress(OSError):  # BlockingIOError: the connection comes later
                slow.send(sends)
        assert Page(get(port, limit=3)[0]).of('workers') == {'running': 1}
    end(job)


def test_many_clients(listening):
    job, port = listening()
    pages, count = [], 64

    def ask():
        pages.append(Page(get(port)[0]))
    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert len(pages) == count
    assert {page['workers', 'running'] for page in pages} == {1}
    end(job)


def test_hostile_bytes(listening):
    job, port = listening()
    for request in (b'\0' * 100 + b'\r\n\r\n', b'\x16\x03\x01\n\n', b'x' * 300000, b'\r\n\r\n',
                    b'GET /' + b'y' * 100000 + b' HTTP/1.1\r\n\r\n'):
        with socket.create_connection(('127.0.0.1', port)) as client:
            client.settimeout(LIMIT)
            client.sendall(request)
            answer = b''
            while piece := client.recv(65536):
                answer += piece
            assert re.match(rb'HTTP/1.1 4(00|31) ', answer)
    assert Page(get(port)[0]).of('workers') == {'running': 1}
    end(job)


def test_a_port_that_is_taken(refused, listening, place):
    job, port = listening()
    refused([f'--metrics-listen=127.0.0.1:{port}', *native('ending')], '--metrics-listen',
            f'127.0.0.1:{port}', 'another launchd', env={'OMP_NUM_THREADS': '1'})
    end(job)
    refused(['--metrics-listen=192.0.2.1:9400', *native('ending')], '--metrics-listen',
            'Cannot assign requested address', env={'OMP_NUM_THREADS': '1'})


@pytest.mark.parametrize('text', ['9400', ':9400', '127.0.0.1', '127.0.0.1:', '127.0.0.1:0',
                                  '127.0.0.1:65536', 'localhost:9400', '::1:9400', '[::1]',
                                  '[127.0.0.1]:9400', '[]:9400', '127.0.0.1:9400x'])
def test_no_address(refused, text):
    refused([f'--metrics-listen={text}', *native('ending')], '--metrics-listen', f'"{text}"',
            '127.0.0.1:9400')


def test_a_server_that_nobody_asks_sleeps(listening):
    job, port = listening()
    get(port)
    supervisor = supervisor_of(job.pid)
    until(lambda: is_idle(supervisor), 'the supervisor to sleep')

    def switches():
        return re.findall(r'ctxt_switches:\s*(\d+)',
                          pathlib.Path(f'/proc/{supervisor}/status').read_text())
    before = settled(switches, 1.5)  # the connection has ended by then
    let_pass(2.5, 'nothing wakes up')
    assert switches() == before
    end(job)


# --- other readers

def pages(launch, prom):
    launch([f'--metrics-file={prom}', '--rdzv-id=a"b\\c', '--max-restarts=1',
            *native('ending', '--nproc_per_node=2')], {'END_0': 'exit:1'})
    return prom.read_text()


@pytest.mark.skipif(not PROMTOOL, reason='no promtool here')
def test_promtool_finds_nothing(launch, prom):
    result = subprocess.run([PROMTOOL, 'check', 'metrics'], input=pages(launch, prom), text=True,
                            capture_output=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, '', '')


def test_prometheus_client_reads_it(launch, prom):
    parser = pytest.importorskip('prometheus_client.parser', reason='no prometheus_client here')
    families = {family.name: family
                for family in parser.text_string_to_metric_families(pages(launch, prom))}
    [exit_code] = families['launchd_job_exit_code'].samples
    assert exit_code.value == 1 and exit_code.labels == {'job_name': 'a"b\\c', 'node_rank': '0'}
    assert families['launchd_restarts'].type == 'counter'
    assert {sample.labels['state'] for sample in families['launchd_workers'].samples} == \
        {'pending', 'running', 'stopping', 'succeeded', 'failed', 'stopped'}

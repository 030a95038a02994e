"""Every method of torch's TCPStore against the server at PORT: prints what each call returned or
raised, as JSON."""
import datetime
import json
import re
import sys
import threading
import time

import torch.distributed as dist

SHORT = datetime.timedelta(milliseconds=300)
LONG = datetime.timedelta(seconds=60)
said = []


def client():
    return dist.TCPStore('127.0.0.1', int(sys.argv[1]), is_master=False, wait_for_workers=False,
                         timeout=LONG)


def shown(value):
    return value.decode('latin-1') if isinstance(value, bytes) else \
        [shown(v) for v in value] if isinstance(value, list) else value


def call(store, method, *args):
    """Calls it and notes how that went. Messages may name ports and have stacks of C++."""
    try:
        result = shown(getattr(store, method)(*args))
    except Exception as e:  # what it is, is the result
        text = re.sub(r'\d{4,}', 'N', str(e).splitlines()[0].split('Exception raised')[0])
        result = [type(e).__name__, text]
    said.append([method, len(str(args)), result])
    return result


class Later:
    """A call in a thread of its own, on a connection of its own."""

    def __init__(self, method, *args):
        self.store, self.result = client(), None
        self.thread = threading.Thread(target=self.run, args=(method, args))
        self.thread.start()

    def run(self, method, args):
        try:
            self.result = shown(getattr(self.store, method)(*args))
        except Exception as e:
            self.result = type(e).__name__

    def waits(self, seconds=0.2):
        self.thread.join(seconds)
        said.append(['waits', self.thread.is_alive()])

    def ends(self):
        self.thread.join(60)
        said.append(['ends', self.thread.is_alive(), self.result])


def basics(store, other):
    call(store, 'num_keys')
    for value in ('', 'value', 'x' * 1500, 'x' * 100000, 'é\n\0z', 'y'):
        call(store, 'set', 'key', value)
        call(other, 'get', 'key')
    call(store, 'set', 'long' * 1000, 'v')
    call(other, 'get', 'long' * 1000)
    for amount in (1, 41, -100, 0, 2 ** 62):
        call(store, 'add', 'count', amount)
    call(store, 'get', 'count')
    call(store, 'set', 'count', '7')
    call(store, 'add', 'count', 1)
    call(store, 'num_keys')
    call(store, 'delete_key', 'key')
    call(store, 'delete_key', 'key')
    call(store, 'num_keys')
    call(store, 'compare_set', 'fresh', '', 'first')
    call(store, 'compare_set', 'fresh', 'other', 'second')
    call(store, 'compare_set', 'fresh', 'first', 'second')
    call(store, 'compare_set', 'missing', 'other', 'second')
    call(store, 'get', 'fresh')
    call(store, 'num_keys')


def waiting(store):
    store.set_timeout(SHORT)
    call(store, 'get', 'never')
    call(store, 'num_keys')
    call(store, 'get', 'fresh')
    call(store, 'wait', ['never'], SHORT)
    call(store, 'wait', ['fresh', 'never'], SHORT)
    call(store, 'wait', ['fresh', 'count'], SHORT)
    call(store, 'add', 'count', 1)
    store.set_timeout(LONG)
    call(store, 'wait', ['fresh'])
    one, two = Later('get', 'later'), Later('wait', ['later', 'latest'], LONG)
    one.waits()
    store.set('later', 'now')
    one.ends()
    two.waits()
    store.set('latest', 'now')
    two.ends()
    many = [Later('get', 'flag') for _ in range(5)]
    many[-1].waits()
    store.add('flag', 3)
    for one in many:
        one.ends()


def extended(store, other):
    call(store, 'append', 'parts', 'a')
    call(store, 'append', 'parts', 'x' * 3000)
    call(other, 'get', 'parts')
    call(store, 'multi_set', ['m1', 'm2', 'm3'], ['1', '', 'x' * 5000])
    call(other, 'multi_get', ['m3', 'm1', 'm2', 'parts'])
    call(other, 'check', ['m1', 'm2'])
    call(other, 'check', ['m1', 'never'])
    call(store, 'has_extended_api')
    for i in range(3):
        call(store, 'queue_push', 'queue', f'item {i}')
    call(store, 'queue_len', 'queue')  # a push has no reply: torch's own may look at others first
    call(other, 'queue_len', 'queue')
    call(other, 'check', ['queue'])
    for _ in range(3):
        call(other, 'queue_pop', 'queue')
    call(other, 'queue_pop', 'queue', False)
    call(other, 'queue_len', 'queue')
    popper = Later('queue_pop', 'queue')
    popper.waits()
    call(store, 'queue_push', 'queue', 'at last')
    popper.ends()
    other.set_timeout(SHORT)
    call(other, 'queue_pop', 'queue')
    call(other, 'set', 'after', 'a pop that failed')
    call(other, 'get', 'after')
    other.set_timeout(LONG)
    if hasattr(store, 'list_keys'):
        said.append(['list_keys', sorted(store.list_keys())])
    if hasattr(store, 'clone'):
        twin = store.clone()
        call(twin, 'get', 'fresh')
        call(twin, 'num_keys')


def barriers(store):
    others = [Later('barrier', 'gate', 3, LONG) for _ in range(2)]
    others[0].waits()
    call(store, 'barrier', 'gate', 3, LONG)
    for one in others:
        one.ends()
    call(store, 'barrier', 'lonely', 2, SHORT)
    call(store, 'get', 'fresh')


def main():
    store, other = client(), client()
    basics(store, other)
    waiting(store)
    if hasattr(store, 'append'):
        extended(store, other)
    if hasattr(store, 'barrier'):
        barriers(store)
    call(other, 'set', 'words', 'no number')
    call(other, 'add', 'words', 1)  # the end of this connection
    call(store, 'get', 'fresh')
    time.sleep(0)
    print(json.dumps(said, indent=0))


main()

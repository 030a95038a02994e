"""torch's own store, until stdin ends: prints its port."""
import sys

import torch.distributed as dist

how = {'use_libuv': True} if 'libuv' in sys.argv else {}
store = dist.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False, **how)
print(store.port, flush=True)
sys.stdin.read()

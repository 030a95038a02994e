"""A fake of what NCCL has in each process: RAS, which tells of the job whoever asks at its port."""
import socket
import threading


class Ras:
    """Answers every client with the pieces that answer() gives, and notes what it was asked last and how often."""

    def __init__(self, answer, hold=False, port=0):
        self.listener = socket.create_server(('127.0.0.1', port))
        self.env = {'NCCL_RAS_ADDR': f'127.0.0.1:{self.listener.getsockname()[1]}'}
        self.asked, self.clients, self.answer, self.hold = b'', 0, answer, threading.Event()
        if not hold:
            self.hold.set()
        self.threads = [threading.Thread(target=self.serve)]
        self.threads[0].start()

    def serve(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:  # it is closed
                return
            self.threads.append(threading.Thread(target=self.talk, args=(one,)))
            self.threads[-1].start()

    def talk(self, one):
        with one:
            asked = b''
            try:
                while not asked.endswith(b'STATUS\n'):
                    more = one.recv(4096)
                    if not more:
                        return
                    asked += more
                self.asked = asked
                self.clients += 1
                for piece in self.answer():
                    one.sendall(piece)
            except OSError:  # it has heard enough
                pass
            self.hold.wait()

    def close(self):
        self.hold.set()
        self.listener.shutdown(socket.SHUT_RDWR)  # ends accept()
        for thread in self.threads:
            thread.join()
        self.listener.close()


def json_answer(counts, lost=(), pids=None):
    """What NCCL 2.30 prints of one communicator: so many AllReduces of each rank, by rank."""

    def rank(number, rest):
        return (f'        {{\n          "rank": {number},\n          "host": "127.0.0.1",\n'
                f'          "pid": {pids[number] if pids else 100 + number},\n'
                f'          "cuda_dev": {number},\n          "nvml_dev": {number},\n{rest}        }}')

    here = ',\n'.join(
        rank(number, '          "status": {\n            "init_state": 0,\n            "async_error": 0,\n'
                     '            "finalize_called": false,\n            "destroy_flag": false,\n'
                     '            "abort_flag": false\n          },\n          "collective_counts": {\n'
                     f'            "Broadcast": 1,\n            "AllReduce": {count}\n          }}\n')
        for number, count in counts.items())
    away = ',\n'.join(
        rank(number, '          "status": {\n            "unresponsive": true,\n            "considered_dead": false\n'
                     '          }\n') for number in lost)
    return [('OK\nOK\n{\n  "nccl_version": "2.30.7",\n  "communicators_count": 1,\n  "communicators": [\n    {\n'
             f'      "hash": "0xcf264af53edbe986",\n      "secondary_hash": "0x1:0x2",\n'
             f'      "size": {len(counts) + len(lost)},\n      "ranks_count": {len(counts)},\n'
             f'      "missing_ranks_count": {len(lost)},\n      "ranks": [\n{here}\n      ],\n'
             f'      "missing_ranks": [\n{away}\n      ]\n    }}\n  ],\n  "ras": {{\n'
             '    "collection_time_sec": 0.001,\n    "timeouts_count": 0\n  }\n}\n').encode()]

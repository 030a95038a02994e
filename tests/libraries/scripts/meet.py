"""Rank 0 listens on MASTER_PORT as PyTorch's store does, the others connect and say their rank.

Rank 0 tells the test the port it listens on and waits for its word before it takes anybody in, so
that many jobs hold their ports at the same time.
"""
import os
import socket

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ADDRESS = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])

if RANK == 0:
    with socket.create_server(ADDRESS) as server, \
            open(os.environ["TELL"], "w", encoding="ascii") as tell:
        print(RANK, os.getpid(), ADDRESS[1], file=tell, flush=True)
        with open(os.environ["GO"], "rb", buffering=0) as go:
            go.read(1)
        ranks = set()
        for _ in range(WORLD - 1):
            client, _ = server.accept()
            with client:
                ranks.add(int(client.makefile().readline()))
        assert ranks == set(range(1, WORLD)), ranks
else:
    while True:
        try:
            client = socket.create_connection(ADDRESS, timeout=60)
            break
        except ConnectionRefusedError:
            pass  # rank 0 does not listen yet
    with client:
        client.sendall(f"{RANK}\n".encode())

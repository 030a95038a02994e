"""ask_ras.py ADDRESS QUESTION: what NCCL's RAS answers, as it comes."""
import socket
import sys

host, _, port = sys.argv[1].rpartition(':')
try:
    with socket.create_connection((host.strip('[]'), int(port)), 5) as ras:
        ras.settimeout(15)
        ras.sendall(sys.argv[2].replace('\\n', '\n').encode())
        while more := ras.recv(65536):
            sys.stdout.buffer.write(more)
except (OSError, ValueError) as error:
    sys.exit(f'no answer at {sys.argv[1]}: {error}')

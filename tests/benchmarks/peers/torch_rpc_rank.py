"""One process of a parameter server made of torch.distributed.rpc: a server, which keeps its part of
the model, or a worker, which pushes its gradient to all servers and then pulls their parts.

    torch_rpc_rank.py RENDEZVOUS RANK WORKERS SERVERS BYTES TRANSPORT

RENDEZVOUS is the name of a file that does not exist yet. The first SERVERS ranks serve. Workers
take the commands of exchange_commands.py. TRANSPORT is tcp or auto. With auto, PyTorch uses shared
memory, or reads the other process's memory, if both are on one machine.
"""
import os
import sys

import torch
import torch.distributed.rpc as rpc

import exchange_commands

CALL_S = 120

# These names are private to PyTorch, which offers no others.
OPTIONS = {"auto": {}, "tcp": {"_transports": ["uv"], "_channels": ["basic"]}}
part = None  # A server's part of the model, on which calls work.


def push(gradient):
    part.add_(gradient, alpha=-1e-9)


def pull():
    return part


class Worker:
    def __init__(self, servers, values):
        self.servers = servers
        self.gradients = [torch.ones(values) for _ in range(servers)]
        self.weights = [torch.zeros(values) for _ in range(servers)]

    def exchange(self):
        pushes = [rpc.rpc_async(f"rank{server}", push, (gradient,))
                  for server, gradient in enumerate(self.gradients)]
        for call in pushes:
            call.wait()
        pulls = [rpc.rpc_async(f"rank{server}", pull) for server in range(self.servers)]
        for weights, call in zip(self.weights, pulls):
            weights.copy_(call.wait())


def main(rendezvous, *arguments):
    global part
    *numbers, transport = arguments
    rank, workers, servers, size = map(int, numbers)
    values = size // 4 // servers
    torch.set_num_threads(1)
    os.environ["TP_SOCKET_IFNAME"] = "lo"
    part = torch.zeros(values) if rank < servers else None
    rpc.init_rpc(f"rank{rank}", rank=rank, world_size=workers + servers,
                 rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
                     num_worker_threads=4, rpc_timeout=CALL_S, init_method=f"file://{rendezvous}",
                     **OPTIONS[transport]))
    if rank < servers:
        print("ready", flush=True)
        sys.stdin.read()
    else:
        exchange_commands.serve(Worker(servers, values).exchange)
    # Exit without a farewell: the other processes end as well, and this one would wait for a lost
    # one.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])

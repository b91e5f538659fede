"""One of two ranks that all-reduce a model over gloo; each takes the commands of exchange_commands.py.

    gloo_rank.py RENDEZVOUS RANK RANKS BYTES

RENDEZVOUS is the name of a file that does not exist yet.
"""
import os
import sys

import torch
import torch.distributed

import exchange_commands


def main(rendezvous, rank, ranks, size):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=int(rank),
                                         world_size=int(ranks))
    values = torch.zeros(int(size) // 4)
    exchange_commands.serve(lambda: torch.distributed.all_reduce(values))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""One of several ranks that train a net with DistributedDataParallel over gloo, on one thread each.

    ddp_rank.py RENDEZVOUS RANK RANKS NET BATCH EXAMPLES

RENDEZVOUS is the name of a file that does not exist yet. NET is mlp or lenet5, as in Slipstream's
presets. An exchange of exchange_commands.py is a step: a batch gathered from examples in memory,
forward, backward with the all-reduce, and SGD with momentum.
"""
import os
import sys

import torch
from torch import nn

import exchange_commands

CLASSES = 10
NETS = {
    "mlp": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
        nn.Linear(128, CLASSES)),
    "lenet5": lambda: nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, CLASSES)),
}


class Training:
    def __init__(self, net, batch, examples):
        self.model = nn.parallel.DistributedDataParallel(NETS[net](), gradient_as_bucket_view=True)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.images = torch.randn(examples, 1, 28, 28)
        self.labels = torch.randint(0, CLASSES, (examples,))
        self.batch = batch
        self.batches = iter(())

    def next_batch(self):
        chosen = next(self.batches, None)
        if chosen is None:
            order = torch.randperm(len(self.labels))
            self.batches = iter(order.split(self.batch)[:-1])  # Only whole batches.
            chosen = next(self.batches)
        return self.images[chosen], self.labels[chosen]

    def step(self):
        images, labels = self.next_batch()
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(images), labels).backward()
        self.optimizer.step()


def main(rendezvous, rank, ranks, net, batch, examples):
    torch.set_num_threads(1)
    torch.manual_seed(int(rank))
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=int(rank),
                                         world_size=int(ranks))
    exchange_commands.serve(Training(net, int(batch), int(examples)).step)


if __name__ == "__main__":
    main(*sys.argv[1:])

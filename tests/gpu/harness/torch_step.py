#!/usr/bin/env python3
"""Images per second of PyTorch's training step on a GPU: the batch goes up, forward, backward, SGD
with momentum. Answers each line of its input with one:

    mlp|lenet5|cifar_quick BATCH SECONDS fp32|tf32|bf16 eager|graphs
    images_per_s=N
"""
import contextlib
import functools
import statistics
import sys
import time

import torch
from torch import nn

SHAPES = {"mlp": (1, 28, 28), "lenet5": (1, 28, 28), "cifar_quick": (3, 32, 32)}
WARM_SECONDS = 0.2
STEPS_BETWEEN = 20  # Of which the time is taken together, so that the host may run ahead.


def net_named(name):
    """The presets of common/model/presets.cc."""
    if name == "mlp":
        layers = [nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                  nn.Linear(128, 10)]
    elif name == "lenet5":
        layers = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5),
                  nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(),
                  nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    else:
        layers = [nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.ReLU(),
                  nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True),
                  nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True),
                  nn.Flatten(), nn.Linear(1024, 10)]
    return nn.Sequential(*layers)


class Trainer:
    def __init__(self, name, batch, precision):
        self.bf16 = precision == "bf16"
        self.net = net_named(name).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), 1e-3, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()
        shape = (20, batch, *SHAPES[name])
        self.examples = torch.randn(shape).pin_memory()
        self.labels = torch.randint(0, 10, (20, batch)).pin_memory()
        self.example = torch.empty(shape[1:], device="cuda")
        self.label = torch.empty((batch,), dtype=torch.int64, device="cuda")
        self.done = 0

    def upload(self):
        at = self.done % 20
        self.done += 1
        self.example.copy_(self.examples[at], non_blocking=True)
        self.label.copy_(self.labels[at], non_blocking=True)

    def compute(self):
        rounding = torch.autocast("cuda", torch.bfloat16, cache_enabled=False) if self.bf16 \
            else contextlib.nullcontext()
        self.optimizer.zero_grad(set_to_none=True)
        with rounding:
            loss = self.loss(self.net(self.example), self.label)
        loss.backward()
        self.optimizer.step()

    def capture(self):
        """The computation as one graph, after what PyTorch asks for: steps on another stream."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                self.upload()
                self.compute()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.compute()
        return graph.replay


@functools.cache
def ready(name, batch, precision, mode):
    """A trainer and what computes its step."""
    trainer = Trainer(name, batch, precision)
    return trainer, trainer.capture() if mode == "graphs" else trainer.compute


def images_per_second(name, batch, seconds, precision, mode):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    trainer, compute = ready(name, batch, precision, mode)
    times = []
    begin = time.perf_counter()
    end = None
    while end is None or time.perf_counter() < end:
        before = time.perf_counter()
        for _ in range(STEPS_BETWEEN):
            trainer.upload()
            compute()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - before)
        if end is None and time.perf_counter() - begin > WARM_SECONDS:
            times, end = [], time.perf_counter() + seconds
    return batch * STEPS_BETWEEN / statistics.median(times)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    for line in sys.stdin:
        name, batch, seconds, precision, mode = line.split()
        rate = images_per_second(name, int(batch), float(seconds), precision, mode)
        print(f"images_per_s={rate:.0f}", flush=True)


if __name__ == "__main__":
    main()

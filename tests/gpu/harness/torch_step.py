#!/usr/bin/env python3
"""Measures images per second of PyTorch's training step on a GPU: the batch arrives, forward,
backward, SGD with momentum. Batches go up from pinned memory, like a DataLoader's. With "kept" all
examples lie on the GPU, and the computation is a graph. Nets with convolutions are tried in both
memory layouts, and the faster one is used.

Answers each line of its input with one line:

    versions
    PyTorch 2.11.0, CUDA 13.0, cuDNN 91900
    NET BATCH SECONDS fp32|tf32|bf16 eager|graphs|kept
    images_per_s=N
"""
import contextlib
import functools
import statistics
import sys
import time

import torch
from torch import nn

SHAPES = {"mlp": (1, 28, 28), "lenet5": (1, 28, 28), "cifar_quick": (3, 32, 32),
          "vgg_small": (3, 32, 32), "alexnet": (3, 224, 224)}
LAYOUTS = {"mlp": [torch.contiguous_format]}
BOTH_LAYOUTS = [torch.contiguous_format, torch.channels_last]
TRY_SECONDS = 0.1
WARM_SECONDS = 0.2
BATCHES = 20
STEPS_BETWEEN = 20  # Timed together, so that the host may run ahead.


def vgg_small():
    layers = []
    inputs = 3
    for channels in (64, 128, 256):
        for _ in range(2):
            layers += [nn.Conv2d(inputs, channels, 3, padding=1), nn.ReLU()]
            inputs = channels
        layers.append(nn.MaxPool2d(2))
    return [*layers, nn.Flatten(), nn.Dropout(), nn.Linear(4096, 512), nn.ReLU(), nn.Dropout(),
            nn.Linear(512, 10)]


def alexnet():
    return [nn.Conv2d(3, 96, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(96, 256, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(256, 384, 3, padding=1), nn.ReLU(), nn.Conv2d(384, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
            nn.Flatten(), nn.Dropout(), nn.Linear(12544, 4096), nn.ReLU(), nn.Dropout(),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)]


def net_named(name):
    """Returns a net like the preset of this name in common/model/presets.cc."""
    if name == "mlp":
        layers = [nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                  nn.Linear(128, 10)]
    elif name == "lenet5":
        layers = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5),
                  nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(),
                  nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    elif name == "vgg_small":
        layers = vgg_small()
    elif name == "alexnet":
        layers = alexnet()
    else:
        layers = [nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.ReLU(),
                  nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True),
                  nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True),
                  nn.Flatten(), nn.Linear(1024, 10)]
    return nn.Sequential(*layers)


class Trainer:
    def __init__(self, name, batch, precision, layout, keeps_examples):
        self.bf16 = precision == "bf16"
        self.net = net_named(name).cuda().to(memory_format=layout)
        self.optimizer = torch.optim.SGD(self.net.parameters(), 1e-3, momentum=0.9, fused=True)
        self.loss = nn.CrossEntropyLoss()
        self.batch = batch
        channels, height, width = SHAPES[name]
        count = BATCHES * batch
        # The examples are random, so their values can stand for either layout.
        self.examples = torch.randn(count, channels * height * width)
        self.labels = torch.randint(0, 10, (count,))
        self.flat = torch.empty((batch, channels * height * width), device="cuda")
        self.example = self.flat.view(batch, channels, height, width)
        if layout == torch.channels_last:
            self.example = self.flat.view(batch, height, width, channels).permute(0, 3, 1, 2)
        self.label = torch.empty((batch,), dtype=torch.int64, device="cuda")
        self.done = 0
        if keeps_examples:
            self.examples, self.labels = self.examples.cuda(), self.labels.cuda()
            self.rows = torch.randperm(count).pin_memory()
            self.taken = torch.empty((batch,), dtype=torch.int64, device="cuda")
            self.bring = self.gather
        else:
            self.examples, self.labels = self.examples.pin_memory(), self.labels.pin_memory()
            self.bring = self.upload

    def next_batch(self):
        begin = self.done % BATCHES * self.batch
        self.done += 1
        return slice(begin, begin + self.batch)

    def upload(self):
        batch = self.next_batch()
        self.flat.copy_(self.examples[batch], non_blocking=True)
        self.label.copy_(self.labels[batch], non_blocking=True)

    def gather(self):
        self.taken.copy_(self.rows[self.next_batch()], non_blocking=True)
        torch.index_select(self.examples, 0, self.taken, out=self.flat)
        torch.index_select(self.labels, 0, self.taken, out=self.label)

    def compute(self):
        rounding = torch.autocast("cuda", torch.bfloat16, cache_enabled=False) if self.bf16 \
            else contextlib.nullcontext()
        self.optimizer.zero_grad(set_to_none=True)
        with rounding:
            loss = self.loss(self.net(self.example), self.label)
        loss.backward()
        self.optimizer.step()

    def capture(self):
        """Captures the computation as one graph, after some steps on another stream, as PyTorch
        requires."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                self.bring()
                self.compute()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.compute()
        return graph.replay


def seconds_of_step(trainer, compute, seconds):
    """Returns the seconds of a step: the median over groups of steps, after a warm-up."""
    times = []
    begin = time.perf_counter()
    end = None
    while end is None or time.perf_counter() < end:
        before = time.perf_counter()
        for _ in range(STEPS_BETWEEN):
            trainer.bring()
            compute()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - before) / STEPS_BETWEEN)
        if end is None and time.perf_counter() - begin > WARM_SECONDS:
            times, end = [], time.perf_counter() + seconds
    return statistics.median(times)


@functools.cache
def ready(name, batch, precision, mode):
    """Returns a trainer with the faster layout, and the function that computes its step."""
    tried = []
    for layout in LAYOUTS.get(name, BOTH_LAYOUTS):
        trainer = Trainer(name, batch, precision, layout, keeps_examples=mode == "kept")
        compute = trainer.compute if mode == "eager" else trainer.capture()
        tried.append((seconds_of_step(trainer, compute, TRY_SECONDS), trainer, compute))
    _, trainer, compute = min(tried, key=lambda one: one[0])
    return trainer, compute


def images_per_second(name, batch, seconds, precision, mode):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    trainer, compute = ready(name, batch, precision, mode)
    return batch / seconds_of_step(trainer, compute, seconds)


def answer(line):
    if line.strip() == "versions":
        return (f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, "
                f"cuDNN {torch.backends.cudnn.version()}")
    name, batch, seconds, precision, mode = line.split()
    rate = images_per_second(name, int(batch), float(seconds), precision, mode)
    return f"images_per_s={rate:.0f}"


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    for line in sys.stdin:
        print(answer(line), flush=True)


if __name__ == "__main__":
    main()

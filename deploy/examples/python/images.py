"""Trains a PyTorch model with residual blocks, batch normalisation and an embedding on images of
28 x 28 with a hint:

    psctl run images.yaml -- python3 images.py"""
import os

import torch
from torch import nn
from torch.nn import functional

import slipstream

CLASSES, HINTS = 10, 4


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return functional.relu(x + self.norm(self.convolution(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 5, stride=2, padding=2)
        self.blocks = nn.Sequential(Block(8), nn.MaxPool2d(2), Block(8))
        self.hints = nn.Embedding(HINTS, 8)
        self.last = nn.Linear(8 * 7 * 7 + 8, CLASSES)

    def forward(self, images, hints):
        features = self.blocks(functional.relu(self.first(images))).flatten(1)
        return self.last(torch.cat([features, self.hints(hints)], 1))


def examples(count, seed):
    """Noisy images of ten patterns, and a hint at which ones it may be."""
    patterns = torch.randn(CLASSES, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=random)
    noise = torch.randn(count, 1, 28, 28, generator=random)
    return 0.2 * patterns[labels] + noise, labels % HINTS, labels


if __name__ == "__main__":
    torch.set_num_threads(1)
    images, hints, labels = examples(4000, seed=1)
    model = Model()
    with slipstream.connect() as run:
        run.synchronize(model, examples=len(labels))
        optimizer = slipstream.Optimizer(run, model)
        for positions in run.batches():
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images[positions], hints[positions]),
                                            labels[positions])
            loss.backward()
            optimizer.step(loss=loss.item())
        images, hints, labels = examples(2000, seed=2)
        accuracy = (model.eval()(images, hints).argmax(1) == labels).float().mean().item()
        print(f"accuracy {accuracy:.4f}, the last step's staleness {optimizer.last.staleness}")
        if run.worker == 0:
            run.save(os.environ.get("SLIPSTREAM_RUN_DIR", ".") + "/model.safetensors")

"""Trains the model of images.py by DiLoCo: each worker takes ten steps of AdamW on its own, and the
servers move the common weights by what the workers' steps have done.

    psctl run diloco.yaml -- python3 diloco.py"""
import torch
from torch.nn import functional

import images
import slipstream

if __name__ == "__main__":
    torch.set_num_threads(1)
    pictures, hints, labels = images.examples(4000, seed=1)
    model = images.Model()
    with slipstream.connect() as run:
        run.synchronize(model, examples=len(labels))
        inner = torch.optim.AdamW(model.parameters(), lr=0.003)
        with slipstream.DiLoCo(run, model, inner):
            for positions in run.batches():
                inner.zero_grad()
                output = model(pictures[positions], hints[positions])
                functional.cross_entropy(output, labels[positions]).backward()
                inner.step()
        pictures, hints, labels = images.examples(2000, seed=2)
        accuracy = (model.eval()(pictures, hints).argmax(1) == labels).float().mean().item()
        print(f"accuracy {accuracy:.4f}")

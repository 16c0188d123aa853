#!/usr/bin/env python3
"""Trains a small network for a few epochs on the CPU: one trial of a search.

It needs PyTorch (1.13 or later) and nothing else. The parameters come as flags,
the metric goes out as a line after each epoch, and a checkpoint after each epoch
lets the search pause a trial and return to it on any machine.

    python3 train.py --lr 0.01 --width 16 --optimizer adam --epochs 6

Exit status: 0 all epochs done; 143 saved and stopped on SIGTERM, run it again.
"""

import argparse
import os
import signal
import sys

import torch
from torch import nn

# The digits 0 to 9 on 5 x 3 points, row by row.
FONT = ("111101101101111", "010110010010111", "111001111100111", "111001111001111", "101101111001001",
        "111100111001111", "111100111101111", "111001010010010", "111101111101111", "111101111001111")
STEPS, BATCH = 30, 32  # of an epoch


def batch(generator, n):
    """Noisy pictures of digits with their labels."""
    glyphs = torch.tensor([[float(c) for c in glyph] for glyph in FONT])
    labels = torch.randint(10, (n,), generator=generator)
    return glyphs[labels] + torch.randn(n, 15, generator=generator) * 0.6, labels


class Trial:
    """All that decides the next epoch; a checkpoint holds all of it."""

    def __init__(self, lr, width, optimizer, dropout=0.0):
        torch.manual_seed(1)
        self.epoch = 0
        self.model = nn.Sequential(nn.Linear(15, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 10))
        kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[optimizer]
        self.optimizer = kind(self.model.parameters(), lr=lr)
        self.data = torch.Generator().manual_seed(1)

    def train(self):
        """Trains one epoch and returns the accuracy on pictures that are in no batch."""
        self.model.train()
        for _ in range(STEPS):
            pictures, labels = batch(self.data, BATCH)
            loss = nn.functional.cross_entropy(self.model(pictures), labels)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        self.epoch += 1
        pictures, labels = batch(torch.Generator().manual_seed(2), 1000)
        self.model.eval()
        with torch.no_grad():
            return (self.model(pictures).argmax(1) == labels).float().mean().item()

    def save(self, path):
        """The file appears whole or not at all."""
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        state = {"epoch": self.epoch, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                 "data": self.data.get_state(), "torch": torch.get_rng_state()}
        with open(path + ".tmp", "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".tmp", path)

    def resume(self, path):
        if not os.path.exists(path):
            return
        state = torch.load(path, map_location="cpu")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.data.set_state(state["data"])
        torch.set_rng_state(state["torch"])
        self.epoch = state["epoch"]


def main():
    p = argparse.ArgumentParser(description="Trains a small network for a few epochs.")
    p.add_argument("--lr", type=float, default=0.01, help="learning rate (%(default)s)")
    p.add_argument("--width", type=int, default=16, help="units of the hidden layer (%(default)s)")
    p.add_argument("--optimizer", choices=["adam", "sgd"], default="adam")
    p.add_argument("--epochs", type=int, default=6, help="epochs in all (%(default)s)")
    args = p.parse_args()
    torch.set_num_threads(1)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    path = os.path.join(os.environ.get("SCRIMP_CHECKPOINT_DIR") or "checkpoints", "newest.pt")
    trial = Trial(args.lr, args.width, args.optimizer)
    trial.resume(path)
    while trial.epoch < args.epochs:
        accuracy = trial.train()
        trial.save(path)
        print("epoch %d accuracy %.4f" % (trial.epoch, accuracy), flush=True)
        if stop and trial.epoch < args.epochs:
            sys.exit(143)


if __name__ == "__main__":
    main()

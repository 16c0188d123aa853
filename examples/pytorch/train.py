#!/usr/bin/env python3
"""Trains a small convolutional network on the CPU and survives being killed.

It needs PyTorch (1.13 or later) and nothing else; the digits that it learns to
read are drawn by the program itself. A run that was killed, however often, ends
with the weights, and so the loss, of a run that was not: the order of the data
comes from a generator whose state is saved with the model's and the optimiser's.

    python3 train.py --steps 600 --checkpoint ckpt --out result.json

Exit status: 0 all steps done; 143 saved and stopped on SIGTERM, run it again.
"""

import argparse
import hashlib
import json
import os
import signal
import sys
import time

import torch
from torch import nn

try:  # for progress and wishes to save; the program runs as well without
    import scrimp
except ImportError:
    scrimp = None

# The digits 0 to 9 on 5 x 3 points, row by row.
FONT = ("111101101101111", "010110010010111", "111001111100111", "111001111001111", "101101111001001",
        "111100111001111", "111100111101111", "111001010010010", "111101111101111", "111101111001111")


class Digits:
    """Endless noisy pictures of digits, 12 x 12, drawn from a generator."""

    def __init__(self, generator):
        self.generator = generator
        self.glyphs = torch.tensor([[float(c) for c in glyph] for glyph in FONT]).reshape(10, 5, 3)

    def batch(self, n):
        labels = torch.randint(10, (n,), generator=self.generator)
        across = torch.randint(6, (n,), generator=self.generator)
        down = torch.randint(2, (n,), generator=self.generator)
        pictures = torch.randn(n, 1, 12, 12, generator=self.generator) * 0.3
        large = self.glyphs.repeat_interleave(2, 1)  # 10 x 10 x 3
        for i in range(n):
            pictures[i, 0, down[i]:down[i] + 10, across[i]:across[i] + 3] += large[labels[i]]
        return pictures, labels


def network():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.1), nn.Linear(16 * 9, 10))


def write_atomically(path, write):
    """The file appears whole or not at all, and is on the disk once it appears."""
    aside = path + ".tmp"
    with open(aside, "wb") as f:
        write(f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(aside, path)
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Run:
    """All that decides the next step; a checkpoint holds all of it."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.seed = seed
        self.step = 0
        self.model = network()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=4e-3)
        self.generator = torch.Generator().manual_seed(seed)
        self.digits = Digits(self.generator)
        self.loss = float("nan")

    def advance(self):
        pictures, labels = self.digits.batch(32)
        loss = nn.functional.cross_entropy(self.model(pictures), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        self.loss = loss.item()

    def save(self, folder):
        state = {"step": self.step, "seed": self.seed, "loss": self.loss, "model": self.model.state_dict(),
                 "optimizer": self.optimizer.state_dict(), "data": self.generator.get_state(),
                 "torch": torch.get_rng_state()}  # dropout's
        write_atomically(os.path.join(folder, "newest.pt"), lambda f: torch.save(state, f))

    def resume(self, folder):
        path = os.path.join(folder, "newest.pt")
        if not os.path.exists(path):
            return False
        state = torch.load(path, map_location="cpu")
        if state["seed"] != self.seed:
            sys.exit("resume from %s: it has the seed %d, not %d: use another --checkpoint folder" % (path, state["seed"], self.seed))
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["data"])
        torch.set_rng_state(state["torch"])
        self.step, self.loss = state["step"], state["loss"]
        return True

    def evaluate(self):
        """Loss and accuracy on pictures that are the same each time and are in no batch."""
        pictures, labels = Digits(torch.Generator().manual_seed(self.seed + 1)).batch(256)
        self.model.eval()
        with torch.no_grad():
            scores = self.model(pictures)
        self.model.train()
        return nn.functional.cross_entropy(scores, labels).item(), (scores.argmax(1) == labels).float().mean().item()

    def fingerprint(self):
        h = hashlib.sha256()
        for name, value in sorted(self.model.state_dict().items()):
            h.update(name.encode() + value.numpy().tobytes())
        return h.hexdigest()


def main():
    p = argparse.ArgumentParser(description="Trains a small network; kill it and run it again.")
    p.add_argument("--steps", type=int, default=600, help="steps in all (%(default)s)")
    p.add_argument("--checkpoint", default=os.environ.get("SCRIMP_CHECKPOINT_DIR") or "checkpoints", help="folder (%(default)s)")
    p.add_argument("--save-every", type=float, default=float(os.environ.get("SCRIMP_CHECKPOINT_INTERVAL_S") or 10),
                   help="seconds between two checkpoints (%(default)s)")
    p.add_argument("--out", default="result.json", help="file for the result (%(default)s)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--log-every", type=int, default=20, help="steps between two lines (%(default)s)")
    args = p.parse_args()

    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # the order of sums depends on the number of threads

    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))  # before the first step: a notice can come at once

    os.makedirs(args.checkpoint, exist_ok=True)
    run = Run(args.seed)
    if run.resume(args.checkpoint):
        print("resumed from step %d" % run.step, flush=True)

    def save():
        run.save(args.checkpoint)
        print("saved step %d" % run.step, flush=True)
        if scrimp:
            scrimp.saved(run.step)

    last_save = time.monotonic()
    while run.step < args.steps:
        if stop or (scrimp and scrimp.should_stop()):
            save()
            sys.exit(143)
        run.advance()
        if scrimp:
            scrimp.progress(run.step, total=args.steps, loss=run.loss)
        if run.step % args.log_every == 0:
            print("step %d/%d loss %.4f" % (run.step, args.steps, run.loss), flush=True)
        if time.monotonic() - last_save >= args.save_every or (scrimp and scrimp.should_checkpoint()) or run.step == args.steps:
            save()
            last_save = time.monotonic()

    loss, accuracy = run.evaluate()
    result = {"steps": run.step, "loss": loss, "accuracy": accuracy, "train_loss": run.loss, "weights": run.fingerprint()}
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    write_atomically(args.out, lambda f: f.write(json.dumps(result).encode() + b"\n"))
    print("done: loss %.6f accuracy %.3f weights %s" % (loss, accuracy, result["weights"]), flush=True)


if __name__ == "__main__":
    main()

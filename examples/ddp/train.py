#!/usr/bin/env python3
"""Trains a small network on one machine or several; lose one of them and start again.

    torchrun train.py

scrimp tells torchrun how many machines there are, which this one is and where they
meet, so that the line is the same on each. Every rank gets the newest checkpoint, rank 0
saves, and all decide together when: a rank that saved or ended alone would leave the
others in the middle of a step.

With the same number of processes it ends with exactly the weights of a run that nothing
happened to. With another number it ends as well, with slightly other ones.
"""

import argparse
import hashlib
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

try:
    import scrimp  # pip install ./sdk/python; without it the lines of output tell the same
except ImportError:
    scrimp = None

GLOBAL_BATCH = 24  # shared by all ranks, whatever their number


def network():
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))


class Run:
    """All that decides the next step; a checkpoint holds all of it."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.seed, self.step, self.loss = seed, 0, float("nan")
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.model = DistributedDataParallel(network())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)

    def batch(self):
        """This rank's part of the batch of the next step, which its number alone decides."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.step)
        x = torch.randn(GLOBAL_BATCH, 8, generator=generator)
        y = (x[:, :1] * x[:, 1:2]).sin() + x[:, 2:3]
        return x[self.rank::self.world], y[self.rank::self.world]

    def advance(self):
        x, y = self.batch()
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # DistributedDataParallel takes the mean over all ranks
        self.optimizer.step()
        self.step += 1
        self.loss = loss.item()

    def save(self, folder):
        """The file appears whole or not at all."""
        path = os.path.join(folder, "newest.pt")
        state = {"step": self.step, "model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict()}
        with open(path + ".tmp", "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".tmp", path)

    def resume(self, folder):
        path = os.path.join(folder, "newest.pt")
        if os.path.exists(path):
            state = torch.load(path, map_location="cpu")
            self.model.module.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step = state["step"]
        if agreed(self.step) != self.step:
            sys.exit("rank %d resumes from step %d and another from a later one" % (self.rank, self.step))

    def fingerprint(self):
        h = hashlib.sha256()
        for name, value in sorted(self.model.module.state_dict().items()):
            h.update(name.encode() + value.numpy().tobytes())
        return h.hexdigest()


def agreed(value):
    """The highest value of all ranks."""
    t = torch.tensor([int(value)])
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return int(t.item())


def main():
    p = argparse.ArgumentParser(description="Trains a small network on several machines.")
    p.add_argument("--steps", type=int, default=600, help="steps in all (%(default)s)")
    p.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes besides (%(default)s)")
    p.add_argument("--checkpoint", default=os.environ.get("SCRIMP_CHECKPOINT_DIR") or "checkpoints", help="folder (%(default)s)")
    p.add_argument("--save-every", type=float, default=float(os.environ.get("SCRIMP_CHECKPOINT_INTERVAL_S") or 10),
                   help="seconds between two checkpoints (%(default)s)")
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()

    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # the order of sums depends on the number of threads
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))

    dist.init_process_group("gloo")
    os.makedirs(args.checkpoint, exist_ok=True)
    run = Run(args.seed)
    run.resume(args.checkpoint)
    print("rank %d of %d begins at step %d" % (run.rank, run.world, run.step), flush=True)

    last_save = time.monotonic()
    while run.step < args.steps:
        ends = agreed(bool(stop or (scrimp and scrimp.should_stop())))  # any rank's machine may go
        due = run.rank == 0 and (time.monotonic() - last_save >= args.save_every or bool(scrimp and scrimp.should_checkpoint()))
        if (ends or agreed(due)) and run.step > 0:
            if run.rank == 0:
                run.save(args.checkpoint)
                print("saved step %d" % run.step, flush=True)
                if scrimp:
                    scrimp.saved(run.step)
            last_save = time.monotonic()
        if ends:
            sys.exit(143)
        run.advance()
        if run.rank == 0:
            print("step %d/%d loss %.6f" % (run.step, args.steps, run.loss), flush=True)
            if scrimp:
                scrimp.progress(run.step, total=args.steps, loss=run.loss)
        time.sleep(args.pause)

    if run.rank == 0:
        run.save(args.checkpoint)
        print("saved step %d" % run.step, flush=True)
        if scrimp:
            scrimp.saved(run.step)
    print("rank %d done: weights %s" % (run.rank, run.fingerprint()), flush=True)
    dist.barrier()  # rank 0 ends last: the others meet at its address
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Trains a small network on processors for some seconds, with one planted fault: python3 train.py FAULT SECONDS.

FIX=1 in the environment trains the same without the fault. The last line says how many steps a second it made.
"""
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, IterableDataset

fault, seconds = sys.argv[1], float(sys.argv[2])
if os.environ.get("FIX"):
    fault = "healthy"
begin = time.monotonic()
torch.manual_seed(0)


def left():
    return begin + seconds - time.monotonic()


class Samples(IterableDataset):
    """Batches that are made as slowly as the fault says."""

    def __iter__(self):
        x = torch.randn(64, 512)
        while True:
            if fault == "remote":
                time.sleep(0.12)
            if fault in ("worker", "main"):
                n, until = 0, time.process_time() + 0.15
                while time.process_time() < until:  # decoding in Python
                    n += 1
            if fault == "small-reads":
                fd = os.open("data.bin", os.O_RDONLY)
                for _ in range(40000):
                    os.read(fd, 64)
                os.close(fd)
            yield x, x * 0.5


if fault == "small-reads":
    with open("data.bin", "wb") as f:
        f.write(os.urandom(4 << 20))
        f.flush()
        os.fsync(f.fileno())
if fault == "set-up":
    print("Downloading the data set", flush=True)
    time.sleep(0.55 * seconds)
torch.set_num_threads(48 if fault == "threads" else os.cpu_count())


class Layer(torch.nn.Module):
    """Works on all processors: Debian's BLAS multiplies matrices on one."""

    def __init__(self):
        super().__init__()
        self.scale, self.shift = torch.nn.Parameter(torch.ones(512)), torch.nn.Parameter(torch.zeros(512))

    def forward(self, x):
        return torch.tanh(x * self.scale + self.shift)


model = torch.nn.Sequential(*[Layer() for _ in range(6)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = iter(DataLoader(Samples(), batch_size=None, num_workers=1 if fault == "worker" else 0))
kept, step, said = [], 0, 0.0
saved = evaluated = time.monotonic()
log = open("log.txt", "w")
train_for = 0.45 * seconds if fault == "idle" else seconds
first = time.monotonic()
while time.monotonic() - begin < train_for:
    t0 = time.monotonic()
    x, y = next(loader)
    t1 = time.monotonic()
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if fault == "sleep":
        time.sleep(0.1)
    if fault == "leak":
        while len(kept) < 6 * (time.monotonic() - first):
            kept.append(torch.ones(250_000) * step)
    if fault == "logging":
        for i in range(2000):
            log.write(f"step {step} layer {i} norm {i * 0.1}\n")
            log.flush()
            os.fsync(log.fileno()) if i % 100 == 0 else None
    now = time.monotonic()
    if fault == "save" and now - saved > 5:
        torch.save([torch.randn(60 << 20) for _ in range(1)], "big.pt")
        os.sync()
        print("saved checkpoint", flush=True)
        saved = time.monotonic()
    if fault == "evaluate" and now - evaluated > 8:
        until = time.monotonic() + 7
        with torch.no_grad():
            while time.monotonic() < until:
                model(x)
        print(f"validation loss {loss.item():.4f}", flush=True)
        evaluated = time.monotonic()
    if now - said > 0.3:
        text = f"step={step} loss={loss.item():.4f}"
        if fault == "main":
            text += f" time {now - t0:.3f} data {t1 - t0:.3f}"
        print(text, flush=True)
        said = now
print(f"step={step} total={step}", flush=True)
print(f"pace {step / (time.monotonic() - first):.3f} steps a second", flush=True)
if fault == "idle":
    time.sleep(max(0, left()))

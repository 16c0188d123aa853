"""Trains a small network on processors, with one planted fault, until the file "stop" is in a folder:
python3 train.py FAULT FOLDER.

Each fault takes a fixed share of the program's time, on any machine and beside any other programs. Computing is counted
on the processor's clock, and what a machine waits for on the wall clock. The last line says which share of its time the
fault took, by the program's own clock.
"""
import os
import sys
import time

began, lost = time.monotonic(), 0.0

import torch
from torch.utils.data import DataLoader, IterableDataset

fault, folder = sys.argv[1:]
torch.manual_seed(0)
torch.set_num_threads(1)


def there(name):
    return os.path.exists(os.path.join(folder, name))


def write(name):
    open(os.path.join(folder, name), "w").close()


def clock():
    """The time without what this thread waited for a processor that other programs had."""
    with open("/proc/thread-self/schedstat") as f:
        return time.monotonic() - int(f.read().split()[1]) / 1e9


def compute(seconds, work):
    """Does work again and again for seconds of the processor."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        work()


class Samples(IterableDataset):
    """Batches that are made as slowly as the fault says."""

    def __iter__(self):
        x = torch.randn(64, 512)
        while True:
            if fault == "worker":
                compute(0.15, lambda: sum(range(500)))  # decoding in Python
            if fault == "small-reads":
                fd = os.open("data.bin", os.O_RDONLY)
                compute(0.15, lambda: (os.lseek(fd, 0, os.SEEK_SET), [os.read(fd, 64) for _ in range(500)]))
                os.close(fd)
            yield x, x * 0.5


if fault == "small-reads":
    with open("data.bin", "wb") as f:
        f.write(os.urandom(1 << 16))
if fault == "set-up":
    waits = time.monotonic()
    print("Downloading the data set", flush=True)
    time.sleep(32)
    write("enough")
    while not there("begin"):
        time.sleep(0.2)
    lost = time.monotonic() - waits

model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(3)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = iter(DataLoader(Samples(), batch_size=None, num_workers=1 if fault == "worker" else 0))
step, loss, weights = 0, None, torch.randn(4 << 20)


def train(x, y):
    global loss
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def evaluate(x):
    with torch.no_grad():
        model(x)


working = time.monotonic()
while not there("stop"):
    if time.monotonic() - working > 30:
        write("enough")
    before = clock()
    x, y = next(loader)
    if fault in ("worker", "small-reads"):
        lost += clock() - before
    at = time.monotonic()
    compute(0.05, lambda: train(x, y))
    took = time.monotonic() - at
    step += 1
    before = clock()
    if fault == "sleep":
        time.sleep(3 * took)
    if fault == "save" and step % 20 == 0:
        with open("big.pt", "wb") as f:
            for _ in range(10):
                torch.save(weights, f)
                f.flush()
                time.sleep(4 * took)  # the disk is slow
        print("saved checkpoint", flush=True)
    if fault == "evaluate" and step % 40 == 0:
        compute(4, lambda: evaluate(x))
        print(f"validation loss {loss.item():.4f}", flush=True)
    if fault not in ("worker", "small-reads"):
        lost += clock() - before
    if step % 5 == 0:
        print(f"step={step} loss={loss.item():.4f}", flush=True)
print(f"lost={lost / (clock() - began):.4f}", flush=True)

"""Trains a small GPT for some seconds, with one planted fault: python3 faults.py FAULT SECONDS [fixed] [TRACE].

With "fixed" it does the same work without the fault. With the name of a file it writes eight steps there as PyTorch's
profiler traces them. The last line, "rate=N", is the tokens a second after ten steps. It saves on SIGTERM in
SCRIMP_CHECKPOINT_DIR and goes on from there. On a machine without a GPU a tiny model runs on processors.
"""
import contextlib
import os
import signal
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

fault, seconds = sys.argv[1], float(sys.argv[2])
fixed, trace = "fixed" in sys.argv[3:], [a for a in sys.argv[3:] if a != "fixed"]
planted = "" if fixed else fault
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
width, layers, vocabulary, batch, length = (1024, 8, 16384, 16, 512) if cuda else (32, 2, 256, 2, 32)
if fault == "kernels":  # a network so small that the processor cannot start its kernels fast enough
    width, batch, length = width // 4, 4, 128
if planted == "small-batch":
    batch, length = 1, length // 4
torch.manual_seed(0)
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(True))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = (t.view(b, s, max(1, d // 64), -1).transpose(1, 2) for t in self.qkv(self.one(x)).split(d, -1))
        if cuda:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = (q @ k.transpose(-1, -2) / 8).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, s, d))
        return x + self.down(F.gelu(self.up(self.two(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.layers = nn.Sequential(*[Layer() for _ in range(layers)])

    def forward(self, x):
        logits = self.head(self.layers(self.table(x)))
        return F.cross_entropy(logits.view(-1, vocabulary).float(), x.view(-1))


class Batches(torch.utils.data.IterableDataset):
    """Batches on the host. The fault decodes each in Python; copies adds what only the device needs."""

    def __iter__(self):
        tokens = torch.randint(vocabulary, (batch, length))
        extra = torch.zeros(1 << 27, dtype=torch.uint8) if cuda and fault == "copies" else None
        while True:
            until = time.perf_counter() + (0.1 if fault == "loading" else 0)
            while time.perf_counter() < until:
                sum(range(2000))
            yield tokens, extra


if planted == "set-up":
    print("Downloading the data set", flush=True)
    time.sleep(40)
path = os.path.join(os.environ.get("SCRIMP_CHECKPOINT_DIR", "."), "state.pt")
step, kept = 0, None
model = Model().to(device)
optimizer = torch.optim.AdamW(model.parameters(), foreach=fault != "kernels" or fixed)
if "SCRIMP_CHECKPOINT_DIR" in os.environ and os.path.exists(path):
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    step = saved["step"]
    print(f"resumed from step {step}", flush=True)


def save():
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path + ".tmp")
    os.replace(path + ".tmp", path)
    print(f"saved step {step}", flush=True)


half = fault != "fp32" or fixed
graph, fast = None, cuda and fault == "kernels" and fixed
if fast:  # one launch for the forward and the backward pass
    still = torch.zeros(batch, length, dtype=torch.long, device=device)


def both(x):
    with torch.autocast(device, dtype=torch.bfloat16, enabled=half and cuda):
        loss = model(x)
    loss.backward()
    return loss


def captured(x):
    global graph, kept
    if graph is None:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                both(still)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=False)
        with torch.cuda.graph(graph):
            kept = both(still)
    still.copy_(x)
    graph.replay()
    return kept


def train(x, extra):
    if extra is not None:
        extra.to(device)
    x = x.to(device, non_blocking=fixed)
    loss = captured(x) if fast else both(x)
    if planted == "item":
        for p in model.parameters():
            p.grad.norm().item()
    optimizer.step()
    optimizer.zero_grad(set_to_none=not fast)
    if planted == "save" and step % 5 == 0:
        save()
    return loss


workers = 8 if fault == "loading" and fixed else 0
if fault == "copies" and fixed:
    resident = torch.zeros(1 << 27, dtype=torch.uint8, device=device) if cuda else None
loader = iter(torch.utils.data.DataLoader(Batches(), batch_size=None, num_workers=workers, pin_memory=cuda and fixed and
                                          fault != "copies"))
profiler = torch.profiler.profile() if trace else contextlib.nullcontext()
begun, since, first = time.monotonic(), None, step
while time.monotonic() - begun < seconds and not stop:
    if step - first == 10:
        if cuda:
            torch.cuda.synchronize()
        since = time.monotonic()
        profiler.__enter__()
    x, extra = next(loader)
    if fault == "copies" and fixed:
        extra = None  # it stays on the device
    loss = train(x, extra)
    step += 1
    if trace and step - first == 18:
        profiler.__exit__(None, None, None)
        profiler.export_chrome_trace(trace[0])
        break
    if step % 10 == 0:
        print(f"step={step}", flush=True)
if stop:
    save()
    sys.exit(143)
if cuda:
    torch.cuda.synchronize()
if since and not trace:
    print(f"rate={(step - first - 10) * batch * length / (time.monotonic() - since):.1f}", flush=True)

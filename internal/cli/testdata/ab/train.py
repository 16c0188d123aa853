"""Trains a small classifier on processors for a few epochs, in 32 bit or under bf16 autocast as PRECISION says. Weights,
data and their order come from SCRIMP_SEED alone, so that two runs with one seed differ by the precision only."""
import contextlib
import os

import torch
from torch import nn

seed = int(os.environ["SCRIMP_SEED"])
torch.manual_seed(seed)
torch.set_num_threads(1)
centres = torch.randn(10, 32)


def data(n):
    y = torch.randint(10, (n,))
    return centres[y] + 2.4 * torch.randn(n, 32), y


x, y = data(6000)
test_x, test_y = data(2000)
model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 10))
optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
half = os.environ["PRECISION"] == "bf16"
used = set()


def precision():
    return torch.autocast("cpu", dtype=torch.bfloat16) if half else contextlib.nullcontext()


epochs = 4
for epoch in range(1, epochs + 1):
    for part in torch.randperm(len(x)).split(60):
        with precision():
            out = model(x[part])
        used.add(str(out.dtype))
        optimiser.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(out.float(), y[part]).backward()
        optimiser.step()
    with torch.no_grad(), precision():
        right = (model(test_x).argmax(1) == test_y).float().mean().item()
    print(f"epoch {epoch}/{epochs} accuracy {right:.6f} in {' '.join(sorted(used))}", flush=True)

"""Trains a small transformer for some steps and prints, as JSON, the bytes that PyTorch keeps for the backward pass
without weights, and on a GPU also the peak of its memory and the tokens a second:
python3 peaks.py SHAPE PRECISION KEEP LAYERS WIDTH VOCABULARY BATCH LENGTH [STEPS].

SHAPE is plain (GPT-2: one feed-forward of four widths) or gated (Llama: three of eight thirds, and norms in Python).
PRECISION is bf16 (autocast) or fp32; KEEP is none or full (activation checkpointing).
Attention is fused everywhere: it keeps its inputs, its output and a number for each row.
"""
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

shape, precision, keep = sys.argv[1:4]
layers, width, vocabulary, batch, length = map(int, sys.argv[4:9])
steps = int(sys.argv[9]) if len(sys.argv) > 9 else 10
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
heads = max(1, width // 64)
torch.manual_seed(0)


class Fused(torch.autograd.Function):
    """Attention as a fused kernel keeps it."""

    @staticmethod
    def forward(ctx, q, k, v):
        p = (q.float() @ k.float().transpose(-1, -2) / 8).softmax(-1)
        out = (p @ v.float()).to(q.dtype).transpose(1, 2).contiguous().transpose(1, 2)
        ctx.save_for_backward(q, k, v, out, p.logsumexp(-1))
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, _ = ctx.saved_tensors
        return torch.empty_like(q).zero_(), torch.empty_like(k).zero_(), torch.empty_like(v).zero_()


def attention(q, k, v):
    if cuda:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return Fused.apply(q, k, v)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        x = x.float()
        mean = (x * x).sum(-1, keepdim=True) / width  # old versions keep the input of mean()
        return self.weight * (x * torch.rsqrt(mean + 1e-6))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = (Norm(), Norm()) if shape == "gated" else (nn.LayerNorm(width), nn.LayerNorm(width))
        parts = (width, width, width) if shape == "gated" else (3 * width,)
        self.qkv = nn.ModuleList(nn.Linear(width, part, bias=False) for part in parts)
        self.out = nn.Linear(width, width, bias=False)
        inner = (8 * width // 3 + 63) // 64 * 64 if shape == "gated" else 4 * width
        self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)
        self.gate = nn.Linear(width, inner, bias=False) if shape == "gated" else None

    def forward(self, x):
        b, s, d = x.shape
        h = self.one(x)
        qkv = [part for linear in self.qkv for part in linear(h).split(d, dim=-1)]
        q, k, v = (t.view(b, s, heads, d // heads).transpose(1, 2) for t in qkv)
        x = x + self.out(attention(q, k, v).transpose(1, 2).reshape(b, s, d))
        h = self.two(x)
        if self.gate is not None:
            return x + self.down(F.silu(self.gate(h)) * self.up(h))
        return x + self.down(F.gelu(self.up(h)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = Norm() if shape == "gated" else nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x, y):
        x = self.table(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if keep == "full" else layer(x)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.view(-1, vocabulary).float(), y.view(-1))


model = Model().to(device)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randint(vocabulary, (batch, length), device=device)


def forward():
    with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bf16"):
        return model(x, x)


def step():
    logits, loss = forward()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return logits, loss


def kept():
    """The bytes that a forward pass keeps, without weights and their copies."""
    weights, found = {p.data_ptr() for p in model.parameters()}, {}

    def pack(t):
        if t.storage().data_ptr() not in weights and (t.dim() != 2 or len(t) == batch * length):
            found[t.storage().data_ptr()] = t.storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = forward()
    del out
    return sum(found.values())


answer = {"params": sum(p.numel() for p in model.parameters()), "kept": kept()}
if cuda:
    for _ in range(3):
        out = step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    begun = time.monotonic()
    for _ in range(steps):
        out = step()
    torch.cuda.synchronize()
    answer["tokens_s"] = steps * batch * length / (time.monotonic() - begun)
    answer["peak"] = torch.cuda.max_memory_allocated()
    answer["gpu"] = torch.cuda.get_device_name()
print(json.dumps(answer))

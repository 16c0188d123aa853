"""Quantises student.pt for PyTorch on a CPU: the weights of Linear become int8, activations are quantised while the
model runs. It saves TorchScript as small.pt, and prints size and accuracy before and after."""
import argparse
import io

import torch
from torch import nn

import export
import model


def script(net):
    """Returns a network as the bytes of a TorchScript file."""
    out = io.BytesIO()
    torch.jit.save(torch.jit.trace(net, torch.zeros(1, model.PIXELS)), out)
    return out.getvalue()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="student.pt")
    p.add_argument("--out", default="small.pt")
    a = p.parse_args()
    before = export.load(a.model)
    after = torch.ao.quantization.quantize_dynamic(before, {nn.Linear}, dtype=torch.qint8)
    with open(a.out, "wb") as f:
        f.write(script(after))
    print("bytes as TorchScript: before=%d after=%d" % (len(script(before)), len(script(after))))
    print("accuracy: before=%.4f after=%.4f" % (model.accuracy(before), model.accuracy(after)))


if __name__ == "__main__":
    main()

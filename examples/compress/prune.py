"""Sets the output channels of student.pt with the smallest L1 norm to zero, and trains on with the others.

`scrimp compress --method prune-structured` with the same share then removes these channels from the exported model, and
nothing else: the copy computes what the pruned network computes.
"""
import argparse

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import prune

import export
import model


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="student.pt")
    p.add_argument("--sparsity", type=float, default=0.5, help="share of the channels of each hidden layer")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", default="student.pt")
    a = p.parse_args()
    torch.manual_seed(a.seed)
    net = export.load(a.model)
    before = model.accuracy(net)
    hidden = [m for m in net if isinstance(m, nn.Linear)][:-1]  # the last layer's channels are the classes
    for layer in hidden:
        prune.ln_structured(layer, "weight", amount=a.sparsity, n=1, dim=0)
        gone = layer.weight_mask.abs().sum(dim=1) == 0
        prune.custom_from_mask(layer, "bias", (~gone).float())  # a channel with a bias would still answer
    cut = model.accuracy(net)
    model.train(net.train(), lambda x, s, y: functional.cross_entropy(s, y), a.epochs)
    for layer in hidden:
        prune.remove(layer, "weight")
        prune.remove(layer, "bias")
    width = hidden[0].out_features
    torch.save({"width": width, "state": net.eval().state_dict()}, a.out)
    print("accuracy: before=%.4f cut=%.4f after=%.4f" % (before, cut, model.accuracy(net)))


if __name__ == "__main__":
    main()

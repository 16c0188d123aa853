#!/usr/bin/env python3
"""The same search in one process: the loop asks scrimp what to train next.

It needs the helper (pip install ./sdk/python) and the command scrimp, or runs as a
job of scrimp. Several trials share one process and one start of PyTorch.

    python3 loop.py
"""

import os

import scrimp
import torch
from train import Trial

torch.set_num_threads(1)
folder = scrimp.checkpoint_dir("checkpoints")
search = scrimp.search("digits-loop", {"lr": {"min": 1e-4, "max": 1.0, "log": True}, "width": [4, 16, 64],
                                       "optimizer": ["adam", "sgd"]},
                       metric="accuracy", goal="maximize", epochs=6, trials=4, searcher="asha-promo")
for one in search:
    path = os.path.join(folder, "trial-%d.pt" % one.number)
    trial = Trial(one.params["lr"], one.params["width"], one.params["optimizer"])
    trial.resume(path)
    for epoch in one.epochs():
        while trial.epoch < epoch:
            accuracy = trial.train()
        trial.save(path)
        one.report(epoch, accuracy)
best = search.best
print("best accuracy %.4f after epoch %d: %s" % (best["value"], best["epoch"], best["params"]))

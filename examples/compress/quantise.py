"""Quantises the Linear layers of student.pt to int8 for PyTorch on a CPU, and prints size and accuracy before and after.

dynamic  weights become int8; activations are quantised while the model runs. It needs no data.
static   activations get fixed ranges as well, from some batches of training data.
qat      (quantisation-aware training) trains a few more epochs while the network already rounds as int8 does, then as
         static. It loses least.

It saves TorchScript as small.pt. With scrimp compress you quantise an ONNX model instead, without PyTorch.
"""
import argparse
import copy
import io

import torch
from torch import nn
from torch.ao import quantization
from torch.nn import functional

import export
import model


def script(net):
    """Returns a network as the bytes of a TorchScript file."""
    out = io.BytesIO()
    torch.jit.save(torch.jit.trace(net, torch.zeros(1, model.PIXELS)), out)
    return out.getvalue()


def wrapped(net, training):
    """Returns the network between a quantisation of its input and the way back of its output, ready to see data."""
    torch.backends.quantized.engine = "fbgemm" if "fbgemm" in torch.backends.quantized.supported_engines else "qnnpack"
    engine = torch.backends.quantized.engine
    net = quantization.QuantWrapper(copy.deepcopy(net)).train(training)
    if training:
        net.qconfig = quantization.get_default_qat_qconfig(engine)
        return quantization.prepare_qat(net)
    net.qconfig = quantization.get_default_qconfig(engine)
    return quantization.prepare(net)


def quantised(net, method, batches, epochs):
    if method == "dynamic":
        return quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.qint8)
    ready = wrapped(net, method == "qat")
    if method == "qat":
        model.train(ready, lambda x, s, y: functional.cross_entropy(s, y), epochs)
    else:
        with torch.no_grad():
            ready(model.data(64 * batches, seed=1)[0])  # training data: the evaluation must be new to the ranges
    return quantization.convert(ready.eval())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--method", default="dynamic", choices=["dynamic", "static", "qat"])
    p.add_argument("--model", default="student.pt")
    p.add_argument("--batches", type=int, default=8, help="batches of 64 that give static its ranges")
    p.add_argument("--epochs", type=int, default=2, help="epochs of qat")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", default="small.pt")
    a = p.parse_args()
    torch.manual_seed(a.seed)
    before = export.load(a.model)
    after = quantised(before, a.method, a.batches, a.epochs)
    with open(a.out, "wb") as f:
        f.write(script(after))
    print("bytes as TorchScript: before=%d after=%d" % (len(script(before)), len(script(after))))
    print("accuracy: before=%.4f after=%.4f" % (model.accuracy(before), model.accuracy(after)))


if __name__ == "__main__":
    main()

"""Exports student.pt as model.onnx: opset 17, with a batch of any size."""
import argparse
import inspect

import torch

import model


def load(path):
    saved = torch.load(path, map_location="cpu")
    net = model.build(saved["width"])
    net.load_state_dict(saved["state"])
    return net.eval()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="student.pt")
    p.add_argument("--out", default="model.onnx")
    a = p.parse_args()
    options = {}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False  # the newer exporter needs more packages
    torch.onnx.export(load(a.model), torch.zeros(1, model.PIXELS), a.out, opset_version=17, input_names=["pixels"],
                      output_names=["scores"], dynamic_axes={"pixels": {0: "batch"}, "scores": {0: "batch"}}, **options)
    print("exported %s" % a.out)


if __name__ == "__main__":
    main()

"""The model and the data of the recipes: replace both by your own.

build returns a network of any width, and data returns images of 64 pixels with their class: a pattern for each class
plus noise.
"""
import torch
from torch import nn

PIXELS, CLASSES = 64, 10


def build(width):
    return nn.Sequential(nn.Linear(PIXELS, width), nn.ReLU(), nn.Linear(width, CLASSES))


def data(count, seed):
    patterns = torch.randn(CLASSES, PIXELS, generator=torch.Generator().manual_seed(0))
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=rng)
    return patterns[labels] + 2.0 * torch.randn(count, PIXELS, generator=rng), labels


def accuracy(model, count=2000, seed=2):
    images, labels = data(count, seed)
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def train(model, loss, epochs, batch=64, seed=1):
    """Trains a model. loss is called with the images, the outputs and the labels of a batch."""
    images, labels = data(4000, seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for at in range(0, len(labels), batch):
            x, y = images[at:at + batch], labels[at:at + batch]
            optimizer.zero_grad()
            loss(x, model(x), y).backward()
            optimizer.step()
        print("epoch %d/%d accuracy=%.4f" % (epoch + 1, epochs, accuracy(model)), flush=True)
    return model

"""Trains a small network to answer as a large one does (distillation), and saves it as student.pt.

The loss of a batch is alpha * KL(student / T, teacher / T) * T^2 + (1 - alpha) * CE(student, labels). The temperature T
makes the teacher's second choices visible; T^2 keeps the size of the gradient, which falls with 1 / T^2.
"""
import argparse

import torch
from torch.nn import functional

import model


def loss(student, teacher, labels, temperature, alpha):
    soft = functional.kl_div(functional.log_softmax(student / temperature, dim=1),
                             functional.softmax(teacher / temperature, dim=1), reduction="batchmean")
    return alpha * soft * temperature ** 2 + (1 - alpha) * functional.cross_entropy(student, labels)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--temperature", type=float, default=4.0)
    p.add_argument("--alpha", type=float, default=0.7)
    p.add_argument("--teacher-width", type=int, default=256)
    p.add_argument("--student-width", type=int, default=64)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", default="student.pt")
    a = p.parse_args()
    torch.manual_seed(a.seed)
    teacher = model.train(model.build(a.teacher_width), lambda x, s, y: functional.cross_entropy(s, y), a.epochs)
    teacher.eval()

    def of_batch(x, s, y):
        with torch.no_grad():
            t = teacher(x)
        return loss(s, t, y, a.temperature, a.alpha)

    student = model.train(model.build(a.student_width), of_batch, a.epochs)
    torch.save({"width": a.student_width, "state": student.state_dict()}, a.out)
    print("teacher=%.4f student=%.4f" % (model.accuracy(teacher), model.accuracy(student)))


if __name__ == "__main__":
    main()

"""A callback for the Trainer of Lightning (the package lightning, or pytorch_lightning).

    from scrimp.lightning import ScrimpCallback, newest
    trainer = Trainer(callbacks=[ScrimpCallback()], ...)
    trainer.fit(model, ckpt_path=newest())

It reports progress and logged metrics, saves when scrimp wants a checkpoint,
and after SIGTERM saves at the end of the batch and stops. It keeps one
checkpoint, "scrimp-step=N.ckpt"; those of ModelCheckpoint may lie in the same
folder.
"""

import os
import re
import shutil
from typing import Optional

import scrimp

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback
    except ImportError as e:
        raise ImportError("scrimp.lightning needs the package lightning: pip install lightning") from e

__all__ = ["ScrimpCallback", "newest"]

_NAME = re.compile(r"scrimp-step=(\d+)\.ckpt")
_ASIDE = ".tmp"  # what ends so is never taken for a part of a checkpoint


def newest(folder: Optional[str] = None) -> Optional[str]:
    """The callback's newest checkpoint in folder (scrimp's, unless named), or None: for fit's ckpt_path."""
    folder = folder or scrimp.checkpoint_dir()
    names = os.listdir(folder) if folder and os.path.isdir(folder) else []
    found = [(int(m.group(1)), m.group(0)) for m in map(_NAME.fullmatch, names) if m]
    return os.path.join(folder, max(found)[1]) if found else None


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


class ScrimpCallback(Callback):
    """Joins a Trainer to scrimp. Elsewhere it changes nothing.

    folder: where to save (scrimp's, unless named). every: batches between two
    questions whether to save or stop; with several ranks each is a small all-reduce.
    """

    def __init__(self, folder: Optional[str] = None, every: int = 1):
        super().__init__()
        self._folder = folder
        self._every = max(1, every)
        self._last = -1  # step of the newest save
        self._total = None

    def on_train_start(self, trainer, pl_module):
        if scrimp.active():
            self._total = getattr(trainer, "estimated_stepping_batches", None)
        self._report(trainer)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self._report(trainer)
        if not scrimp.active() or batch_idx % self._every:
            return
        # Lightning has its own handler of SIGTERM, which only sets this flag.
        stop = getattr(trainer, "received_sigterm", False) or scrimp.should_stop()
        stop = trainer.strategy.reduce_boolean_decision(stop, all=False)
        if stop or trainer.strategy.reduce_boolean_decision(scrimp.should_checkpoint(), all=False):
            self._save(trainer)
        if stop:
            trainer.should_stop = True

    def on_train_end(self, trainer, pl_module):
        self._report(trainer)
        scrimp.flush()

    def _save(self, trainer):
        step = trainer.global_step
        if step == self._last:  # between two optimiser steps of accumulated gradients
            return
        folder = self._folder or scrimp.checkpoint_dir()
        path = os.path.join(folder, "scrimp-step=%d.ckpt" % step)
        trainer.save_checkpoint(path + _ASIDE)  # on all ranks; may be a folder
        if trainer.is_global_zero:
            _remove(path)
            os.replace(path + _ASIDE, path)
            for name in os.listdir(folder):
                old = os.path.join(folder, name)
                if old != path and _NAME.fullmatch(name[: -len(_ASIDE)] if name.endswith(_ASIDE) else name):
                    _remove(old)
            scrimp.saved(step)
        trainer.strategy.barrier()
        self._last = step

    def _report(self, trainer):
        if trainer.is_global_zero:
            metrics = {str(k): v for k, v in trainer.logged_metrics.items() if k not in ("step", "total", "epoch")}
            scrimp.progress(trainer.global_step, total=self._total, epoch=trainer.current_epoch, **metrics)

"""A callback for the Trainer of Hugging Face's transformers.

    from scrimp.huggingface import ScrimpCallback
    args = TrainingArguments(output_dir=scrimp.checkpoint_dir(), save_total_limit=2, ...)
    trainer = Trainer(..., args=args, callbacks=[ScrimpCallback()])
    trainer.train(resume_from_checkpoint=newest(args.output_dir))

It reports progress where the Trainer logs, lets the Trainer save when scrimp
wants a checkpoint, and after SIGTERM saves at the end of the step and stops.
With enable_jit_checkpoint=True the Trainer does the last by itself; it waits
3 s after the signal before it saves, so the job's grace has to be 3 s longer
than a step and a save take.
"""

import os
import re
import sys
from typing import Any, Optional

import scrimp

try:
    from transformers import TrainerCallback
except ImportError as e:
    raise ImportError("scrimp.huggingface needs the package transformers: pip install transformers") from e

__all__ = ["ScrimpCallback", "newest"]


def newest(folder: Optional[str] = None) -> Optional[str]:
    """The checkpoint-N of folder (scrimp's, unless named) with the largest N that is complete, or None."""
    folder = folder or scrimp.checkpoint_dir()
    best, path = -1, None
    for name in os.listdir(folder) if folder and os.path.isdir(folder) else []:
        m = re.fullmatch(r"checkpoint-(\d+)", name)
        whole = os.path.join(folder, name)
        # The Trainer writes its state last; a file by the other name marks one it was interrupted in.
        if (m and int(m.group(1)) > best and os.path.isfile(os.path.join(whole, "trainer_state.json"))
                and not os.path.exists(os.path.join(whole, "checkpoint-is-incomplete.txt"))):
            best, path = int(m.group(1)), whole
    return path


def agreed(wish: int, device: Any = None) -> int:
    """The largest wish of all ranks: ranks that part company wait for each other for ever."""
    torch = sys.modules.get("torch")  # where nobody has loaded it there is one rank
    dist = getattr(torch, "distributed", None)
    if dist is None or not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return wish
    votes = torch.tensor([wish], device=device if dist.get_backend() == "nccl" else "cpu")
    dist.all_reduce(votes, op=dist.ReduceOp.MAX)
    return int(votes.item())


class ScrimpCallback(TrainerCallback):
    """Joins a Trainer to scrimp. Elsewhere it changes nothing.

    every: steps between two questions whether to save or stop. With several
    ranks each question is a small all-reduce.
    """

    def __init__(self, every: int = 1):
        self._every = max(1, every)

    def on_train_begin(self, args, state, control, **kwargs):
        if scrimp.active() and not getattr(args, "enable_jit_checkpoint", False):
            scrimp.catch_sigterm()
        self._report(state, {})

    def on_step_end(self, args, state, control, **kwargs):
        if not scrimp.active() or state.global_step % self._every:
            return control
        wish = 0
        if not getattr(args, "enable_jit_checkpoint", False) and scrimp.should_stop():
            wish = 2
        elif scrimp.should_checkpoint():
            wish = 1
        wish = agreed(wish, getattr(args, "device", None))
        if wish > 0:
            control.should_save = True
        if wish > 1:
            control.should_training_stop = True
        return control

    def on_log(self, args, state, control, logs=None, **kwargs):
        self._report(state, logs or {})

    def on_save(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            scrimp.saved(state.global_step)

    def on_train_end(self, args, state, control, **kwargs):
        self._report(state, {})
        scrimp.flush()

    @staticmethod
    def _report(state, logs):
        if state.is_world_process_zero:
            numbers = {k: v for k, v in logs.items() if k not in ("step", "total", "epoch")}
            scrimp.progress(state.global_step, total=state.max_steps if state.max_steps > 0 else None,
                            epoch=state.epoch, **numbers)

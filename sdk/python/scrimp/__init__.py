"""What a training program can tell scrimp, and ask it.

    import scrimp

    step = load_newest(scrimp.checkpoint_dir())
    while step < total:
        loss = train_step()
        step += 1
        scrimp.progress(step, total=total, loss=loss)
        if scrimp.should_checkpoint() or scrimp.should_stop():
            save(scrimp.checkpoint_dir(), step)
            scrimp.saved(step)
        if scrimp.should_stop():
            break

Nothing here is needed for a program to run under scrimp, and nothing here
needs scrimp for a program to run: elsewhere the calls do nothing, questions are
answered with False, and what is not known is None, never 0. No call raises,
except search(): it raises SearchError.
All calls may be made every step: what goes to the agent is limited to a few
short requests a second on the loopback interface, each at most 1 s (saved: see
there), and after one that fails the agent is left alone for some seconds.
"""

from decimal import Decimal
from typing import Optional

from ._agent import Agent
from ._search import Search, SearchError, Trial, search

__version__ = "0.1.0"
__all__ = [
    "active", "progress", "saved", "should_checkpoint", "should_stop", "catch_sigterm", "spent", "currency",
    "budget_left", "time_to_deadline", "checkpoint_dir", "restored", "flush", "search", "Search", "SearchError", "Trial",
]

_agent = Agent()


def active() -> bool:
    """Whether the program runs under scrimp."""
    return _agent.active()


def progress(step: int, total: Optional[int] = None, epoch: Optional[float] = None, **metrics: float) -> None:
    """Reports the step that was finished, and any numbers by name.

    Of calls that follow each other quickly the newest values are sent; of the metric
    that the job is judged by (metric.name in its file) each is, up to ten a second. A NaN is
    sent as it is: scrimp can stop a run that diverged. Tensors of one element
    and numpy's numbers are numbers; what is none is left out. Where the program
    uses PyTorch on an accelerator its peak_memory_gb is added: estimates of later
    runs learn from it.
    """
    _agent.progress(step, total, epoch, metrics)


def saved(step: int, timeout: float = 30.0) -> bool:
    """Says that the checkpoint folder is complete as of this step.

    Waits until the agent has its own copy, so that the program may change the
    folder again; the upload goes on in the background. A copy is a link where
    the file system has links, so this is short; a slow disk can take up to
    `timeout` seconds. True where the agent has it; False elsewhere.
    """
    return _agent.saved(step, timeout)


def should_checkpoint() -> bool:
    """Whether now is a good time to save: the interval has passed, or the machine will be interrupted."""
    return _agent.should_checkpoint()


def should_stop() -> bool:
    """Whether to save, call saved(), and exit: SIGTERM has come, or scrimp asks for it.

    Under scrimp the first call catches SIGTERM, if the program has no handler
    of its own (see catch_sigterm); without that the signal would end the
    program before it could ask.
    """
    return _agent.should_stop()


def catch_sigterm() -> bool:
    """Lets SIGTERM set should_stop() instead of ending the program, under scrimp or not.

    A handler that is there already is still called. Only the main thread can do
    this; elsewhere it returns False.
    """
    return _agent.catch_sigterm()


def spent() -> Optional[Decimal]:
    """What the job has cost so far over all its machines, in currency(); None where unknown."""
    return _agent.amount("spent")


def budget_left() -> Optional[Decimal]:
    """What may still be spent, in currency(); None where there is no budget or it is unknown."""
    return _agent.amount("budget_left")


def currency() -> Optional[str]:
    """The currency of spent() and budget_left(), such as USD; None where unknown."""
    return _agent.currency()


def time_to_deadline() -> Optional[float]:
    """Seconds of real time until the deadline, negative after it; None where there is none or it is unknown."""
    return _agent.time_to_deadline()


def checkpoint_dir(default: Optional[str] = "checkpoints") -> Optional[str]:
    """The folder to save in. Under scrimp it exists and holds what was saved last; elsewhere it is `default`."""
    return _agent.checkpoint_dir(default)


def restored() -> Optional[str]:
    """The name of the checkpoint that scrimp put into the folder; None where it holds none."""
    return _agent.restored()


def flush() -> None:
    """Sends the newest progress now. Done by itself at the program's end."""
    _agent.flush()

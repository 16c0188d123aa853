"""The program's side of the agent's HTTP API, and of its environment."""

import atexit
import http.client
import json
import math
import os
import signal
import sys
import threading
import time
from decimal import Decimal, InvalidOperation
from typing import Any, Callable, Dict, List, Mapping, Optional
from urllib.parse import urlsplit

TIMEOUT = 1.0  # seconds a request may take
SPACING = 0.25  # seconds between two reports of progress
FRESH = 0.5  # seconds for which the agent's answer is not asked for again
QUIET = 5.0  # seconds without a request after one that failed
MOST = 1000  # values of the metric that wait for an agent


class Agent:
    """Speaks to the agent. No method raises; where there is no agent all do nothing."""

    def __init__(self, env: Optional[Mapping[str, str]] = None, clock: Callable[[], float] = time.monotonic):
        self._env = os.environ if env is None else env
        self._clock = clock
        self._lock = threading.Lock()
        self._stop = False  # SIGTERM came
        self._catching = False
        self._asked = False  # whether should_stop has tried to catch SIGTERM
        self._pending: Optional[Dict[str, Any]] = None
        self._values: List[Dict[str, Any]] = []  # each value of the metric that the job is judged by
        self._hinted = False
        self._sent_at = float("-inf")
        self._state: Dict[str, Any] = {}
        self._state_at = float("-inf")
        self._quiet_until = float("-inf")
        self._exit_pid = 0

    # What the environment says.

    def active(self) -> bool:
        return bool(self._env.get("SCRIMP_JOB") or self._env.get("SCRIMP_AGENT_URL"))

    def checkpoint_dir(self, default: Optional[str]) -> Optional[str]:
        return self._env.get("SCRIMP_CHECKPOINT_DIR") or default

    def restored(self) -> Optional[str]:
        return self._env.get("SCRIMP_RESTORED") or None

    # What the program says.

    def progress(self, step: Any, total: Any, epoch: Any, metrics: Mapping[str, Any]) -> None:
        if not self.active():
            return
        report: Dict[str, Any] = {}
        for name, value, kind in (("step", step, int), ("total", total, int), ("epoch", epoch, float)):
            n = number(value)
            try:
                if n is not None and math.isfinite(n):
                    report[name] = kind(n)
            except (ValueError, OverflowError):
                pass  # too large to be one
        if "step" not in report:
            return
        with self._lock:
            due = self._clock() - self._sent_at >= SPACING or report["step"] == report.get("total")
            numbers = {}
            judged = self._env.get("SCRIMP_METRIC")
            for name, value in metrics.items():
                if judged and str(name) == judged:  # none of its values is left out, and it is read when it is sent
                    self._keep_value(report, judged, value)
                    continue
                # A tensor is read only where a report is sent: reading one waits for
                # the GPU, and keeping one keeps its graph in memory.
                n = number(value) if due or isinstance(value, (int, float)) else None
                if n is not None:
                    numbers[str(name)] = n
            if due and "peak_memory_gb" not in numbers:
                peak = peak_memory_gb()
                if peak is not None:
                    numbers["peak_memory_gb"] = peak
            if numbers:
                report["metrics"] = numbers
            before = self._pending
            if before and "metrics" in before:  # a metric that is not in every report is not lost
                report["metrics"] = {**before["metrics"], **numbers}
            self._pending = report
            if self._exit_pid != os.getpid():
                self._exit_pid = os.getpid()
                atexit.register(self.flush)
            if due:
                self._send_pending()

    def _keep_value(self, report: Mapping[str, Any], name: str, value: Any) -> None:
        """Keeps a value until it is sent. A tensor's graph is not kept."""
        try:
            value = value.detach() if hasattr(value, "detach") else value
        except Exception:  # it has no graph
            pass
        one = {k: report[k] for k in ("step", "epoch") if k in report}
        self._values.append({**one, "metrics": {name: value}})
        del self._values[:-MOST]

    def _take_values(self) -> List[Dict[str, Any]]:
        """The values that wait, read, without what is no number."""
        values, self._values = self._values, []
        read = [{**one, "metrics": {k: number(v) for k, v in one["metrics"].items()}} for one in values]
        return [one for one in read if None not in one["metrics"].values()]

    def flush(self) -> None:
        with self._lock:
            if self._exit_pid == os.getpid():
                self._send_pending()

    def _send_pending(self) -> None:
        report, self._pending = self._pending, None
        if report is None:
            return
        self._sent_at = self._clock()
        values = self._take_values()
        if self._env.get("SCRIMP_AGENT_URL"):
            body = values + [report] if values else report
            if self._request("POST", "/v1/progress", body, TIMEOUT) is None and self._pending is None:
                self._pending, self._values = report, values  # the newest is kept for later, and each value
            return
        path = self._env.get("SCRIMP_PROGRESS_FILE")
        if path:
            try:
                with open(path, "a", encoding="utf-8") as f:
                    for one in values + [report]:
                        line = {k: v for k, v in one.items() if k != "metrics"}
                        line.update(one.get("metrics", {}))
                        f.write(json.dumps(line) + "\n")
            except OSError:
                pass

    def _hint(self, answer: bytes) -> None:
        """Says once, in the program's output, why the agent takes no more."""
        if self._hinted:
            return
        self._hinted = True
        try:
            sys.stderr.write("scrimp: %s\n" % json.loads(answer).get("detail", "reported too often"))
        except Exception:  # a report is never worth a training run
            pass

    def saved(self, step: Any, timeout: float) -> bool:
        n = number(step)
        if n is None or not math.isfinite(n):
            return False
        with self._lock:
            self._send_pending()
            self._quiet_until = float("-inf")  # a save is worth a try
            done = self._request("POST", "/v1/saved", {"step": int(n)}, timeout) is not None
            self._state.pop("should_checkpoint", None)  # it is answered
            return done

    # What scrimp says.

    def should_checkpoint(self) -> bool:
        return self._ask().get("should_checkpoint") is True

    def should_stop(self) -> bool:
        if not self._asked and self.active():
            self._asked = True
            if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                self.catch_sigterm()
        return self._stop or self._ask().get("should_stop") is True

    def amount(self, name: str) -> Optional[Decimal]:
        value = self._ask().get(name)
        try:
            d = Decimal(value) if isinstance(value, str) and value else None
        except InvalidOperation:
            return None
        return d if d is not None and d.is_finite() else None

    def currency(self) -> Optional[str]:
        value = self._ask().get("currency")
        return value if isinstance(value, str) and value else None

    def time_to_deadline(self) -> Optional[float]:
        value = self._ask().get("time_to_deadline_s")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return float(value) - (self._clock() - self._state_at)

    def catch_sigterm(self) -> bool:
        if self._catching:
            return True
        try:
            before = signal.getsignal(signal.SIGTERM)

            def note(signum: int, frame: Any) -> None:
                self._stop = True
                if callable(before):
                    before(signum, frame)

            signal.signal(signal.SIGTERM, note)
        except (ValueError, OSError):  # not the main thread
            return False
        self._catching = True
        return True

    def _ask(self) -> Dict[str, Any]:
        """The agent's newest answer, at most FRESH seconds old; empty where there is none."""
        if not self._env.get("SCRIMP_AGENT_URL"):
            return {}
        with self._lock:
            if self._clock() - self._state_at < FRESH:
                return self._state
            answer = self._request("GET", "/v1/state", None, TIMEOUT)
            self._state_at = self._clock()
            self._state = {}
            if answer:
                try:
                    state = json.loads(answer)
                except ValueError:
                    state = None
                if isinstance(state, dict):
                    self._state = state
            return self._state

    def _request(self, method: str, path: str, body: Any, timeout: float) -> Optional[bytes]:
        """The answer's body, or None where there is no agent, it refuses, or it does not answer in time."""
        url = self._env.get("SCRIMP_AGENT_URL")
        if not url or self._clock() < self._quiet_until:
            return None
        connection = None
        try:
            at = urlsplit(url)
            kind = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
            connection = kind(at.hostname or "127.0.0.1", at.port, timeout=timeout)
            headers = {"Authorization": "Bearer " + self._env.get("SCRIMP_AGENT_TOKEN", ""), "Connection": "close"}
            data = None
            if body is not None:
                data = json.dumps(body).encode()
                headers["Content-Type"] = "application/json"
            connection.request(method, at.path.rstrip("/") + path, data, headers)
            answer = connection.getresponse()
            if 200 <= answer.status < 300:
                return answer.read(1 << 20)
            if path == "/v1/progress" and answer.status in (400, 429):  # it has taken what it takes
                answer_text = answer.read(1 << 20)
                self._hint(answer_text)
                return answer_text
        except Exception:  # a report is never worth a training run
            self._quiet_until = self._clock() + QUIET
        finally:
            if connection is not None:
                connection.close()
        return None


def peak_memory_gb() -> Optional[float]:
    """The most memory that PyTorch has held on this process's accelerator, in GB of 1e9 bytes.

    None where the program does not use PyTorch on one: nothing is imported or begun for it.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        if cuda is not None and cuda.is_initialized():
            peak = cuda.max_memory_reserved()
            return peak / 1e9 if peak > 0 else None
    except Exception:  # a report is never worth a training run
        pass
    return None


def number(value: Any) -> Optional[float]:
    """value as an int or float; None where it is no single number."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    try:
        if hasattr(value, "item"):  # a tensor or numpy's
            value = value.item()
            return value if isinstance(value, (int, float)) else None
        if hasattr(value, "__float__") and not isinstance(value, str):
            return float(value)
    except Exception:  # more than one element, or on its way
        pass
    return None

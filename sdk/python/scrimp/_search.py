"""A search for the best configuration whose trials the program itself trains."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from decimal import Decimal, InvalidOperation
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Union
from urllib.parse import urlsplit

from ._agent import number

TIMEOUT = 30.0  # seconds a request may take
PATIENCE = 120.0  # seconds for which an unreachable server is asked again
PAUSE = 1.0  # seconds between two questions where nothing is to be trained yet
MOST = 1e150  # a value beyond it is none that scrimp compares
DECIMALS = 12  # of an amount of dollars
SPAN = 0.1  # the first pause after a failed request, in seconds


class SearchError(Exception):
    """What scrimp refuses, with its fix."""


# The arguments of search by the fields of a study file and of the API.
ARGUMENTS = {"budget.usd": "budget", "budget.trials": "trials", "fidelity": "epochs", "fidelity.max": "epochs",
             "parallel": "workers", "at_once": "workers", "metric.name": "metric", "metric.goal": "goal",
             "params": "parameters", "per_hour": "usd_per_hour"}


class _Unreachable(Exception):
    pass


class Trial:
    """A configuration to train: params by name, and at, the epochs that it has trained so far."""

    def __init__(self, search: "Search", answer: Mapping[str, Any]):
        trial = answer["trial"]
        self._search = search
        self._since = search._clock()
        self.number: int = trial["number"]
        self.params: Dict[str, Any] = json.loads(trial["params_json"])
        self.at: float = trial["at"]
        self.until: float = trial["until"]
        self.max: float = trial["max"]
        self.do = "continue"

    def epochs(self) -> Iterator[int]:
        """The numbers of the epochs that remain, as long as the search wants the trial trained."""
        epoch = int(self.at) + 1
        while self.do == "continue" and epoch <= self.max:
            yield epoch
            epoch += 1

    def report(self, epoch: Optional[float], value: Any, cost: Any = None) -> bool:
        """Tells the metric's value after an epoch, and returns whether to train on.

        epoch is None where the search has no epochs. NaN and infinity end the trial.
        A value of another type than a number raises TypeError. cost is in dollars,
        since the report before; without it the search counts the time, at
        usd_per_hour, or what the job itself costs. After False, do says whether the
        trial is to be saved (pause) or not (stop).
        """
        n = number(value)
        if n is None:
            raise TypeError("value is %.80r, of the type %s: give a number; float(\"nan\") ends the trial"
                            % (value, type(value).__name__))
        if epoch is not None and float(epoch) <= self.at:
            return self.do == "continue"  # it was told before the program was interrupted
        told: Dict[str, Any] = {"trial": self.number, "value": n}
        if not abs(n) <= MOST:
            told.update(value=None, diverged=True)
        if epoch is not None:
            told["at"] = float(epoch)
        now = self._search._clock()
        told["program"] = self._search.program
        told["seconds"] = max(0.0, now - self._since)
        if cost is not None:
            told["cost"] = _plain("cost", cost)
        answer = self._search._transport.told(self._search.name, told)
        self._since = self._search._clock()
        self.do = answer["do"]
        if epoch is not None:
            self.at = float(epoch)
            self.until = answer["trial"]["until"]
        self._search.state = answer["search"]
        return self.do == "continue"


class Search:
    """Yields trials until the search is over."""

    def __init__(self, name: str, worker: int, transport: Any, clock: Callable[[], float] = time.monotonic,
                 sleep: Callable[[float], None] = time.sleep):
        self.name = name
        self.worker = worker
        self.program = uuid.uuid4().hex  # tells this loop from another one with the same worker
        self.state: Dict[str, Any] = {}
        self._transport = transport
        self._clock = clock
        self._sleep = sleep

    def __iter__(self) -> Iterator[Trial]:
        last = None
        while True:
            answer = self._transport.ask(self.name, self.worker, self.program)
            self.state = answer["search"]
            if answer.get("note"):
                print("scrimp: %s" % answer["note"], file=sys.stderr)
            if answer["do"] == "end":
                return
            if answer["do"] == "wait":
                self._sleep(PAUSE)
                continue
            trial = Trial(self, answer)
            if last == (trial.number, trial.at):
                raise SearchError("trial %d had no report: call trial.report(epoch, value) in the loop" % trial.number)
            last = (trial.number, trial.at)
            yield trial

    @property
    def best(self) -> Optional[Dict[str, Any]]:
        """The best trial so far: number, value, epoch and params; None where there is no value yet."""
        self.state = self._transport.show(self.name)
        trial = self.state["best"]
        if trial is None:
            return None
        return {"number": trial["number"], "value": trial["best"], "epoch": trial["best_at"],
                "params": json.loads(trial["params_json"])}

    @property
    def over(self) -> str:
        """Why the search is over: budget_spent, search_done or plateau; empty while it goes on."""
        return self.state.get("over", "")


def search(name: str, parameters: Mapping[str, Any], metric: str = "loss", goal: str = "minimize",
           epochs: Optional[int] = None, budget: Any = None, trials: Optional[int] = None,
           searcher: Optional[str] = None, usd_per_hour: Any = None, worker: int = 0, workers: int = 1,
           seed: int = 0) -> Search:
    """Opens a search, or goes on with the one of that name.

        for trial in scrimp.search("mine", {"lr": {"min": 1e-4, "max": 0.1, "log": True}}, epochs=9, trials=20):
            for epoch in trial.epochs():
                trial.report(epoch, train(trial.params["lr"]))

    A parameter is a list of values, or min and max, which are whole numbers for a
    whole parameter; log draws it by its logarithm. budget is in dollars; give it,
    trials or both. In a job the server that runs the job keeps the search;
    elsewhere the command scrimp reaches the server that you are logged in to.
    """
    if goal not in ("minimize", "maximize"):
        raise SearchError("goal is %r: write minimize or maximize" % (goal,))
    asked = {"name": name, "metric": metric, "goal": goal, "epochs": epochs, "trials": trials,
             "budget": None if budget is None else _plain("budget", budget),
             "searcher": searcher or ("random" if epochs is None else "default"),
             "usd_per_hour": None if usd_per_hour is None else _plain("usd_per_hour", usd_per_hour),
             "workers": workers, "seed": seed}
    transport: Any = _InJob(os.environ) if os.environ.get("SCRIMP_AGENT_URL") else _Command()
    transport.open(asked, {n: _parameter(n, p) for n, p in parameters.items()})
    return Search(name, worker, transport)


def _plain(argument: str, value: Any) -> str:
    """An amount of dollars as a plain decimal, without an exponent."""
    try:
        text = value if isinstance(value, str) else value if isinstance(value, Decimal) else number(value)
        amount = Decimal(str(text).strip().lstrip("$"))
    except InvalidOperation:
        amount = Decimal("nan")
    if not amount.is_finite() or amount < 0 or amount > Decimal("1e12"):
        raise SearchError("%s is %.80r: give an amount of dollars, such as 0.25" % (argument, value))
    if int(amount.as_tuple().exponent) < -DECIMALS:
        amount = amount.quantize(Decimal(1).scaleb(-DECIMALS))
    return format(amount, "f")


def _fault(text: str) -> str:
    """An error of the command in the words of this module: without its file, its request, and the fields' names."""
    try:
        text = str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        pass
    lines = []
    for line in text.splitlines():
        line = re.sub(r"^study\.yaml(:\d+)*: |^(GET|POST|DELETE) /\S*: ", "", line)
        line = re.sub(r"^`([\w.]+)`", lambda m: _argument(m.group(1)), line)
        lines.append(re.sub(r"^study\.[\w.\[\]]+(?=: )", lambda m: _argument(m.group(0)), line))
    return "\n".join(lines)


def _argument(field: str) -> str:
    """The argument of search that a field of a study file or of the API stands for."""
    field = re.sub(r"\[.*", "", re.sub(r"^study\.", "", field))
    return ARGUMENTS.get(field, field)


def _parameter(name: str, p: Any) -> Dict[str, Any]:
    """The parameter as values, or as min, max, log and int."""
    if isinstance(p, (list, tuple)):
        return {"values": list(p)}
    if not isinstance(p, Mapping) or not {"min", "max"} <= set(p) <= {"min", "max", "log"}:
        raise SearchError("parameter %s: give a list of values, or min and max, with log=True for a logarithmic scale" % name)
    whole = not p.get("log") and all(isinstance(p[k], int) for k in ("min", "max"))
    return {"min": p["min"], "max": p["max"], "log": bool(p.get("log")), "int": whole}


class _InJob:
    """Calls the server through the agent of the machine on which the job runs."""

    def __init__(self, env: Mapping[str, str], sleep: Callable[[float], None] = time.sleep,
                 clock: Callable[[], float] = time.monotonic):
        self._env = env
        self._sleep = sleep
        self._clock = clock

    def open(self, asked: Mapping[str, Any], parameters: Mapping[str, Dict[str, Any]]) -> None:
        study: Dict[str, Any] = {"metric": asked["metric"], "maximize": asked["goal"] == "maximize",
                                 "searcher": asked["searcher"], "at_once": asked["workers"], "seed": asked["seed"],
                                 "params": []}
        for n, p in parameters.items():
            if "values" in p:
                p = {"values": [json.dumps(v) for v in p["values"]]}
            study["params"].append({"name": n, **p})
        if asked["epochs"] is not None:
            study["fidelity"] = {"name": "epoch", "min": 1, "max": asked["epochs"]}
        if asked["trials"] is not None:
            study["trials"] = asked["trials"]
        new = {"name": asked["name"], "study": study}
        if asked["budget"] is not None:
            new["budget"] = str(asked["budget"])
        if asked["usd_per_hour"] is not None:
            new["per_hour"] = str(asked["usd_per_hour"])
        self._call({"name": asked["name"], "open": new})

    def ask(self, name: str, worker: int, program: str) -> Dict[str, Any]:
        return self._call({"name": name, "ask": {"worker": worker, "program": program}})

    def told(self, name: str, value: Mapping[str, Any]) -> Dict[str, Any]:
        return self._call({"name": name, "tell": value})

    def show(self, name: str) -> Dict[str, Any]:
        search: Dict[str, Any] = self._call({"name": name})["search"]
        return search

    def _call(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """The answer. Each call may be repeated, so one that fails for a while is."""
        until, pause = self._clock() + PATIENCE, SPAN
        while True:
            try:
                return self._once(body)
            except _Unreachable as e:
                if self._clock() + pause > until:
                    raise SearchError("the server does not answer: %s" % e) from None
            self._sleep(pause)
            pause = min(2 * pause, 5.0)

    def _once(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        at = urlsplit(self._env["SCRIMP_AGENT_URL"])
        connection = http.client.HTTPConnection(at.hostname or "127.0.0.1", at.port, timeout=TIMEOUT)
        try:
            connection.request("POST", at.path.rstrip("/") + "/v1/search", json.dumps(body).encode(), {
                "Authorization": "Bearer " + self._env.get("SCRIMP_AGENT_TOKEN", ""), "Content-Type": "application/json",
                "Connection": "close"})
            answer = connection.getresponse()
            status, text = answer.status, answer.read(4 << 20)
        except (OSError, http.client.HTTPException) as e:
            raise _Unreachable(str(e)) from None
        finally:
            connection.close()
        try:
            value = json.loads(text)
        except ValueError:
            value = {}
        if status < 300:
            return dict(value)
        says = ": ".join(value[k] for k in ("title", "detail", "fix") if value.get(k)) or "status %d" % status
        if value.get("field"):
            says = "%s: %s" % (_argument(value["field"]), says)
        if status >= 500 or status == 429:
            raise _Unreachable(says)
        raise SearchError(says)


class _Command:
    """Calls the server by the command scrimp, which knows where it is and how to log in."""

    def __init__(self, run: Callable[..., Any] = subprocess.run):
        self._run = run
        self._file: Optional[str] = None

    def open(self, asked: Mapping[str, Any], parameters: Mapping[str, Dict[str, Any]]) -> None:
        study: Dict[str, Any] = {"name": asked["name"], "metric": {"name": asked["metric"], "goal": asked["goal"]},
                                 "parallel": asked["workers"], "seed": asked["seed"], "searcher": asked["searcher"],
                                 "parameters": {}, "budget": {}}
        for n, p in parameters.items():
            study["parameters"][n] = _sweep(p)
        if asked["epochs"] is not None:
            study["fidelity"] = {"name": "epoch", "min": 1, "max": asked["epochs"]}
        for field, key in (("usd", "budget"), ("trials", "trials")):
            if asked[key] is not None:
                study["budget"][field] = str(asked[key]) if field == "usd" else asked[key]
        if asked["usd_per_hour"] is not None:
            study["usd_per_hour"] = str(asked["usd_per_hour"])
        self._study = study

    def ask(self, name: str, worker: int, program: str) -> Dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "study.yaml")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(self._study, f)  # JSON is YAML
            return self._json(["tune", "ask", path, "--worker", str(worker), "--program", program], (0, 3, 4))

    def told(self, name: str, value: Mapping[str, Any]) -> Dict[str, Any]:
        args = ["tune", "tell", name, str(value["trial"])]
        if "at" in value:
            args += ["--at", repr(value["at"])]
        if "cost" in value:
            args += ["--usd", value["cost"]]
        args += ["--seconds", repr(value["seconds"]), "--program", value["program"]]
        return self._json(args + ["--", "nan" if value["value"] is None else repr(float(value["value"]))], (0,))

    def show(self, name: str) -> Dict[str, Any]:
        return {"best": self._json(["tune", "best", name], (0,))}

    def _json(self, args: List[str], good: Any) -> Any:
        command: Union[str, None] = os.environ.get("SCRIMP_COMMAND") or shutil.which("scrimp")
        if not command:
            raise SearchError("the command scrimp is not on the PATH: install it, or run the program as a job")
        done = self._run([command, *args, "--json"] if "--" not in args else
                         [command, *args[:args.index("--")], "--json", *args[args.index("--"):]],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode not in good:
            raise SearchError(_fault(done.stderr.decode(errors="replace").strip()) or "scrimp ends with %d" % done.returncode)
        return json.loads(done.stdout)


def _sweep(p: Mapping[str, Any]) -> Dict[str, Any]:
    """A parameter in the form of a study file."""
    if "values" in p:
        return {"values": p["values"]}
    if p["log"]:
        return {"distribution": "log_uniform_values", "min": p["min"], "max": p["max"]}
    return {"distribution": "int_uniform" if p["int"] else "uniform", "min": p["min"], "max": p["max"]}

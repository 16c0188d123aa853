import contextlib
import http.server
import io
import json
import threading
import unittest
from decimal import Decimal

from scrimp import _search
from scrimp._search import Search, SearchError, _Command, _fault, _InJob, _parameter
from scrimp._search import search as search_for


class FakeServer:
    """Answers POST /v1/search with prepared answers, in order."""

    def __init__(self, *answers):
        self.answers = list(answers)  # (status, value)
        self.calls = []
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fake.calls.append(body)
                status, value = fake.answers.pop(0)
                if self.path != "/v1/search" or self.headers["Authorization"] != "Bearer t":
                    status, value = 401, {}
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.env = {"SCRIMP_AGENT_URL": "http://127.0.0.1:%d" % self._server.server_address[1], "SCRIMP_AGENT_TOKEN": "t"}

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def answer(do, number=0, at=0.0, until=1.0, over=""):
    trial = None
    if number is not None:
        trial = {"number": number, "params_json": '{"x": 2.5}', "at": at, "until": until, "max": 3.0}
    return 200, {"do": do, "trial": trial, "search": {"over": over, "best": None}}


class Searches(unittest.TestCase):
    def searching(self, *answers):
        fake = FakeServer(*answers)
        self.addCleanup(fake.close)
        self.pauses = []
        self.now = 100.0
        job = _InJob(fake.env, self.pauses.append, lambda: self.now)
        return fake, Search("mine", 2, job, lambda: self.now, self.pauses.append)

    def test_a_loop_trains_what_it_is_given_until_the_search_is_over(self):
        fake, search = self.searching(answer("train"), answer("continue", at=1, until=2), answer("pause", at=2),
                                      answer("wait", None), answer("train", 1), answer("stop", 1),
                                      answer("end", None, over="budget_spent"))
        seen = []
        for trial in search:
            for epoch in trial.epochs():
                self.now += 2
                seen.append((trial.number, epoch, trial.params["x"], trial.report(epoch, 1 / epoch)))
        self.assertEqual(seen, [(0, 1, 2.5, True), (0, 2, 2.5, False), (1, 1, 2.5, False)])
        told = [c["tell"] for c in fake.calls if "tell" in c]
        self.assertEqual(told[1], {"trial": 0, "value": 0.5, "at": 2.0, "seconds": 2.0, "program": search.program})
        self.assertEqual([c["ask"] for c in fake.calls if "ask" in c],
                         [{"worker": 2, "program": search.program}] * 4)
        self.assertEqual((self.pauses, search.over), ([_search.PAUSE], "budget_spent"))

    def test_what_was_told_before_an_interruption_is_not_told_again(self):
        fake, search = self.searching(answer("train", at=2.0), answer("stop", at=3))
        trial = next(iter(search))
        self.assertTrue(trial.report(1, 9.0))
        self.assertTrue(trial.report(2, 9.0))
        self.assertEqual(list(trial.epochs()), [3])
        trial.report(3, 1.0)
        self.assertEqual(len(fake.calls), 2)

    def test_the_note_that_another_program_was_this_worker_goes_to_stderr(self):
        status, value = answer("train")
        fake, search = self.searching((status, dict(value, note="another program was worker 2")))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            next(iter(search))
        self.assertEqual(said.getvalue(), "scrimp: another program was worker 2\n")
        self.assertNotEqual(search.program, Search("mine", 2, None).program)

    def test_a_value_that_is_no_number_ends_the_trial(self):
        for value in (float("nan"), float("inf"), -float("inf"), 1e300):
            fake, search = self.searching(answer("train"), answer("stop"))
            self.assertFalse(next(iter(search)).report(1, value, cost="0.5"))
            self.assertEqual(fake.calls[1]["tell"],
                             {"trial": 0, "value": None, "diverged": True, "at": 1.0, "seconds": 0.0, "cost": "0.5",
                              "program": search.program})

    def test_a_value_of_another_type_is_an_error(self):
        for value in ("0.5", "abc", None, [1, 2]):
            fake, search = self.searching(answer("train"))
            with self.assertRaisesRegex(TypeError, "give a number"):
                next(iter(search)).report(1, value)
            self.assertEqual(len(fake.calls), 1)

    def test_small_amounts_are_plain_decimals(self):
        for cost, text in ((0.00002, "0.00002"), ("$3", "3"), (Decimal("1E-7"), "0.0000001"), (1, "1"), (0.25, "0.25"),
                           (1 / 3, "0.333333333333"), (0, "0")):
            fake, search = self.searching(answer("train"), answer("stop"))
            next(iter(search)).report(1, 0.5, cost=cost)
            self.assertEqual(fake.calls[1]["tell"]["cost"], text)
        for wrong in ("much", -1, float("nan"), [], "1e99"):
            with self.assertRaisesRegex(SearchError, "budget is .*: give an amount of dollars"):
                search_for("mine", {"x": [1]}, budget=wrong)

    def test_an_error_of_the_command_names_the_argument(self):
        for text, says in (
                ('{"error":"study.yaml:1: `budget.usd` is 2: no\\nstudy.yaml:1:3: `parameters.x.min` 3 is above"}',
                 "budget is 2: no\nparameters.x.min 3 is above"),
                ('{"error":"POST /v1/searches: study.at_once: no"}', "workers: no"),
                ("plain", "plain")):
            self.assertEqual(_fault(text), says)

    def test_a_loop_that_reports_nothing_is_told_so(self):
        _, search = self.searching(answer("train"), answer("train"))
        with self.assertRaisesRegex(SearchError, "trial 0 had no report"):
            for _ in search:
                pass

    def test_a_refusal_is_raised_and_a_failure_is_tried_again(self):
        fake, search = self.searching((503, {"title": "not now"}), answer("train"),
                                      (409, {"field": "study.at_once", "title": "twice", "fix": "keep the first"}))
        trial = next(iter(search))
        with self.assertRaisesRegex(SearchError, "workers: twice: keep the first"):
            trial.report(1, 2.0)
        self.assertEqual((len(fake.calls), self.pauses), (3, [_search.SPAN]))

    def test_parameters_are_values_or_ranges(self):
        self.assertEqual(_parameter("a", [1, 2]), {"values": [1, 2]})
        self.assertEqual(_parameter("a", {"min": 1, "max": 9}), {"min": 1, "max": 9, "log": False, "int": True})
        self.assertEqual(_parameter("a", {"min": 1e-4, "max": 1, "log": True})["int"], False)
        for wrong in ({"min": 1}, {"min": 1, "max": 2, "q": 1}, 3, "abc"):
            with self.assertRaises(SearchError):
                _parameter("a", wrong)

    def test_the_definition_has_the_form_of_the_api(self):
        fake, _ = self.searching((200, {}))
        asked = {"name": "mine", "metric": "acc", "goal": "maximize", "epochs": 5, "budget": "2.5", "trials": None,
                 "searcher": "default", "usd_per_hour": 3, "workers": 2, "seed": 7}
        _InJob(fake.env).open(asked, {"o": {"values": ["adam", 3]}})
        self.assertEqual(fake.calls[0]["open"], {
            "name": "mine", "budget": "2.5", "per_hour": "3",
            "study": {"metric": "acc", "maximize": True, "searcher": "default", "at_once": 2, "seed": 7,
                      "params": [{"name": "o", "values": ['"adam"', "3"]}], "fidelity": {"name": "epoch", "min": 1, "max": 5}}})


class Commands(unittest.TestCase):
    def test_elsewhere_the_command_is_asked(self):
        ran = []

        class Done:
            returncode, stdout, stderr = 3, json.dumps(answer("end", None)[1]).encode(), b""

        def run(args, **_):
            ran.append(args)
            if args[2] == "ask":
                with open(args[3], encoding="utf-8") as f:
                    ran.append(json.load(f))
            return Done

        command = _Command(run)
        command.open({"name": "mine", "metric": "loss", "goal": "minimize", "epochs": None, "budget": None, "trials": 4,
                      "searcher": "random", "usd_per_hour": None, "workers": 1, "seed": 0},
                     {"lr": {"min": 1e-4, "max": 1, "log": True, "int": False}})
        _search.os.environ["SCRIMP_COMMAND"] = "scrimp-here"
        self.addCleanup(_search.os.environ.pop, "SCRIMP_COMMAND")
        self.assertEqual(list(Search("mine", 0, command)), [])
        self.assertEqual(ran[1]["parameters"], {"lr": {"distribution": "log_uniform_values", "min": 1e-4, "max": 1}})
        self.assertEqual(ran[1]["budget"], {"trials": 4})
        Done.returncode, Done.stderr = 1, b"scrimp: no"
        with self.assertRaisesRegex(SearchError, "scrimp: no"):
            command.told("mine", {"trial": 3, "value": -1.5, "at": 2.0, "seconds": 1.0, "program": "p"})
        self.assertEqual(ran[-1], ["scrimp-here", "tune", "tell", "mine", "3", "--at", "2.0", "--seconds", "1.0",
                                   "--program", "p", "--json", "--", "-1.5"])


if __name__ == "__main__":
    unittest.main()

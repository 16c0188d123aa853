import io
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from decimal import Decimal

import scrimp
from scrimp._agent import FRESH, QUIET, SPACING, Agent, number
from tests.fake import Clock, FakeAgent

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class KeepsSignals(unittest.TestCase):
    def setUp(self):
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))


class WithAgent(KeepsSignals):
    def setUp(self):
        super().setUp()
        self.fake = FakeAgent()
        self.addCleanup(self.fake.close)
        self.clock = Clock()
        self.agent = Agent(self.fake.env, self.clock)


class Progress(WithAgent):
    def test_a_report_has_step_total_epoch_and_metrics(self):
        self.agent.progress(3, 10, 0.5, {"loss": 2.25, "lr": 1e-3, "name": "x", "none": None})
        self.assertEqual(self.fake.sent("/v1/progress"),
                         [{"step": 3, "total": 10, "epoch": 0.5, "metrics": {"loss": 2.25, "lr": 1e-3}}])

    def test_the_peak_memory_of_an_accelerator_is_reported_where_pytorch_has_one(self):
        class Cuda:
            begun, peak = True, 71_500_000_000

            def is_initialized(self):
                return self.begun

            def max_memory_reserved(self):
                if self.peak is None:
                    raise RuntimeError("no device")
                return self.peak

        class Torch:
            cuda = Cuda()

        before = sys.modules.get("torch")
        sys.modules["torch"] = Torch
        self.addCleanup(lambda: sys.modules.pop("torch") if before is None else sys.modules.update(torch=before))
        for step, (begun, peak, given, want) in enumerate([
            (True, 71_500_000_000, {}, {"peak_memory_gb": 71.5}),
            (True, 71_500_000_000, {"peak_memory_gb": 3.0}, {"peak_memory_gb": 3.0}),
            (False, 1, {}, None), (True, 0, {}, None), (True, None, {}, None),
        ]):
            self.clock.now += SPACING
            Torch.cuda.begun, Torch.cuda.peak = begun, peak
            self.agent.progress(step, None, None, given)
            self.assertEqual(self.fake.sent("/v1/progress")[-1].get("metrics"), want)

    def test_quick_reports_are_thinned_and_the_newest_is_sent(self):
        for step in range(1000):
            self.agent.progress(step, None, None, {"loss": float(step)})
        self.assertEqual([r["step"] for r in self.fake.sent("/v1/progress")], [0])
        self.clock.now += SPACING
        self.agent.progress(1000, None, None, {"accuracy": 1.0})
        self.assertEqual(self.fake.sent("/v1/progress")[1:], [{"step": 1000, "metrics": {"loss": 999.0, "accuracy": 1.0}}])

    def test_of_the_metric_that_the_job_is_judged_by_each_value_is_sent(self):
        agent = Agent({**self.fake.env, "SCRIMP_METRIC": "acc"}, self.clock)

        class Tensor:
            read = 0

            def detach(self):
                return self

            def item(self):
                Tensor.read += 1
                return 0.5

        agent.progress(1, None, 1, {"acc": 0.25, "lr": 1})
        self.fake.requests.clear()
        agent.progress(2, None, 2, {"acc": Tensor(), "lr": 2})
        agent.progress(3, None, 2, {"lr": 3})
        agent.progress(4, None, 3, {"acc": float("nan")})
        self.assertEqual((self.fake.sent("/v1/progress"), Tensor.read), ([], 0))
        self.fake.refuse = 503
        agent.flush()
        self.fake.refuse = 0
        self.fake.requests.clear()
        self.clock.now += SPACING
        agent.progress(5, None, 4, {"acc": 0.75, "none": None})
        [sent] = self.fake.sent("/v1/progress")
        self.assertTrue(math.isnan(sent[1]["metrics"].pop("acc")))
        self.assertEqual(sent, [
            {"step": 2, "epoch": 2.0, "metrics": {"acc": 0.5}}, {"step": 4, "epoch": 3.0, "metrics": {}},
            {"step": 5, "epoch": 4.0, "metrics": {"acc": 0.75}}, {"step": 5, "epoch": 4.0, "metrics": {"lr": 3}}])

    def test_an_agent_that_refuses_values_is_quoted_once_and_goes_on_being_told(self):
        agent = Agent({**self.fake.env, "SCRIMP_METRIC": "acc"}, self.clock)
        self.fake.refuse = 429
        before, sys.stderr = sys.stderr, io.StringIO()
        try:
            for step in range(3):
                agent.progress(step, None, None, {"acc": step})
                self.clock.now += SPACING
            said = sys.stderr.getvalue()
        finally:
            sys.stderr = before
        self.assertEqual(len(self.fake.sent("/v1/progress")), 3)
        self.assertEqual(said, "scrimp: too often\n")

    def test_values_that_the_agent_cannot_read_are_not_sent_again(self):
        agent = Agent({**self.fake.env, "SCRIMP_METRIC": "acc"}, self.clock)
        self.fake.refuse = 400  # it has taken the good ones
        before, sys.stderr = sys.stderr, io.StringIO()
        try:
            agent.progress(1, None, None, {"acc": 0.5})
            self.assertFalse(agent.saved(1, 1.0))
        finally:
            sys.stderr = before
        self.fake.refuse = 0
        self.fake.requests.clear()
        agent.flush()
        self.assertEqual(self.fake.sent("/v1/progress"), [])

    def test_the_last_step_is_sent_at_once(self):
        self.agent.progress(1, 2, None, {})
        self.agent.progress(2, 2, None, {"loss": 0.5})
        self.assertEqual([r["step"] for r in self.fake.sent("/v1/progress")], [1, 2])

    def test_a_tensor_is_read_only_where_a_report_is_sent(self):
        reads = []

        class Tensor:
            def item(self):
                reads.append(1)
                return 1.5

        for step in range(10):
            self.agent.progress(step, None, None, {"loss": Tensor()})
        self.assertEqual(len(reads), 1)
        self.assertEqual(self.fake.sent("/v1/progress")[0]["metrics"], {"loss": 1.5})

    def test_nan_is_sent_as_python_writes_it(self):
        self.agent.progress(1, None, math.nan, {"loss": math.nan, "gain": math.inf})
        self.assertIn('"loss": NaN', self.fake.requests[0][2])
        self.assertNotIn("epoch", self.fake.sent("/v1/progress")[0])

    def test_what_is_no_step_is_not_sent(self):
        for step in (None, "x", math.nan, math.inf, [1, 2]):
            self.agent.progress(step, None, None, {})
        self.assertEqual(self.fake.requests, [])

    def test_flush_sends_what_waits(self):
        self.agent.progress(1, None, None, {})
        self.agent.progress(2, None, None, {})
        self.agent.flush()
        self.agent.flush()
        self.assertEqual([r["step"] for r in self.fake.sent("/v1/progress")], [1, 2])

    def test_a_report_that_failed_is_sent_later(self):
        self.fake.refuse = 500
        self.agent.progress(1, None, None, {"loss": 1.0})
        self.fake.refuse = 0
        self.clock.now += SPACING
        self.agent.progress(2, None, None, {})
        self.assertEqual(self.fake.sent("/v1/progress")[-1], {"step": 2, "metrics": {"loss": 1.0}})

    def test_without_an_agent_the_progress_file_is_written(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "p.jsonl")
            a = Agent({"SCRIMP_JOB": "j", "SCRIMP_PROGRESS_FILE": path}, self.clock)
            a.progress(1, 9, None, {"loss": 2.5})
            self.clock.now += SPACING
            a.progress(2, None, None, {})
            with open(path) as f:
                self.assertEqual(f.read(), '{"step": 1, "total": 9, "loss": 2.5}\n{"step": 2}\n')


class Questions(WithAgent):
    def test_answers_come_from_the_agent_and_are_asked_for_twice_a_second_at_most(self):
        self.fake.state.update(should_checkpoint=True, spent="0.123456789012", budget_left="1.88", time_to_deadline_s=90.5)
        for _ in range(100):
            self.assertTrue(self.agent.should_checkpoint())
            self.assertFalse(self.agent.should_stop())
            self.assertEqual(self.agent.amount("spent"), Decimal("0.123456789012"))
            self.assertEqual(self.agent.amount("budget_left"), Decimal("1.88"))
            self.assertEqual(self.agent.currency(), "USD")
            self.assertEqual(self.agent.time_to_deadline(), 90.5)
        self.assertEqual(self.fake.asked(), 1)
        self.clock.now += FRESH
        self.fake.state.update(should_stop=True)
        self.assertTrue(self.agent.should_stop())
        self.assertEqual(self.fake.asked(), 2)

    def test_the_deadline_comes_nearer_between_two_answers(self):
        self.fake.state.update(time_to_deadline_s=1.0)
        self.assertEqual(self.agent.time_to_deadline(), 1.0)
        self.clock.now += 0.25
        self.assertEqual(self.agent.time_to_deadline(), 0.75)

    def test_unknown_is_none_and_not_zero(self):
        self.fake.state = {"spent": "", "budget_left": None, "time_to_deadline_s": None}
        self.assertIsNone(self.agent.amount("spent"))
        self.assertIsNone(self.agent.amount("budget_left"))
        self.assertIsNone(self.agent.time_to_deadline())
        self.assertIsNone(self.agent.currency())

    def test_nonsense_is_unknown(self):
        for raw in (b"", b"[]", b"null", b"{", b'{"spent": 3, "should_stop": "yes", "time_to_deadline_s": true}', b'{"spent":"NaN"}'):
            self.fake.raw = raw
            self.clock.now += FRESH
            self.assertFalse(self.agent.should_stop(), raw)
            self.assertIsNone(self.agent.amount("spent"), raw)
            self.assertIsNone(self.agent.time_to_deadline(), raw)

    def test_a_wrong_token_answers_nothing(self):
        a = Agent({**self.fake.env, "SCRIMP_AGENT_TOKEN": "wrong"}, self.clock)
        self.fake.state.update(should_stop=True)
        self.assertFalse(a.should_stop())
        self.assertFalse(a.saved(1, 1.0))

    def test_proxies_are_not_asked(self):
        os.environ["http_proxy"] = "http://127.0.0.1:9"
        self.addCleanup(os.environ.pop, "http_proxy")
        self.assertEqual(self.agent.currency(), "USD")


class Saving(WithAgent):
    def test_saved_tells_the_step_after_the_progress(self):
        self.agent.progress(1, None, None, {})
        self.agent.progress(2, None, None, {})
        self.assertTrue(self.agent.saved(2, 5.0))
        self.assertEqual([p for _, p, _ in self.fake.requests], ["/v1/progress", "/v1/progress", "/v1/saved"])
        self.assertEqual(self.fake.sent("/v1/saved"), [{"step": 2}])

    def test_a_save_answers_the_wish_for_one(self):
        self.fake.state.update(should_checkpoint=True)
        self.assertTrue(self.agent.should_checkpoint())
        self.agent.saved(2, 5.0)
        self.assertFalse(self.agent.should_checkpoint())
        self.clock.now += FRESH
        self.assertTrue(self.agent.should_checkpoint())  # asked anew

    def test_a_refusal_is_false(self):
        self.fake.refuse = 409
        self.assertFalse(self.agent.saved(2, 5.0))
        self.assertFalse(self.agent.saved(None, 5.0))


class Trouble(KeepsSignals):
    def test_outside_scrimp_all_is_quiet(self):
        a = Agent({}, Clock())
        a.progress(1, 2, 3.0, {"loss": 1.0})
        a.flush()
        self.assertFalse(a.active() or a.saved(1, 1.0) or a.should_checkpoint() or a.should_stop())
        for unknown in (a.amount("spent"), a.amount("budget_left"), a.currency(), a.time_to_deadline(), a.restored()):
            self.assertIsNone(unknown)
        self.assertEqual(a.checkpoint_dir("here"), "here")
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)

    def test_the_folder_and_what_was_restored(self):
        a = Agent({"SCRIMP_CHECKPOINT_DIR": "/c", "SCRIMP_RESTORED": "000002-000005"})
        self.assertEqual((a.checkpoint_dir("here"), a.restored()), ("/c", "000002-000005"))
        self.assertIsNone(Agent({"SCRIMP_RESTORED": ""}).restored())

    def test_an_agent_that_is_gone_is_left_alone_for_a_while(self):
        with socket.socket() as s:  # a port that nobody listens on, and that nobody takes
            s.bind(("127.0.0.1", 0))
            clock = Clock()
            a = Agent({"SCRIMP_AGENT_URL": "http://127.0.0.1:%d" % s.getsockname()[1]}, clock)
            tries = []
            original = a._request
            a._request = lambda *args: tries.append(clock.now >= a._quiet_until) or original(*args)
            for step in range(100):
                clock.now += SPACING
                a.progress(step, None, None, {})
                self.assertFalse(a.should_stop() or a.should_checkpoint())
            self.assertLessEqual(sum(tries), 100 * SPACING / QUIET + 1)
            self.assertFalse(a.saved(1, 1.0))

    def test_an_agent_that_hangs_costs_one_timeout(self):
        fake = FakeAgent()
        self.addCleanup(fake.close)
        fake.hang = True
        clock = Clock()
        a = Agent(fake.env, clock)
        for _ in range(50):  # 50 s if each waited
            self.assertIsNone(a.amount("spent"))
            a.progress(1, None, None, {})
        self.assertEqual(len(fake.requests), 1)

    def test_an_address_that_is_none(self):
        for url in ("nonsense", "http://", "http://127.0.0.1:notaport", "ftp://x"):
            a = Agent({"SCRIMP_AGENT_URL": url}, Clock())
            a.progress(1, None, None, {})
            self.assertFalse(a.saved(1, 1.0) or a.should_checkpoint())

    def test_number(self):
        class Scalar:
            def __init__(self, v):
                self.v = v

            def item(self):
                if isinstance(self.v, Exception):
                    raise self.v
                return self.v

        for value, want in ((1, 1), (True, 1), (2.5, 2.5), (Decimal("1.5"), 1.5), (Scalar(3.5), 3.5), ("3", None), (None, None),
                            ([], None), (Scalar(ValueError()), None), (Scalar("x"), None)):
            self.assertEqual(number(value), want)

    def test_every_public_name_is_there(self):
        for name in scrimp.__all__:
            self.assertTrue(callable(getattr(scrimp, name)), name)
        self.assertIsNone(scrimp.spent())
        self.assertFalse(scrimp.should_stop())


PROGRAM = """
import os, signal, sys
import scrimp
{before}
print("ready", scrimp.should_stop(), flush=True)
sys.stdin.readline()
print("stop", scrimp.should_stop(), flush=True)
scrimp.progress(7, loss=0.5)
scrimp.progress(8, loss=0.25)
"""


class Signals(unittest.TestCase):
    """Each in a process of its own, with a real SIGTERM."""

    def run_program(self, before, env):
        p = subprocess.Popen([sys.executable, "-c", PROGRAM.format(before=before)], cwd=HERE, text=True,
                             env={"PATH": os.environ.get("PATH", ""), **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready False\n")
        p.send_signal(signal.SIGTERM)
        out, _ = p.communicate("\n", timeout=60)
        return p.returncode, out

    def test_sigterm_asks_to_stop_and_the_last_progress_is_sent(self):
        fake = FakeAgent()
        self.addCleanup(fake.close)
        self.assertEqual(self.run_program("", fake.env), (0, "stop True\n"))
        self.assertEqual(fake.sent("/v1/progress")[-1], {"step": 8, "metrics": {"loss": 0.25}})

    def test_the_programs_own_handler_stays(self):
        code, out = self.run_program("signal.signal(signal.SIGTERM, lambda *a: os.write(1, b'mine\\n'))", {"SCRIMP_JOB": "j"})
        self.assertEqual((code, out), (0, "mine\nstop False\n"))

    def test_on_request_both_are_called(self):
        code, out = self.run_program("signal.signal(signal.SIGTERM, lambda *a: os.write(1, b'mine\\n')); scrimp.catch_sigterm()", {})
        self.assertEqual((code, out), (0, "mine\nstop True\n"))

    def test_outside_scrimp_sigterm_ends_the_program(self):
        self.assertEqual(self.run_program("", {})[0], -signal.SIGTERM)

    def test_another_thread_cannot_catch(self):
        a, got = Agent({"SCRIMP_JOB": "j"}), []
        t = threading.Thread(target=lambda: got.extend([a.should_stop(), a.catch_sigterm()]))
        t.start()
        t.join()
        self.assertEqual(got, [False, False])


if __name__ == "__main__":
    unittest.main()

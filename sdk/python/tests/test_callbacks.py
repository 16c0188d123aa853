"""The callbacks against stand-ins with the parts of both frameworks' public APIs that they use."""

import importlib
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

import scrimp
from scrimp._agent import Agent
from tests.fake import Clock, FakeAgent


class Callback:
    pass


class WithAgent(unittest.TestCase):
    def setUp(self):
        self.fake = FakeAgent()
        self.addCleanup(self.fake.close)
        self.clock = Clock()
        self.dir = tempfile.mkdtemp()
        self.agent = Agent({**self.fake.env, "SCRIMP_CHECKPOINT_DIR": self.dir}, self.clock)
        self.agent._asked = True  # the test keeps its own SIGTERM
        self.agent.catch_sigterm = lambda: True
        p = mock.patch.object(scrimp, "_agent", self.agent)
        p.start()
        self.addCleanup(p.stop)

    def load(self, name, **modules):
        p = mock.patch.dict(sys.modules, modules)
        p.start()
        self.addCleanup(p.stop)
        sys.modules.pop(name, None)
        self.addCleanup(sys.modules.pop, name, None)
        return importlib.import_module(name)

    def later(self, **state):
        self.clock.now += 10
        self.fake.state.update(state)


class HuggingFace(WithAgent):
    def setUp(self):
        super().setUp()
        self.module = self.load("scrimp.huggingface", transformers=types.SimpleNamespace(TrainerCallback=Callback))
        self.callback = self.module.ScrimpCallback()
        self.args = types.SimpleNamespace(enable_jit_checkpoint=False)
        self.state = types.SimpleNamespace(global_step=0, max_steps=100, epoch=0.0, is_world_process_zero=True)

    def step(self):
        self.clock.now += 10
        self.state.global_step += 1
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        control = self.callback.on_step_end(self.args, self.state, control) or control
        return control.should_save, control.should_training_stop

    def test_logs_are_progress_and_saves_are_told(self):
        self.callback.on_train_begin(self.args, self.state, None)
        self.clock.now += 10
        self.state.global_step, self.state.epoch = 5, 0.25
        self.callback.on_log(self.args, self.state, None, logs={"loss": 2.0, "step": 5, "note": "x"})
        self.callback.on_save(self.args, self.state, None)
        self.assertEqual(self.fake.sent("/v1/progress")[-1], {"step": 5, "total": 100, "epoch": 0.25, "metrics": {"loss": 2.0}})
        self.assertEqual(self.fake.sent("/v1/saved"), [{"step": 5}])

    def test_wishes_become_the_trainers_control(self):
        self.assertEqual(self.step(), (False, False))
        self.later(should_checkpoint=True)
        self.assertEqual(self.step(), (True, False))
        self.later(should_stop=True)
        self.assertEqual(self.step(), (True, True))
        self.args.enable_jit_checkpoint = True  # the Trainer stops by itself
        self.later(should_checkpoint=False)
        self.assertEqual(self.step(), (False, False))

    def test_it_asks_once_in_every_so_many_steps(self):
        self.callback = self.module.ScrimpCallback(every=3)
        self.later(should_checkpoint=True)
        self.assertEqual([self.step()[0] for _ in range(6)], [False, False, True, False, False, True])

    def test_other_ranks_say_nothing(self):
        self.state.is_world_process_zero = False
        self.callback.on_log(self.args, self.state, None, logs={"loss": 2.0})
        self.callback.on_save(self.args, self.state, None)
        self.assertEqual(self.fake.requests, [])

    def test_the_newest_complete_checkpoint_is_found(self):
        self.assertIsNone(self.module.newest())
        for name, files in (("checkpoint-9", ["trainer_state.json"]), ("checkpoint-10", ["trainer_state.json"]),
                            ("checkpoint-11", []), ("checkpoint-12", ["trainer_state.json", "checkpoint-is-incomplete.txt"]),
                            ("other-99", ["trainer_state.json"])):
            os.mkdir(os.path.join(self.dir, name))
            for f in files:
                open(os.path.join(self.dir, name, f), "w").close()
        self.assertEqual(self.module.newest(), os.path.join(self.dir, "checkpoint-10"))


class Lightning(WithAgent):
    def setUp(self):
        super().setUp()
        callbacks = types.SimpleNamespace(Callback=Callback)
        self.module = self.load("scrimp.lightning", **{"lightning": types.SimpleNamespace(pytorch=None),
                                                       "lightning.pytorch": types.SimpleNamespace(callbacks=callbacks),
                                                       "lightning.pytorch.callbacks": callbacks})
        self.callback = self.module.ScrimpCallback()

        def save(path):
            with open(path, "w") as f:
                f.write("state")

        self.trainer = types.SimpleNamespace(
            global_step=0, current_epoch=0, is_global_zero=True, received_sigterm=False, should_stop=False,
            estimated_stepping_batches=50, logged_metrics={"loss": 1.5}, save_checkpoint=save,
            strategy=types.SimpleNamespace(reduce_boolean_decision=lambda d, all: d, barrier=lambda: None))

    def batch(self):
        self.clock.now += 10
        self.trainer.global_step += 1
        self.callback.on_train_batch_end(self.trainer, None, None, None, self.trainer.global_step - 1)

    def files(self):
        return sorted(os.listdir(self.dir))

    def test_progress(self):
        self.callback.on_train_start(self.trainer, None)
        self.batch()
        self.assertEqual(self.fake.sent("/v1/progress")[-1], {"step": 1, "total": 50, "epoch": 0.0, "metrics": {"loss": 1.5}})
        self.assertEqual((self.files(), self.trainer.should_stop), ([], False))

    def test_it_saves_on_a_wish_and_keeps_one(self):
        self.later(should_checkpoint=True)
        open(os.path.join(self.dir, "scrimp-step=7.ckpt.tmp"), "w").close()  # a killed save
        open(os.path.join(self.dir, "last.ckpt"), "w").close()  # ModelCheckpoint's
        self.batch()
        self.assertEqual(self.files(), ["last.ckpt", "scrimp-step=1.ckpt"])
        self.batch()
        self.assertEqual(self.files(), ["last.ckpt", "scrimp-step=2.ckpt"])
        self.assertEqual(self.fake.sent("/v1/saved"), [{"step": 1}, {"step": 2}])
        self.assertEqual(self.module.newest(), os.path.join(self.dir, "scrimp-step=2.ckpt"))
        self.assertFalse(self.trainer.should_stop)

    def test_sigterm_saves_and_stops(self):
        self.trainer.received_sigterm = True
        self.batch()
        self.assertEqual((self.files(), self.trainer.should_stop), (["scrimp-step=1.ckpt"], True))

    def test_a_wish_to_stop_saves_and_stops(self):
        self.later(should_stop=True)
        self.batch()
        self.assertEqual((self.files(), self.trainer.should_stop), (["scrimp-step=1.ckpt"], True))


class Missing(unittest.TestCase):
    def test_the_error_names_the_package(self):
        for name, package in (("scrimp.huggingface", "transformers"), ("scrimp.lightning", "lightning")):
            blocked = {"transformers": None, "lightning": None, "lightning.pytorch": None, "lightning.pytorch.callbacks": None,
                       "pytorch_lightning": None, "pytorch_lightning.callbacks": None}
            with mock.patch.dict(sys.modules, blocked):
                sys.modules.pop(name, None)
                with self.assertRaisesRegex(ImportError, "pip install " + package):
                    importlib.import_module(name)


if __name__ == "__main__":
    unittest.main()

"""Ranks agree on whether to save or stop: with torch's own process group, where torch is installed."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

RANK = """
import sys, types
sys.modules["transformers"] = types.SimpleNamespace(TrainerCallback=object)
import torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
from scrimp.huggingface import agreed
print(agreed(0), agreed(rank), agreed(2 - 2 * rank))
"""


class Ranks(unittest.TestCase):
    def test_the_largest_wish_of_all_ranks_is_everyones(self):
        if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode != 0:
            if os.environ.get("SCRIMP_CI"):
                self.fail("torch is not installed")
            self.skipTest("python3-torch is not installed; .ci/run installs it")
        with tempfile.TemporaryDirectory() as d:
            env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
            ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(r), os.path.join(d, "meet")], cwd=HERE, env=env,
                                      text=True, stdout=subprocess.PIPE) for r in range(2)]
            try:
                self.assertEqual([p.communicate(timeout=120)[0] for p in ranks], ["0 1 2\n", "0 1 2\n"])
            finally:
                for p in ranks:
                    p.kill()
                    p.wait()


if __name__ == "__main__":
    unittest.main()

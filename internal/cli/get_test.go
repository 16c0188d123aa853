package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The outputs of each machine of a gang can be copied, and so can the checkpoint, also repeatedly.
func TestGet_CopiesOutputsOfEachMachine(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", `name: pair
speed: 60
offers:
  - {zone: a, region: r, machine: m, cpus: 1, memory: 1GiB, capacity: on-demand, price: 0.1}
`)
	h.write("job.yaml", `name: pair
nodes: 2
command: 'mkdir out; echo rank $SCRIMP_NODE > out/rank; echo 7 > c/state; echo saved 7; sleep 1'
outputs: [out]
checkpoint: {dir: c}
progress: {saved: 'saved (?P<step>\d+)'}
`)
	h.do("run", "-y", "job.yaml", "--market", "market.yaml")
	said := h.do("get", "pair")
	for _, want := range []string{"pair-outputs holds the outputs of node 0 of pair: 1 file, 7B", "outputs of node 1: scrimp get pair --node all",
		"1 checkpoint of step 7: scrimp get pair --checkpoint"} {
		if !strings.Contains(said, want) {
			t.Errorf("get does not say %q:\n%s", want, said)
		}
	}
	h.write("pair-outputs/mine", "x")
	h.do("get", "pair")
	h.do("get", "pair", "--node", "1")
	h.do("get", "pair", "--node", "all", "-o", "every")
	h.do("get", "pair", "--checkpoint")
	h.do("get", "pair", "--checkpoint")
	for path, want := range map[string]string{"pair-outputs/out/rank": "rank 0\n", "pair-outputs/mine": "x", "pair-outputs-1/out/rank": "rank 1\n",
		"every/node-0/out/rank": "rank 0\n", "every/node-1/out/rank": "rank 1\n", "pair-checkpoint/state": "7\n"} {
		if text, err := os.ReadFile(filepath.Join(h.dir, path)); err != nil || string(text) != want {
			t.Errorf("%s holds %q, %v; want %q", path, text, err, want)
		}
	}
	for folder, ours := range map[string]bool{"pair-outputs": true, "pair-outputs-1": true, "pair-checkpoint": true, "every": false} {
		if _, err := os.Stat(filepath.Join(h.dir, folder, ".scrimp-get")); (err == nil) != ours {
			t.Errorf("%s stays out of the next run's work folder: %v", folder, err == nil)
		}
	}
	for _, node := range []string{"2", "x"} {
		if out, err := h.try("get", "pair", "--node", node); err == nil || !strings.Contains(out, node) {
			t.Errorf("--node %s: %v %s", node, err, strconv.Quote(out))
		}
	}
}

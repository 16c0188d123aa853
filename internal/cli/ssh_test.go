package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/sshtest"
)

// ownMachines configures n machines with an sshd each as the only engine of the data folder. A loss is detected within
// detect seconds.
func (h *home) ownMachines(n, net, detect int) *sshtest.Machines {
	h.t.Helper()
	machines := sshtest.Start(h.t, n, net)
	hosts := make([]string, n)
	for k := range hosts {
		hosts[k] = fmt.Sprintf("m%d", k+1)
	}
	h.write("d/engines.yaml", fmt.Sprintf(`engines:
  - name: lab
    kind: ssh
    timing: {poll: 300ms, sweep: 500ms, detect: %ds}
    with: {config: %s, folder: %s, rate: 0.80, marginal: 0.10, hosts: [%s]}
`, detect, machines.Config, filepath.Join(h.data, "own"), strings.Join(hosts, ", ")))
	return machines
}

// sells waits until all three machines are for sale, which takes a while on a busy host.
func (h *home) sells() {
	h.t.Helper()
	h.until("three machines are for sale", func() bool {
		out, err := h.try("market")
		return err == nil && strings.Contains(out, "yes") && strings.Contains(out, ": 3 machines of your own")
	})
}

var ownMachine = regexp.MustCompile(`^lab-m(\d+)-[0-9a-f]+$`)

// on returns the number of the machine that a job runs on, or 0.
func (h *home) on(job string) int {
	h.t.Helper()
	m := ownMachine.FindStringSubmatch(h.job(job).Machine)
	if m == nil {
		return 0
	}
	k, err := strconv.Atoi(m[1])
	must.Do(h.t, err)
	return k
}

// stepsSaid returns the steps that a job has printed so far, in all its attempts.
func (h *home) stepsSaid(job string) (list []int) {
	for _, m := range countedStep.FindAllStringSubmatch(h.do("logs", job), -1) {
		n, _ := strconv.Atoi(m[1])
		list = append(list, n)
	}
	return list
}

// furtherThan waits until a job has printed a step beyond n.
func (h *home) furtherThan(job string, n int) int {
	h.t.Helper()
	last := n
	h.until(fmt.Sprintf("%s is further than step %d", job, n), func() bool {
		if list := h.stepsSaid(job); len(list) > 0 {
			last = list[len(list)-1]
		}
		return last > n
	})
	return last
}

// A job survives typical faults of machines behind ssh. A cable that is unplugged briefly changes nothing, nor does an
// sshd that ends. Behind a cable that stays unplugged the job continues elsewhere from its checkpoint, and the old
// machine's later saves do not count. A machine that loses its power ends its attempt.
func TestSSH_JobSurvivesFaults(t *testing.T) {
	lane.Component(t, "ssh")
	t.Parallel()
	h := newHome(t)
	machines := h.ownMachines(3, 79, 20)
	h.sells()
	h.write("job.yaml", "name: count\ncommand: |\n  "+strings.ReplaceAll(counting, "\n", "\n  ")+
		"\ncheckpoint: {dir: checkpoints, interval: 1s}\n"+counted+"\n")
	h.do("run", "-y", "--detach", "job.yaml")
	h.until("it runs and has saved", func() bool { j := h.job("count"); return j.Phase == "running" && j.SavedStep > 0 })

	first := h.on("count")
	machines.Cut(t, first)
	machines.Restore(t, first)
	machines.EndSSHD(t, first)
	h.furtherThan("count", h.furtherThan("count", 0)+20)
	if j := h.job("count"); j.Attempts != 1 || h.on("count") != first {
		t.Fatalf("after a blink of the cable it is on %s in attempt %d", j.Machine, j.Attempts)
	}
	machines.On(t, first)

	old := h.job("count").Machine
	saved := h.job("count").SavedStep
	machines.Cut(t, first)
	h.until("it goes on elsewhere", func() bool { j := h.job("count"); return j.Attempts == 2 && j.Phase == "running" })
	second := h.on("count")
	if second == first || second == 0 {
		t.Errorf("behind a cable that is out it is on machine %d, and was on %d", second, first)
	}
	h.furtherThan("count", int(saved))
	machines.Restore(t, first)
	h.until("the old machine is ended", func() bool { return len(h.processes(old)) == 0 })
	h.furtherThan("count", h.furtherThan("count", 0)+10)
	if j := h.job("count"); j.Attempts != 2 {
		t.Errorf("the old machine's return began attempt %d", j.Attempts)
	}

	machines.Off(t, second)
	h.until("it goes on after the power failed", func() bool {
		j := h.job("count")
		return j.Attempts == 3 &&
			j.Phase == "running"
	})
	machines.On(t, second)
	h.do("stop", "count")
	h.until("it is over", func() bool { return h.job("count").Closed })
	var r receipt.Receipt
	must.Do(t, json.Unmarshal([]byte(h.out("receipt", "--json", "count")), &r))
	for n, try := range r.Tries[1:] {
		if try.Restored == "" {
			t.Errorf("attempt %d began without a checkpoint", n+2)
		}
	}
	h.adds("count")
	h.do("ledger", "verify")
}

// The ranks of a training on two own machines find each other by address, and the training ends with the same weights
// if one machine loses its power.
func TestSSH_GangSurvivesPowerLoss(t *testing.T) {
	lane.Nightly(t, "trains on machines by ssh, of which one loses its power")
	t.Parallel()
	python := hasTorch(t)
	h := newHome(t)
	machines := h.ownMachines(3, 80, 20)
	h.sells()
	h.ddpJob(python, "2", "300")
	job, err := os.ReadFile(filepath.Join(h.dir, "job.yaml"))
	must.Do(t, err)
	h.write("job.yaml", strings.Replace(string(job), "  capacity: [spot, on-demand]\n", "", 1)) // reserved too
	h.do("run", "-y", "job.yaml")
	whole := h.weights("pytorch-ddp")
	h.slows()
	h.do("run", "-y", "--detach", "job.yaml")
	const again = "pytorch-ddp-2"
	h.until("it has saved", func() bool { return h.job(again).SavedStep > 0 && len(h.job(again).Nodes) == 2 })
	var addresses []string
	for _, n := range h.job(again).Nodes {
		addresses = append(addresses, n.Machine)
	}
	slices.Sort(addresses)
	if len(slices.Compact(addresses)) != 2 {
		t.Errorf("its nodes are on %v", addresses)
	}
	m := ownMachine.FindStringSubmatch(addresses[1])
	if m == nil {
		t.Fatalf("its nodes are on %v", addresses)
	}
	k, _ := strconv.Atoi(m[1])
	machines.Off(t, k)
	machines.On(t, k)
	h.until("it is done", func() bool { return h.job(again).State == "succeeded" && h.job(again).Closed })
	if got := h.weights(again); got != whole {
		t.Errorf("it ends with the weights %.12s, undisturbed with %.12s", got, whole)
	}
	h.adds(again)
	h.do("ledger", "verify")
}

// The problem of a machine is reported with its fix, and the other machines keep working.
func TestSSH_ReportsProblemsOfMachines(t *testing.T) {
	lane.Component(t, "ssh")
	t.Parallel()
	h := newHome(t)
	machines := h.ownMachines(2, 81, 8)
	machines.Revoke(t)
	out, err := h.try("engine", "test", "lab")
	if err == nil || !strings.Contains(out, "ssh-copy-id m1") || !strings.Contains(out, "ssh-copy-id m2") {
		t.Errorf("with a key that was revoked: %v\n%s", err, out)
	}
	if out, err := h.try("run", "-y", "--", "true"); err == nil || !strings.Contains(out, "ssh-copy-id") {
		t.Errorf("a job where no machine is reached: %v\n%s", err, out)
	}
	machines.Allow(t)
	machines.Off(t, 2)
	if out, err = h.try("engine", "test", "lab"); err == nil || !strings.Contains(out, "m1 server") ||
		!strings.Contains(out, "systemctl start ssh") {
		t.Errorf("with one sshd down: %v\n%s", err, out)
	}
	h.until("the other machine is for sale", func() bool { return strings.Contains(h.do("market"), "yes") })
	if out := h.do("run", "-y", "--", "sh", "-c", "echo $SSH_CONNECTION on $SCRIMP_INSTANCE"); !strings.Contains(out,
		"succeeded") {
		t.Errorf("the other machine serves nobody:\n%s", out)
	}
	if log := h.do("logs", "sh"); !strings.Contains(log, "lab-m1-") {
		t.Errorf("the program says %q", log)
	}
}

// A trial of an engine is an ordinary job: it runs on a machine of the engine, and its cost is in the ledger. If it
// cannot run, it says why and leaves nothing.
func TestDoctor_TrialOfEngine(t *testing.T) {
	lane.Component(t, "ssh")
	t.Parallel()
	h := newHome(t)
	h.ownMachines(1, 86, 1)
	var found struct {
		Name, Text string
		OK         bool
	}
	trial := func(args ...string) error {
		t.Helper()
		out, err := h.try(append([]string{"doctor", "lab", "--launch", "--json"}, args...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for n := len(lines) - 1; n >= 0 && found.Name != "trial"; n-- {
			_ = json.Unmarshal([]byte(lines[n]), &found) // the other lines are notes
		}
		return err
	}
	if err := trial(); err != nil || !found.OK || !strings.Contains(found.Text, "lab/own/") {
		t.Fatalf("%v: %+v", err, found)
	}
	j := h.job("doctor")
	if j.State != "succeeded" || !j.Closed || j.Spent.Sign() <= 0 {
		t.Errorf("the trial's job is %+v", j)
	}
	if price := money.Format(j.Spent, j.Currency, 4); !strings.Contains(found.Text, "for "+price) {
		t.Errorf("%s: it has spent %s", found.Text, price)
	}
	h.adds("doctor")
	found.Name = ""
	if err := trial("--dollars", "0.000000001"); err == nil || found.OK {
		t.Errorf("for nothing it is %+v", found)
	}
	h.do("run", "-y", "-d", "--name", "holds", "--", "sleep", "600")
	h.until("the machine is taken", func() bool { return h.job("holds").Phase == "running" })
	found.Name = ""
	if err := trial("--patience", "3s"); err == nil || found.OK || !strings.Contains(found.Text, "no machine for 3.0s") {
		t.Errorf("%v: where there is none it is %+v", err, found)
	}
	if j := h.job("doctor-3"); !j.Closed || j.Attempts > 0 {
		t.Errorf("the trial that was given up is %+v", j)
	}
	h.do("cancel", "holds")
	if out, err := h.try("doctor", "lab", "--launch", "--patience", "0s"); err == nil || !strings.Contains(out, "--patience") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := h.try("doctor", "lab", "--launch", "--dollars", "much"); err == nil ||
		!strings.Contains(out, "--dollars") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := h.try("doctor", "--launch"); err == nil || !strings.Contains(out, "name it") {
		t.Errorf("%v: %s", err, out)
	}
	for args, says := range map[string]string{"doctor --terraform o.json": "name it", "doctor lab --terraform o.json": "kind aws",
		"doctor lab --terraform none.json": "none.json"} {
		h.write("o.json", "{}")
		if out, err := h.try(strings.Fields(args)...); err == nil || !strings.Contains(out, says) {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
	h.until("nothing is left", func() bool { return len(h.processes(j.Machine)) == 0 })
}

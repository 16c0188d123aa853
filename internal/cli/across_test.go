//go:build !local

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/engine/kube"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/image"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/slurmtest"
	"scrimp/internal/test/sshtest"
	"scrimp/internal/test/testbin"
)

// relay makes twenty steps on each of four engines, saves each step, and waits for the end of the first three machines.
const relay = `name: relay
any_of: [hpc/ondemand, lab, k8s, local]
checkpoint: {dir: ck, interval: 1s}
progress: 'step=(?P<step>\d+)'
work: {steps: 80, time: 10m}
grace: 5s
command: |
  n=$(cat ck/n 2>/dev/null || echo 0)
  case $SCRIMP_INSTANCE in
    hpc-*) end=20 ;;
    lab-*) end=40 ;;
    k8s-*) end=60 ;;
    *) end=80 ;;
  esac
  while [ $n -lt $end ]; do
    n=$((n+1)); echo $n > ck/n.tmp; mv ck/n.tmp ck/n
    echo "step=$n on=$SCRIMP_INSTANCE"
    sleep 0.05
  done
  [ $end = 80 ] || while :; do sleep 0.2; done
`

// fourEngines holds a real Slurm cluster, a machine with a real sshd, a real Kubernetes cluster with a real node, and a
// local market, in the order of their costs.
type fourEngines struct {
	slurm    *slurmtest.Cluster
	machines *sshtest.Machines
	kube     *kubetest.Cluster
	listen   string // where pods reach the server
}

// namespace is the namespace in which the Kubernetes engine has ordinary permissions.
const namespace = "team"

// rentsOfFour starts the four engines, and a server that uses them.
func (h *home) rentsOfFour(t *testing.T, net int) *fourEngines {
	t.Helper()
	e := &fourEngines{slurm: slurmtest.Start(t), machines: sshtest.Start(t, 1, net), kube: kubetest.Start(t)}
	node := e.kube.RealNode(t, "node", "pool=std")
	user, err := image.Shell("localhost/user:1")
	agent, err2 := image.Agent("localhost/scrimp:1", h.bin)
	must.Do(t, errors.Join(err, err2))
	e.kube.Import(t, user, agent)
	e.listen = freeOn(t, node.Host)
	h.write("d/here.yaml", "name: here\noffers:\n  - {zone: z, region: r, machine: m, cpus: 2, memory: 1GiB, capacity: on-demand, "+
		"price: 36}\n")
	h.write("d/engines.yaml", fmt.Sprintf(`engines:
  - name: hpc
    kind: slurm
    timing: {poll: 1s, sweep: 1s}
    with: {conf: %s, scratch: %s, partitions: [{name: ondemand, rate: 3.60}]}
  - name: lab
    kind: ssh
    timing: {poll: 500ms, sweep: 1s, detect: 20s}
    with: {config: %s, folder: %s, rate: 18, marginal: 7.20, hosts: [m1]}
  - name: k8s
    kind: kubernetes
    agents: http://%s
    timing: {poll: 1s, sweep: 1s, grant_wait: 5s}
    with:
      kubeconfig: %s
      image: localhost/user:1
      agent_image: localhost/scrimp:1
      pools: [{name: std, rate: 21.60, cpus: 1, memory: 256MiB, grace: 20s, selector: {pool: std}}]
  - name: local
    kind: local
    with: {market: here.yaml}
`, e.slurm.Conf(), filepath.Join(e.slurm.Dir, "scratch"), e.machines.Config, filepath.Join(h.data, "own"), e.listen,
		e.kube.User(t, namespace, kube.Role(&pool.With{}, namespace))))
	server, _, _ := h.start("serve", "--listen", e.listen, "--insecure")
	t.Cleanup(func() { _ = server.Process.Signal(syscall.SIGTERM); _ = server.Wait() })
	h.until("the server answers", h.answers)
	return e
}

// watch makes kubectl record all events of the namespace's pods until the test ends.
func (e *fourEngines) watch(t *testing.T) {
	t.Helper()
	out, err := os.Create(e.pods())
	must.Do(t, err)
	cmd := exec.CommandContext(t.Context(), kubetest.Program("kubectl"), "--kubeconfig", e.kube.Kubeconfig(), "get", "pods",
		"-n", namespace, "--watch", "--no-headers", "-o", `custom-columns=N:.metadata.name,`+
			`A:.status.conditions[?(@.type=="PodScheduled")].lastTransitionTime,E:.status.containerStatuses[0].state.terminated.finishedAt`)
	cmd.Stdout = out
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait(); _ = out.Close() })
}

func (e *fourEngines) pods() string { return filepath.Join(e.kube.Dir, "pods") }

// watched returns how long the only pod was on a node, from kubectl's record.
func (e *fourEngines) watched(t testing.TB) time.Duration {
	t.Helper()
	text, err := os.ReadFile(e.pods())
	must.Do(t, err)
	spans := map[string]time.Duration{} // by pod
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			t.Fatalf("kubectl wrote %q", line)
		}
		began, err := time.Parse(time.RFC3339, f[1])
		ended, err2 := time.Parse(time.RFC3339, f[2])
		if err == nil && err2 == nil {
			spans[f[0]] = ended.Sub(began)
		}
	}
	if len(spans) != 1 {
		t.Fatalf("%d pods have ended: %s", len(spans), text)
	}
	return slices.Collect(maps.Values(spans))[0]
}

// reaches waits until a job has saved a step on a machine of an engine, and returns the machine.
func (h *home) reaches(job, engine string, saved int64) string {
	h.t.Helper()
	h.until(fmt.Sprintf("%s has saved step %d on %s", job, saved, engine), func() bool {
		j := h.job(job)
		return j.SavedStep == saved && strings.HasPrefix(j.Machine, engine+"-")
	})
	return h.job(job).Machine
}

// A job that may run on Slurm, own machines, Kubernetes and the local market starts on the cheapest, and continues from
// its checkpoint on the next one whenever it loses a machine: to a failed node and a closed partition, to an unplugged
// cable, and to a node drain and a quota of zero. It makes every step once, and its receipt, its costs and the engines'
// own records agree on the money.
func TestRun_MovesFromSlurmToOwnMachinesToKubernetesToMarket(t *testing.T) {
	lane.Component(t, "kubernetes")
	t.Parallel()
	bin := testbin.Full.Path(t)
	h := newHome(t)
	h.bin = bin
	e := h.rentsOfFour(t, 92)
	h.write("job.yaml", relay)
	for _, engine := range []string{"hpc", "lab", "k8s", "local"} {
		h.until(engine+" sells", func() bool { return h.forSale(engine) })
	}
	h.plansRelay()
	h.do("run", "-y", "--detach", "job.yaml")

	h.reaches("relay", "hpc", 20)
	allocation, node, _ := strings.Cut(e.slurm.Do(t, "squeue", "-h", "--partition=ondemand", "-o", "%i %N"), " ")
	e.slurm.Do(t, "scontrol", "update", "PartitionName=ondemand", "State=DOWN")
	h.until("nobody begins on the partition", func() bool { return !h.forSale("hpc") })
	e.slurm.Do(t, "scontrol", "update", "NodeName="+node, "State=DOWN", "Reason=test")

	h.reaches("relay", "lab", 40)
	e.machines.Cut(t, 1)
	e.watch(t)
	h.reaches("relay", "k8s", 60)
	e.kube.Do(t, "create", "quota", "closed", "-n", namespace, "--hard=pods=0")
	e.kube.Do(t, "drain", "node", "--delete-emptydir-data")
	h.until("it is done", func() bool { j := h.job("relay"); return j.State == "succeeded" })
	e.machines.Restore(t, 1)
	h.until("its bills have come", func() bool { return h.job("relay").Closed })

	var said []string
	for line := range strings.Lines(h.do("logs", "relay")) {
		if step, rest, ok := strings.Cut(strings.TrimSpace(line), " on="); ok {
			engine, _, _ := strings.Cut(rest, "-")
			said = append(said, step+" "+engine)
		}
	}
	var want []string
	for n := range 80 {
		want = append(want, fmt.Sprintf("step=%d %s", n+1, []string{"hpc", "lab", "k8s", "i"}[n/20])) // as machines are named
	}
	if !slices.Equal(said, want) {
		t.Errorf("it did the steps %v", said)
	}
	h.sameMoney(e, allocation)
	h.do("ledger", "verify")
}

// forSale reports whether an engine has an available offer.
func (h *home) forSale(engine string) bool {
	h.t.Helper()
	var m api.Market
	must.Do(h.t, json.Unmarshal([]byte(h.out("market", "--json")), &m))
	return slices.ContainsFunc(m.Offers, func(l api.Listing) bool { return l.Offer.Provider == engine && l.Quote.Available })
}

// plansRelay compares a plan on four engines with their rates: full, and marginal for an own machine.
func (h *home) plansRelay() {
	h.t.Helper()
	var p planning.Plan
	must.Do(h.t, json.Unmarshal([]byte(h.out("plan", "job.yaml", "--json")), &p))
	if !strings.HasPrefix(p.Take, "hpc/ondemand/") || len(p.Engines) != 4 {
		h.t.Fatalf("it begins on %q (%s), of engines %+v", p.Take, p.Why, p.Engines)
	}
	for i, rates := range [][2]float64{{3.60, 3.60}, {21.60, 21.60}, {18, 7.20}, {36, 36}} {
		e := p.Engines[i]
		if e.Engine != []string{"hpc/ondemand", "k8s", "lab", "local"}[i] || e.CostUSD == nil {
			h.t.Fatalf("engine %d is %+v", i, e)
		}
		for k, cost := range []float64{e.CostUSD[0], e.MarginalUSD[0]} {
			if hours := cost / rates[k]; hours < 1.0/6 || hours > 0.25 { // ten minutes of work and the start-up
				h.t.Errorf("%s: $%.3f are %.3f h at $%.2f", e.Engine, cost, hours, rates[k])
			}
		}
	}
}

// sameMoney compares the receipt of the relay with the costs, the rates, and each engine's own record.
func (h *home) sameMoney(e *fourEngines, allocation string) {
	h.t.Helper()
	var r receipt.Receipt
	h.until("what the machine behind the cable took until it was ended is booked", func() bool {
		r = receipt.Receipt{}
		must.Do(h.t, json.Unmarshal([]byte(h.out("receipt", "relay", "--json")), &r))
		return len(r.Tries) != 4 || r.Tries[1].Cost == h.billedByHost(r.Tries[1].Instance)
	})
	if err := r.Check(); err != nil || !r.Ledger.Agrees || len(r.Tries) != 4 {
		h.t.Fatalf("%d attempts, the receipt %v, it agrees with the ledger: %v", len(r.Tries), err, r.Ledger.Agrees)
	}
	sum, costs := money.Amount{}, map[string]money.Amount{}
	for n, try := range r.Tries {
		engine, _, _ := strings.Cut(try.Offer, "/")
		costs[engine] = costs[engine].Add(try.Cost)
		if sum = sum.Add(try.Cost); n > 0 && try.Restored == "" {
			h.t.Errorf("attempt %d began without a checkpoint", n+1)
		}
		if plain := try.Rate.Until(try.Until.Sub(try.From)); plain != try.Cost && engine != "lab" {
			h.t.Errorf("%s: $%v, and %v at %v an hour are $%v", engine, try.Cost, try.Until.Sub(try.From), try.Rate, plain)
		}
	}
	_, lines := h.costs("--by", "job")
	if sum != r.Cost || lines["relay"].Spent.String() != r.Cost.String() || len(costs) != 4 {
		h.t.Errorf("attempts cost %v, the receipt says %v, scrimp costs %v", sum, r.Cost, lines["relay"].Spent)
	}
	if paid := r.Tries[1].Cost.Float() * (18 - 7.20) / 18; r.AlreadyPaid == nil || r.AlreadyPaid.Float()-paid > 1e-9 ||
		paid-r.AlreadyPaid.Float() > 1e-9 {
		h.t.Errorf("the receipt says that %v was paid anyway, and that is %.9f", r.AlreadyPaid, paid)
	}
	record := e.slurm.Do(h.t, "scontrol", "show", "job", "--oneliner", allocation)
	if bill := money.Rate(3_600_000_000_000).Until(seconds(h.t, record, "EndTime=") - seconds(h.t, record, "StartTime=")); bill != costs["hpc"] {
		h.t.Errorf("Slurm's times are $%v, and booked are $%v: %s", bill, costs["hpc"], record)
	}
	if bill := money.Rate(21_600_000_000_000).Until(e.watched(h.t)); bill != costs["k8s"] {
		h.t.Errorf("the pod's times are $%v, and booked are $%v", bill, costs["k8s"])
	}
	if bill := h.billedByMarket(); bill != costs["local"] {
		h.t.Errorf("the market billed %v, and booked are %v", bill, costs["local"])
	}
}

// seconds returns a time of a Slurm record, since 1970.
func seconds(t testing.TB, record, name string) time.Duration {
	t.Helper()
	_, rest, _ := strings.Cut(record, name)
	text, _, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s in %s: %v", name, record, err)
	}
	return time.Duration(n) * time.Second
}

// bill is an engine's own record of a machine.
type bill struct {
	ID              string
	Launched, Ended time.Time
	Rate            money.Rate
	Bill            []struct{ Amount money.Amount }
}

// billedByMarket returns the bill of all machines in the local market's journal.
func (h *home) billedByMarket() (sum money.Amount) {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.data, "market", "market.journal"))
	must.Do(h.t, err)
	newest := map[string]bill{} // by machine
	for _, line := range bytes.Split(text, []byte("\n")) {
		var record struct{ Machine bill }
		if _, body, ok := bytes.Cut(line, []byte(" ")); ok && json.Unmarshal(body, &record) == nil {
			newest[record.Machine.ID] = record.Machine
		}
	}
	for _, b := range newest {
		for _, l := range b.Bill {
			sum = sum.Add(l.Amount)
		}
	}
	return sum
}

// billedByHost returns the rate times the use of the ssh machine in its own record; zero while it has no end.
func (h *home) billedByHost(machine string) money.Amount {
	h.t.Helper()
	var b bill
	text, err := os.ReadFile(filepath.Join(h.data, "own", "hosts", "m1", machine, "machine.json"))
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	must.Do(h.t, err)
	return b.Rate.Until(max(0, b.Ended.Sub(b.Launched)))
}

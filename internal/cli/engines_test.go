package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// twoEngines configures two local markets: "local", whose machines reach the server by its socket, and the cheaper
// "other", whose machines use the server's address.
func (h *home) twoEngines() {
	h.t.Helper()
	offer := "name: %s\noffers:\n  - {zone: %s, region: r, machine: m, cpus: 2, memory: 1GiB, capacity: on-demand, price: %s}\n"
	h.write("d/dear.yaml", fmt.Sprintf(offer, "dear", "here", "3"))
	h.write("d/cheap.yaml", fmt.Sprintf(offer, "cheap", "there", "1"))
	h.write("d/engines.yaml", `engines:
  - name: local
    kind: local
    with: {market: dear.yaml}
  - name: other
    kind: local
    agents: listen
    with: {market: cheap.yaml}
    timing: {poll: 200ms, sweep: 2s}
`)
}

// bySocket makes all machines use the server's socket, so that a server started by the command line suffices.
func (h *home) bySocket() {
	path := filepath.Join(h.data, "engines.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), "    agents: listen\n", "", 1)), 0o600)
	}
	if err != nil {
		h.t.Error(err)
	}
}

// free returns an unused address. On Linux it has a loopback address of its own, so neither another test nor an
// outgoing connection takes the port before the server does.
func free(t *testing.T) string {
	t.Helper()
	host := "127.0.0.1"
	if runtime.GOOS == "linux" {
		host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	}
	return freeOn(t, host)
}

func freeOn(t *testing.T, host string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", host+":0")
	must.Do(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// engines returns the states of the server's engines by name.
func (h *home) engines() map[string]api.Engine {
	h.t.Helper()
	var v api.Server
	must.Do(h.t, json.Unmarshal([]byte(h.out("server", "status", "--json")), &v))
	all := map[string]api.Engine{}
	for _, e := range v.Engines {
		all[e.Name] = e
	}
	return all
}

// marketOf returns the process of a market.
func (h *home) marketOf(folder ...string) int {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(append(append([]string{h.data}, folder...), "market.lock")...))
	pid, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || err2 != nil {
		h.t.Fatalf("the market's process: %q, %v, %v", text, err, err2)
	}
	return pid
}

// waits starts a job that runs until a file exists.
func (h *home) waits(name, rest string) {
	h.write(name+".yaml", "name: "+name+"\ncommand: 'while [ ! -e stop ]; do sleep 0.1; done'\n"+rest)
	h.do("run", "-y", "-d", name+".yaml")
}

// Two markets in one server: jobs go to the cheaper one, an unresponsive market delays only its own jobs, and a killed
// server finds the machines of both again.
func TestEngines_TwoMarketsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.twoEngines()
	t.Cleanup(func() { h.bySocket() })
	address := free(t)
	begin := func() (kill func()) {
		cmd, out, errs := h.start("serve", "--json", "--listen", address)
		h.until("it serves", func() bool {
			_, err := h.try("server", "status")
			return err == nil && strings.Contains(out.String(), "address")
		})
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = errs })
		return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	}
	kill := begin()
	h.until("both answer", func() bool { e := h.engines(); return e["local"].State == "answers" && e["other"].State == "answers" })
	if e := h.engines(); !strings.HasPrefix(e["local"].Agents, "unix://") || e["other"].Agents != "http://"+address || len(e) != 2 {
		t.Errorf("%+v", e)
	}

	h.waits("anywhere", "")
	h.waits("near", "resources: {zones: [here]}\n")
	for job, offer := range map[string]string{"anywhere": "other/there/m/on-demand", "near": "local/here/m/on-demand"} {
		h.until(job+" runs", func() bool { return h.job(job).Phase == "running" })
		if j := h.job(job); string(j.Offer) != offer {
			t.Errorf("%s runs on %s, want %s", job, j.Offer, offer)
		}
	}

	stopped := h.marketOf("engines", "other")
	if err := syscall.Kill(stopped, syscall.SIGSTOP); err != nil { // it accepts requests and answers none
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(stopped, syscall.SIGCONT) }()
	h.waits("far", "resources: {zones: [there]}\n")
	h.write("quick.yaml", "name: quick\ncommand: 'true'\nresources: {zones: [here]}\n")
	if out := h.do("run", "-y", "quick.yaml"); !strings.Contains(out, "succeeded") {
		t.Errorf("while the other market is away:\n%s", out)
	}
	if j := h.job("far"); j.Phase == "running" {
		t.Errorf("a job runs on a market that does not answer: %+v", j)
	}
	machines := map[string]string{"anywhere": h.job("anywhere").Machine, "near": h.job("near").Machine}
	kill()
	if err := syscall.Kill(stopped, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	begin()
	h.until("far runs", func() bool { return h.job("far").Phase == "running" })
	for job, machine := range machines {
		h.until(job+" is heard of", func() bool { return h.job(job).Phase == "running" })
		if j := h.job(job); j.Machine != machine || j.Attempts != 1 {
			t.Errorf("after the kill %s is on %s in attempt %d, it was on %s", job, j.Machine, j.Attempts, machine)
		}
	}
	for _, job := range []string{"anywhere", "near", "far"} {
		h.mustStop(job)
		h.until(job+" is done", func() bool { return h.job(job).Closed })
		if j := h.job(job); j.State != "succeeded" || j.Attempts != 1 {
			t.Errorf("%s is %s after %d attempts", job, j.State, j.Attempts)
		}
		h.adds(job)
	}
	h.do("ledger", "verify")
	if out, err := exec.Command("ls", filepath.Join(h.data, "engines", "other", "machines")).Output(); err != nil || len(strings.Fields(string(out))) != 2 {
		t.Errorf("the other market rented %q, %v; want 2 machines", out, err)
	}
}

// A removed engine offers nothing, but its machines are not forgotten: the server reports that they cost money, and
// terminates them once the engine is back.
func TestEngines_RemovedEngineKeepsItsMachines(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.twoEngines()
	h.bySocket()
	both, err := os.ReadFile(filepath.Join(h.data, "engines.yaml"))
	must.Do(t, err)
	h.waits("anywhere", "")
	h.until("it runs", func() bool { return h.job("anywhere").Phase == "running" })
	machine := h.job("anywhere").Machine
	h.do("server", "stop")
	one, _, _ := strings.Cut(string(both), "  - name: other")
	h.write("d/engines.yaml", one)
	h.waits("second", "")
	h.until("the second runs", func() bool { return h.job("second").Phase == "running" })
	if j := h.job("second"); string(j.Offer) != "local/here/m/on-demand" {
		t.Errorf("with the cheaper engine removed the job is on %s", j.Offer)
	}
	if e := h.engines()["other"]; e.State != "not_configured" || e.Machines != 1 || h.job("anywhere").Machine != machine {
		t.Errorf("the engine that was removed: %+v; the job is on %s, was on %s", e, h.job("anywhere").Machine, machine)
	}
	if out := h.do("server", "status"); !strings.Contains(out, "1 machine may still cost") {
		t.Errorf("nobody is told of it:\n%s", out)
	}
	h.do("cancel", "anywhere")
	h.do("cancel", "second")
	h.do("server", "stop")
	h.write("d/engines.yaml", string(both))
	h.do("jobs") // starts a server
	h.until("its machine is given back", func() bool { e := h.engines()["other"]; return e.State == "answers" && e.Machines == 0 })
	h.waits("third", "")
	h.until("the third runs", func() bool { return h.job("third").Phase == "running" })
	if j := h.job("third"); string(j.Offer) != "other/there/m/on-demand" {
		t.Errorf("with the engine back the job is on %s", j.Offer)
	}
}

func TestServe_InvalidEnginesNameTheFix(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	fast := "name: fast\nspeed: 60\noffers:\n  - {zone: a, region: r, machine: m, cpus: 1, memory: 1GiB, capacity: on-demand, price: 1}\n"
	h.write("d/fast.yaml", fast)
	for file, want := range map[string]string{
		"engines: [{name: local, kind: local, with: {market: fast.yaml}}, {name: other, kind: local}]": "open it with a market of speed 1, or leave the others out",
		"engines: [{name: local, kind: local}, {name: local, kind: local}]":                            "listed twice",
		"engines: [{name: local, kind: lokal}]":                                                        `kind "lokal" is not known here (did you mean local?): take one of aws, kubernetes, local, slurm, ssh`,
		"engines: [{name: k8s, kind: kubernetes, agents: 'http://10.0.0.9:7077'}]":                     "built without Kubernetes (tag local): make build makes build/scrimp-full",
		"engines: [{name: local, kind: local, agents: listen}]":                                        "scrimp serve --listen HOST:PORT, or write agents: socket",
		"engines: [{name: local, kind: local, agents: 'ftp://x'}]":                                     "unix:///PATH, http://HOST:PORT",
		"engines: [{name: local, kind: local, timing: {poll: 0s}}]":                                    "each must be above zero",
		"engines: [{name: local, kind: local, with: {zone: a}}]":                                       "line 1: zone is not known",
		"engines: [{name: local, kind: local, with: {markt: a, x: 1}}]":                                "line 1: markt is not known (did you mean market?); line 1: x is not known: ",
		"":                                    "names none",
		"engines: [{name: a/b, kind: local}]": "small letters, digits and hyphens",
		"engines: []":                         "names none",
		"motors: []":                          "motors is unknown there: the file has engines",
	} {
		h.write("d/engines.yaml", file)
		if out, err := h.try("serve", "--listen", "127.0.0.1:0"); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q in\n%s", file, err, want, out)
		}
		for _, folder := range []string{"market", "engines"} { // a market ends when its folder is removed
			for _, pid := range h.served(folder) {
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
			if err := os.RemoveAll(filepath.Join(h.data, folder)); err != nil {
				t.Error(err)
			}
		}
	}
	must.Do(t, os.Remove(filepath.Join(h.data, "engines.yaml")))
}

// A server that a command starts listens on no address. Machines that need one would cost money and never join, so the
// server refuses to start, except to terminate all machines.
func TestServe_RentsNoMachineThatCannotReachIt(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	address := free(t)
	h.write("d/engines.yaml", "engines: [{name: near, kind: local, agents: 'http://"+address+"'}]")
	server, _, _ := h.start("serve", "--listen", address)
	h.until("the server answers", h.answers)
	h.do("run", "-y", "-d", "--name", "holds", "--", "sleep", "600")
	h.until("it runs", func() bool { return h.job("holds").Phase == "running" })
	machine := h.job("holds").Machine
	_ = server.Process.Kill()
	_ = server.Wait()
	for _, args := range [][]string{{"market"}, {"run", "-y", "--", "true"}} {
		out, err := h.try(args...)
		if err == nil || !strings.Contains(out, "engine near: agents: its machines reach the server at http://"+address) ||
			!strings.Contains(out, " serve --listen HOST:PORT") {
			t.Errorf("%v: %v:\n%s", args, err, out)
		}
	}
	if len(h.processes(machine)) == 0 {
		t.Error("the machine has ended with the server")
	}
	h.do("server", "stop", "--now")
	h.until("the machine is given back", func() bool { return len(h.processes(machine)) == 0 })
}

// served returns the processes of the markets in a folder.
func (h *home) served(folder string) (list []int) {
	for _, pattern := range []string{"market.lock", "*/market.lock"} {
		files, _ := filepath.Glob(filepath.Join(h.data, folder, pattern))
		for _, f := range files {
			text, _ := os.ReadFile(f)
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && pid > 1 {
				list = append(list, pid)
			}
		}
	}
	return list
}

// --market with another market than the folder's is refused, also by a newly started server.
func TestRun_RefusesOtherMarketThanFolders(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", oneMachine)
	h.write("job.yaml", "name: short\ncommand: echo done\n")
	h.do("run", "-y", "job.yaml", "--market", "market.yaml")
	h.do("run", "-y", "job.yaml", "--market", "market.yaml") // the same market
	for range 2 {
		if out, err := h.try("run", "-y", "job.yaml", "--market", "stormy"); err == nil || !strings.Contains(out+err.Error(), "keeps it") {
			t.Errorf("%v, %s", err, out)
		}
		h.do("server", "stop")
	}
	if got := strings.Count(h.do("jobs", "--json"), `"id":`); got != 2 {
		t.Errorf("%d jobs are there", got)
	}
}

// An engine with a running machine cannot be removed: nobody would manage the machine.
func TestEngineRemove_RefusesWhileMachinesRun(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.twoEngines()
	h.bySocket()
	h.write("job.yaml", "name: long\ncommand: sleep 600\n")
	h.do("run", "-y", "-d", "--force", "job.yaml")
	h.until("it runs", func() bool { return h.job("long").Phase == "running" })
	text, err := h.try("engine", "rm", "other")
	if err == nil || !strings.Contains(text, "1 machine of engine other") || !strings.Contains(text, "with long") {
		t.Errorf("%v: %s", err, text)
	}
	h.do("engine", "rm", "local")
	h.do("cancel", "long")
	h.until("its machine is given back", func() bool { return h.engines()["other"].Machines == 0 })
}

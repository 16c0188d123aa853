//go:build !local

package cli_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/test/proc"
	"scrimp/internal/test/testbin"
)

// pair is two servers on one database; one of them leads.
type pair struct {
	*home
	url     string
	servers []*proc.Process
}

func newPair(t *testing.T) *pair {
	t.Helper()
	db := pgtest.Start(t)
	bin := testbin.Full.Path(t)
	dir, err := os.MkdirTemp("", "s") // short, because socket paths have a limit
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &pair{home: &home{t: t, dir: dir, data: filepath.Join(dir, "d"), bin: bin}, url: db.Database(t)}
	p.begin()
	p.begin()
	p.until("one leads", func() bool { _, ok := p.leader(); return ok })
	t.Cleanup(p.end)
	return p
}

func (p *pair) begin() {
	cmd, _, _ := p.start("serve", "--json", "--listen", "127.0.0.1:0", "--db", p.url)
	p.servers = append(p.servers, cmd)
}

// leader returns the process of the server that answers.
func (p *pair) leader() (pid int, ok bool) {
	var s api.Server
	out, err := p.command("server", "status", "--json").Output()
	return s.PID, err == nil && json.Unmarshal(out, &s) == nil && func() bool { pid = s.PID; return pid > 0 }()
}

// kill kills the leader with SIGKILL, waits until the other leads, and starts a new follower.
func (p *pair) kill() {
	p.t.Helper()
	var pid int
	p.until("one leads", func() (ok bool) { pid, ok = p.leader(); return ok })
	for i, cmd := range p.servers {
		if cmd.Process.Pid == pid {
			p.servers = append(p.servers[:i:i], p.servers[i+1:]...)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			break
		}
	}
	p.until("another leads", func() bool { next, ok := p.leader(); return ok && next != pid })
	p.begin()
}

// end stops all servers, followers first.
func (p *pair) end() {
	_, _ = p.try("server", "stop", "--now")
	for _, cmd := range p.servers {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
}

// line returns the limit with the given name.
func (p *pair) line(name string) (l api.BudgetLine) {
	p.t.Helper()
	var v api.Budgets
	must.Do(p.t, json.Unmarshal([]byte(p.do("budgets", "--json")), &v))
	for _, l := range v.Limits {
		if l.Limit.Name() == name {
			return l
		}
	}
	p.t.Fatalf("there is no limit %s: %+v", name, v)
	return l
}

// Limits with their spent and held amounts, quotas and pending approvals survive each takeover. If the leader dies
// during an approval, the approval exists once or not at all, and repeating it is harmless.
func TestLimits_SurviveTakeovers(t *testing.T) {
	lane.Nightly(t, "kills the leader again and again until an approval comes through")
	t.Parallel()
	p := newPair(t)
	usd := func(n int64) money.Amount { return money.Picos(n * 1e12) }
	p.do("budgets", "set", "--total", "--dollars", "100", "--running", "1", "--approve", "20")
	p.do("budgets", "tag", "env", "dev")
	job := func(name, dollars string) {
		p.write(name+".yaml", "name: "+name+"\ncommand: 'while [ ! -e stop ]; do sleep 0.1; done'\nbudget: {dollars: "+dollars+"}\ntags: {env: dev}\n")
		p.do("run", "-y", "-d", name+".yaml")
	}
	job("first", "5")
	p.until("the program runs", func() bool { return p.job("first").Phase == "running" })
	job("second", "6")
	job("third", "30")
	machine := p.job("first").Machine
	want, asking := usd(11), 1
	check := func() {
		t.Helper()
		l := p.line("all/total")
		if u := l.Use; u.Spent.Add(u.Held) != want || u.AwaitingApproval != asking || u.Running != 1 || u.Spent.Sign() <= 0 {
			t.Errorf("%+v: %v are spent or held, want %v, %d waiting for approval and one running", u, u.Spent.Add(u.Held), want, asking)
		}
		if j := p.job("first"); j.State != "running" || j.Machine != machine || j.Attempts != 1 {
			t.Errorf("the job that ran is %+v", j)
		}
		if j := p.job("second"); j.State != "queued" || j.Quota != "all/total" {
			t.Errorf("the job over its quota is %+v", j)
		}
		p.write("none.yaml", "name: none\ncommand: 'true'\nbudget: {dollars: 1}\n")
		if out, err := p.try("run", "-y", "-d", "none.yaml"); err == nil {
			t.Errorf("a job without its tag is let in: %s", out)
		}
		job := "name: much\ncommand: 'true'\nbudget: {dollars: 90}\ntags: {env: dev}\n"
		p.write("much.yaml", job)
		if out, err := p.try("run", "-y", "-d", "much.yaml"); err == nil {
			t.Errorf("a job is let in for which there is no money: %s", out)
		}
	}
	check()
	p.kill()
	check()
	asked := time.Now()
	p.do("budgets")
	takes := time.Since(asked)             // duration of a command on this machine now
	for round := 0; asking == 1; round++ { // until one of them is written
		if round == 20 {
			t.Fatal("no approval comes through")
		}
		told := make(chan struct{})
		go func() {
			defer close(told)
			_, _ = p.try("approve", "third", "--reason", "for the paper")
		}()
		// At a random moment of the approval; each round allows a longer wait.
		eventually.Past(t, time.Now().Add(time.Duration(rand.Int64N(int64(takes)*int64(round+2)/2))))
		p.kill()
		<-told
		j := p.job("third")
		if v := j.Approval; j.State == "queued" && v != nil && *v.Approved && v.By == "owner" && v.Reason == "for the paper" {
			want, asking = usd(41), 0
		} else if j.State != "held" || v == nil || v.At != nil {
			t.Fatalf("an approval in half: %+v %+v", j, j.Approval)
		}
		t.Logf("round %d: the job is %s", round, j.State)
		check()
	}
	p.do("approve", "third", "--reason", "again") // it is already approved
	check()
	if out := p.do("audit", "--json"); !strings.Contains(out, "/approve") || !strings.Contains(out, "for the paper") {
		t.Errorf("the audit trail has no approval:\n%s", out)
	}
	p.mustStop("first")
	p.until("the next job runs", func() bool { return p.job("second").Phase == "running" })
	for _, id := range []string{"second", "third"} {
		p.do("cancel", id)
	}
	p.until("all are closed", func() bool { return p.job("second").Closed && p.job("third").Closed })
	p.kill()
	l := p.line("all/total")
	var spent money.Amount
	for _, id := range []string{"first", "second", "third"} {
		spent = spent.Add(p.job(id).Spent)
	}
	if u := l.Use; u.Spent != spent || !u.Held.IsZero() || u.Jobs != 0 || u.Running != 0 {
		t.Errorf("in the end %+v, the jobs have spent %v", u, spent)
	}
	p.do("ledger", "verify")
}

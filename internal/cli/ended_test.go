package cli_test

import (
	"strings"
	"syscall"
	"testing"

	api "scrimp/client"
	"scrimp/internal/test/must"
)

// The output names a killed machine as such, and the reason for the next attempt. An interrupted profile costs nothing
// more.
func TestLogs_NameReasonOfAttemptEnd(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: once\ncommand: 'test -e c/again && exit 0; touch c/again; echo saved 1; sleep 1000'\n"+
		"checkpoint: {dir: c}\nprogress: {saved: 'saved (?P<step>\\d+)'}\n")
	h.do("run", "-y", "-d", "--market", "calm", "job.yaml")
	h.until("it has saved", func() bool { return h.job("once").SavedStep == 1 })
	h.kills(h.job("once").Machine)
	h.until("it is done", func() bool { return h.job("once").Closed })
	if text := h.do("receipt", "once"); !strings.Contains(text, "agent lost") || strings.Contains(text, "stopped") {
		t.Errorf("the receipt says\n%s", text)
	}
	want := "attempt 2: the agent of attempt 1 was lost: its machine ended without a message; attempt 2 resumed from step 1"
	if text := h.do("explain", "once"); !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
		t.Errorf("explain says\n%s", text)
	}

	h.write("job.yaml", "name: long\ncommand: sleep 1000\n")
	profile, _, _ := h.start("profile", "job.yaml")
	var j api.Job
	h.until("it runs", func() bool {
		out, err := h.try("status", "long-profile", "--json")
		return err == nil && strings.Contains(out, `"state":"running"`)
	})
	must.Do(t, profile.Process.Signal(syscall.SIGINT))
	if err := profile.Wait(); err == nil {
		t.Error("a profile that was broken off says that all is well")
	}
	h.until("its job is over", func() bool { j = h.job("long-profile"); return j.Finished != nil })
	if j.State != "cancelled" {
		t.Errorf("it is %s", j.State)
	}
}

// A job without a decision has no line of JSON, so a note says what tells why it waits.
func TestExplain_AsJSONOfAHeldJobNamesStatus(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.do("budgets", "set", "--month", "--dollars", "100", "--approve", "0.00001")
	h.write("job.yaml", "name: held\ncommand: 'true'\nbudget: $1\n")
	h.do("run", "-y", "-d", "--market", "calm", "job.yaml")
	if out := h.do("explain", "--json", "held"); !strings.Contains(out, "scrimp status --json held") {
		t.Errorf("explain says %q", out)
	}
	if out := h.do("status", "--json", "held"); !strings.Contains(out, "waits for approval") {
		t.Errorf("status says %q", out)
	}
}

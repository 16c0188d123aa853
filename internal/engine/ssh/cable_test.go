package ssh

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"scrimp/internal/lib/wait"
	"scrimp/internal/test/lane"
)

var counted = regexp.MustCompile(`step=(\d+)`)

// newest returns the last step that a job has printed.
func (h *home) newest(job string) int {
	list := counted.FindAllStringSubmatch(h.Does("logs", job), -1)
	if len(list) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(list[len(list)-1][1])
	return n
}

// With the usual settings a cable that is out for 20 s changes nothing, and behind a permanent
// outage the job resumes elsewhere. TestList_ToleratesShortOutage tests how soon.
func TestHome_SurvivesOutageWithUsualSettings(t *testing.T) {
	lane.Nightly(t, "its cables are out for as long as the usual settings say")
	h := newHome(t, 2, 85, "")
	h.Does("market") // waits for the machines
	begun := time.Now()
	if out, err := h.counts("count", 2000); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h.until("its first step is there", func() bool { return h.newest("count") > 0 })
	t.Logf("from submission to the first line: %v", time.Since(begun).Round(100*time.Millisecond))
	h.until("it has saved", func() bool { j, _ := h.TryJob("count"); return j.SavedStep > 0 })
	first := h.on("count")
	h.Cut(t, first)
	_ = wait.For(t.Context(), 20*time.Second)
	h.Restore(t, first)
	said := h.newest("count")
	h.until("its output is there", func() bool { return h.newest("count") > said+20 })
	if j, _ := h.TryJob("count"); j.Attempts != 1 || h.on("count") != first {
		t.Fatalf("after 20 s without a cable it is on %s in attempt %d", j.Machine, j.Attempts)
	}
	h.Cut(t, first)
	cut := time.Now()
	h.until("it runs elsewhere", func() bool { on := h.on("count"); return on != 0 && on != first })
	attempt := time.Since(cut)
	saved := h.newest("count")
	h.until("it goes on", func() bool { return h.newest("count") != saved })
	t.Logf("behind a cable that stays out: the next attempt after %v, its first new step after %v",
		attempt.Round(100*time.Millisecond), time.Since(cut).Round(100*time.Millisecond))
	h.Restore(t, first)
	h.Does("stop", "count")
	h.until("it is over", func() bool { j, _ := h.TryJob("count"); return j.Closed })
	h.Receipt("count")
}

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/outbox"
	"scrimp/internal/wire/api"
)

// weekHook keeps the weekly reports that it gets, and answers with a status.
type weekHook struct {
	status int
	mu     sync.Mutex
	got    []outbox.WeekReport
	path   string // of the last call
}

func (h *weekHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var v outbox.WeekReport
	err := json.NewDecoder(r.Body).Decode(&v)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.path = r.URL.Path; err == nil {
		h.got = append(h.got, v)
	}
	w.WriteHeader(h.status)
}

func (h *weekHook) reports() []outbox.WeekReport {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]outbox.WeekReport(nil), h.got...)
}

// nextMonday moves the market's clock to the next Monday, and further.
func (w *world) nextMonday(further time.Duration) {
	w.t.Helper()
	var now time.Time
	w.control.Read(func(m *core.Machine) { now = m.State().Now() })
	at := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	for at.Weekday() != time.Monday {
		at = at.AddDate(0, 0, 1)
	}
	w.event(core.Tick{}, at.Add(further).Sub(w.control.Now()))
}

// The webhook of a schedule gets each week once, when it is over: with the figures of the API and the sentence of the
// terminal. One that refuses it is not called again.
func TestWeekly_ReportsEachWeekOnce(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			h := &weekHook{status: status}
			hook := httptest.NewServer(h)
			defer hook.Close()
			w := newWorldOf(t, &firm{}, hooked)
			folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
			body := scheduled(folder, fmt.Sprintf(`"budget":"60","notify":%q`, hook.URL+"/${TOKEN}"))
			body = strings.Replace(body, `"spec":{`, `"secrets":{"TOKEN":"s3cret"},"spec":{"secrets":["TOKEN"],`, 1)
			w.must("POST", "/v1/groups", body, nil)
			ahead := w.due("retrain", 0) + time.Minute
			w.settled("retrain", 1)
			w.runsAll("retrain.r1", "0.95", ahead)
			w.outbox.WeekPass(t.Context())
			if got := h.reports(); len(got) != 0 {
				t.Fatalf("before the week is over: %+v", got)
			}
			w.nextMonday(0)
			for range 3 {
				w.outbox.WeekPass(t.Context())
			}
			var g api.Group
			w.must("GET", "/v1/groups/retrain", nil, &g)
			got := h.reports()
			if len(got) != 1 {
				t.Fatalf("it got %d reports: %+v", len(got), got)
			}
			first := g.Schedule.Weeks[0]
			want := fmt.Sprintf("week of %s: 1 run, %d skipped, cost %s; on-demand it would be %s",
				first.Begin.UTC().Format("2 January"), first.Skipped, money.Format(first.Cost, money.USD, 4),
				money.Format(*first.OnDemand, money.USD, 4))
			r := got[0]
			if r.Text != want || r.Week.Cost != first.Cost || r.Week.Runs != 1 || r.Schedule != "retrain" || r.Event != "week" {
				t.Errorf("the report is %+v, want the text %q", r, want)
			}
			var cost money.Amount // a second way: what the jobs have cost
			for _, stage := range []string{"prepare", "train", "deploy"} {
				w.control.Read(func(m *core.Machine) {
					cost = cost.Add(m.State().Job("retrain.r1." + stage).Spent(w.control.Now()))
				})
			}
			if r.Week.Cost != cost || cost.Sign() <= 0 {
				t.Errorf("its cost is %v, and its jobs cost %v", r.Week.Cost, cost)
			}
			if h.path != "/s3cret" {
				t.Errorf("the call went to %q, without the secret", h.path)
			}
			state := map[int]string{http.StatusOK: client.Delivered, http.StatusBadRequest: client.Refused}[status]
			if n := g.Schedule.Reports; len(n) != 1 || n[0].State != state || n[0].Event != "week" || n[0].Week != first.Begin.UTC().Format(time.DateOnly) {
				t.Errorf("status says %+v", n)
			}
		})
	}
}

// Weeks of a schedule that are due together arrive in their order.
func TestWeekly_ReportsTheWeeksOfAScheduleInOrder(t *testing.T) {
	t.Parallel()
	h := &weekHook{status: http.StatusOK}
	hook := httptest.NewServer(h)
	defer hook.Close()
	w := newWorldOf(t, &firm{}, hooked)
	first := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	w.outbox.Weeks = func() (list []outbox.Weekly) {
		for n := range 20 {
			list = append(list, outbox.Weekly{User: auth.OwnerName, Webhook: hook.URL,
				Report: outbox.NewWeek("retrain", "retrain", money.USD, client.ScheduleWeek{Begin: first.AddDate(0, 0, 7*n)}, "")})
		}
		return list
	}
	w.outbox.WeekPass(t.Context())
	got := h.reports()
	if len(got) != 20 || !slices.IsSortedFunc(got, func(a, b outbox.WeekReport) int { return a.Week.Begin.Compare(b.Week.Begin) }) {
		t.Errorf("%d weeks arrived: %+v", len(got), got)
	}
}

// A webhook that is not an address, or that leads inside, is refused at submission.
func TestWeekly_RefusesAWebhookThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	rec, p := w.ask("POST", "/v1/groups", auth.OwnerName, scheduled(folder, `"budget":"60","notify":"ann@example.org"`))
	if rec.Code < 400 || p.Field != "pipeline.schedule.notify" || !strings.Contains(p.Fix, "http") {
		t.Errorf("%d, %+v", rec.Code, p)
	}
}

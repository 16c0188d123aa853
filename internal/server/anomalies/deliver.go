package anomalies

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/incident"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/lib/wait"
	"scrimp/internal/server/outbox"
)

const (
	// historyMeta begins the keys of the metadata that hold what alerts have reported.
	historyMeta = "anomaly_alert/"
	// lookEvery is the least interval between two looks for new incidents, in wall time.
	lookEvery = 30 * time.Second
	// rarely bounds the share of time that looks take, on a large ledger: 1/rarely.
	rarely = 20
	// settled is how long an incident must be over before an alert reports its end: the newest slots may not be whole.
	settled = 2 * incident.Slot
	// atOnce bounds the reports that are being made.
	atOnce = 16
)

// everybody sees all teams.
var everybody = identity.Caller{Grants: []identity.Grant{{Team: identity.Everywhere, Role: identity.Viewer}}}

// history is what an alert has reported, and what it has decided to report. The metadata has it before the report is
// made, so a server that starts makes what an earlier one did not.
type history struct {
	Known []known                `json:"known"`
	Due   []outbox.AnomalyReport `json:"due"` // in order; those of one incident wait for each other
}

// known is an incident that an alert has reported, or that is older than the alert.
type known struct {
	Anomaly client.Anomaly `json:"anomaly"` // as reported
	Over    bool           `json:"over"`    // nothing more is to be reported
}

// is reports whether a is the incident, found again by a search with a different past: it is about the same, and at the
// same time.
func (k *known) is(a *client.Anomaly) bool {
	o := &k.Anomaly
	return o.Kind == a.Kind && o.Team == a.Team && o.About == a.About && o.Currency == a.Currency &&
		(a.Until == nil || o.Since.Before(*a.Until)) && (o.Until == nil || a.Since.Before(*o.Until))
}

// pair finds the entry of each incident of a list; -1: none. It pairs names first, since the search may have found a
// later incident about the same.
func (h *history) pair(list []client.Anomaly) []int {
	of, taken := make([]int, len(list)), map[int]bool{}
	for pass := range 2 {
		for i := range list {
			if pass == 0 {
				of[i] = -1
			}
			for j := range h.Known {
				same := h.Known[j].Anomaly.Name == list[i].Name || pass == 1 && h.Known[j].is(&list[i])
				if of[i] < 0 && !taken[j] && same {
					of[i], taken[j] = j, true
				}
			}
		}
	}
	return of
}

// know records that the incidents of a search are older than the alert.
func (h *history) know(a *alert, s *search) {
	for i := range s.alerts {
		if v := s.show(&s.alerts[i]); a.covers(&s.alerts[i]) && !isHidden(&v) {
			h.Known = append(h.Known, known{v, true})
		}
	}
}

// isHidden reports whether lists leave an incident out.
func isHidden(v *client.Anomaly) bool { return v.State != "" && v.State != client.AnomalyConfirmed }

// update adds the reports that the incidents of a search call for, and reports whether anything changed.
func (h *history) update(a *alert, pager bool, s *search, report func(string, *client.Anomaly) outbox.AnomalyReport) (
	changed bool) {
	list := make([]client.Anomaly, len(s.alerts))
	for i := range s.alerts {
		list[i] = s.show(&s.alerts[i])
	}
	of, still := h.pair(list), map[int]bool{}
	begun := len(h.Known)
	for i, at := range of {
		v := &list[i]
		ended := v.Until != nil && !v.Until.After(s.now.Add(-settled))
		if at < 0 {
			if !a.covers(&s.alerts[i]) || isHidden(v) || s.endedSnoozed(&s.alerts[i]) {
				continue
			}
			h.Known = append(h.Known, known{*v, ended})
			h.Due, changed = append(h.Due, report(outbox.AnomalyFound, v)), true
			if ended && pager {
				h.Due = append(h.Due, report(outbox.AnomalyEnded, v))
			}
			continue
		}
		still[at] = true
		if k := &h.Known[at]; !k.Over && (ended || v.State == client.AnomalyDismissed || v.State == client.AnomalyPlanned) {
			v.Name = k.Anomaly.Name // the receiver knows this one
			k.Over, k.Anomaly, changed = true, *v, true
			if pager || !isHidden(v) {
				h.Due = append(h.Due, report(outbox.AnomalyEnded, v))
			}
		}
	}
	return h.drop(begun, still, pager, report) || changed
}

// drop removes entries whose incident no search finds any more. One that was not over has ended for a pager.
func (h *history) drop(begun int, still map[int]bool, pager bool,
	report func(string, *client.Anomaly) outbox.AnomalyReport) (changed bool) {
	var left []known
	for i := range h.Known {
		k := h.Known[i]
		if i >= begun || still[i] {
			left = append(left, k)
			continue
		}
		changed = true
		if !k.Over && pager {
			h.Due = append(h.Due, report(outbox.AnomalyEnded, &k.Anomaly))
		}
	}
	h.Known = left
	return changed
}

// endedSnoozed reports whether an incident was snoozed from its begin to its end.
func (s *search) endedSnoozed(a *incident.Alert) bool {
	z, is := s.said.snoozes[keyOf(a)]
	return is && !a.Until.IsZero() && !a.Found.Before(z.since) && z.until.After(a.Until)
}

// history reads what an alert has reported.
func (d *Service) history(ctx context.Context, name string) (*history, error) {
	h := &history{}
	text, ok, err := d.Meta.Meta(ctx, historyMeta+name)
	if err != nil || !ok || text == "" {
		return h, err
	}
	if err := json.Unmarshal([]byte(text), h); err != nil {
		return nil, fmt.Errorf("read what the alert %s has reported: %w", name, err)
	}
	return h, nil
}

func (d *Service) keepHistory(ctx context.Context, name string, h *history) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return d.Meta.PutMeta(ctx, historyMeta+name, string(text))
}

// Watch looks for new incidents, and reports them to the receivers of the alerts, until ctx ends.
func (d *Service) Watch(ctx context.Context) {
	defer d.reports.Wait()
	d.warnOfRefused(ctx)
	for ctx.Err() == nil {
		begin := time.Now()
		if err := d.Poll(ctx); err != nil && ctx.Err() == nil {
			d.Log.Error("cannot look for new anomalies", "error", err)
		}
		_ = wait.For(ctx, max(lookEvery, rarely*time.Since(begin)))
	}
}

// warnOfRefused logs the alerts that this server does not send, such as those to a host that it may not reach.
func (d *Service) warnOfRefused(ctx context.Context) {
	list, err := d.alerts(ctx)
	if err != nil {
		return // Poll logs it
	}
	for i := range list {
		r, _, err := d.receiver(&list[i])
		if why, fix := d.Outbox.Refusal(r); err == nil && why != "" {
			d.Log.Warn("an alert about anomalies is not sent", "alert", list[i].Name, "why", why, "fix", fix)
		}
	}
}

// Poll looks for new incidents once, if an alert or a metric needs them, and begins the reports.
func (d *Service) Poll(ctx context.Context) error {
	d.alerting.Lock()
	defer d.alerting.Unlock()
	list, err := d.alerts(ctx)
	if err != nil || len(list) == 0 && !d.counts.isWanted() {
		return err
	}
	s, err := d.find(ctx, everybody, "", sinceStandard)
	if err != nil {
		return err
	}
	d.counts.set(s)
	for i := range list {
		if err := d.reportNew(ctx, &list[i], s); err != nil {
			d.Log.Error("cannot report anomalies", "alert", list[i].Name, "error", err)
		}
	}
	return nil
}

// reportNew decides on the reports of an alert, records them and begins to make them.
func (d *Service) reportNew(ctx context.Context, a *alert, s *search) error {
	to, _, err := d.receiver(a)
	if err != nil {
		return err
	}
	h, err := d.history(ctx, a.Name)
	if err != nil {
		return err
	}
	if h.update(a, to.IsPager(), s, func(event string, v *client.Anomaly) outbox.AnomalyReport {
		return d.Outbox.NewAnomalyReport(event, a.Name, v)
	}) {
		if err := d.keepHistory(ctx, a.Name, h); err != nil {
			return err
		}
	}
	first := map[string]bool{}
	for _, r := range h.Due {
		if first[r.Anomaly.Name] {
			continue // it waits for the earlier one about the incident
		}
		first[r.Anomaly.Name] = true
		d.begin(ctx, a, to, r)
	}
	return nil
}

// making is the reports that are being made.
type making struct {
	sync.WaitGroup
	mu    sync.Mutex
	stops map[string]context.CancelFunc // by alert and report
	slots chan struct{}
}

// begin makes a report beside the looks, unless it is being made.
func (d *Service) begin(ctx context.Context, a *alert, to outbox.Receiver, r outbox.AnomalyReport) {
	m, id := &d.reports, a.Name+" "+r.ID
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stops == nil {
		m.stops, m.slots = map[string]context.CancelFunc{}, make(chan struct{}, atOnce)
	}
	if m.stops[id] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	m.stops[id] = cancel
	m.Go(func() {
		defer cancel()
		select {
		case m.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		defer func() { <-m.slots }()
		isolate.Retry(ctx, d.Log, "report of alert "+a.Name, func() {
			if !d.Outbox.ReportAnomaly(ctx, to, a.User, r) {
				return // the next start goes on
			}
			d.made(ctx, a.Name, r.ID)
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.stops, id)
		})
	})
}

// stopReports ends the reports of an alert.
func (d *Service) stopReports(name string) {
	d.reports.mu.Lock()
	defer d.reports.mu.Unlock()
	for id, stop := range d.reports.stops {
		if len(id) > len(name) && id[:len(name)+1] == name+" " {
			stop()
		}
	}
}

// made removes a report that is settled from those that are due.
func (d *Service) made(ctx context.Context, name, id string) {
	d.alerting.Lock()
	defer d.alerting.Unlock()
	h, err := d.history(ctx, name)
	if err == nil {
		n := len(h.Due)
		h.Due = slices.DeleteFunc(h.Due, func(r outbox.AnomalyReport) bool { return r.ID == id })
		if len(h.Due) == n { // the alert was removed
			return
		}
		err = d.keepHistory(ctx, name, h)
	}
	if err != nil && ctx.Err() == nil {
		d.Log.Warn("cannot record that a report was made; the next look finds that out", "alert", name, "error", err)
	}
}

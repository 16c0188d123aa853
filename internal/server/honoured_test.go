package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
)

// A job that could not run as its file says is refused, alone and in a batch, with the field, the reason and the
// fix; other jobs are accepted.
func TestSubmission_RefusesUnsupportedFields(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.until(func(m *core.Machine) bool { return len(m.State().Sale()) > 0 })
	for fields, field := range map[string]string{
		`"window":"22:00-06:00"`: "window", `"compat":"dstack"`: "compat", `"resources":{"disk":"100GiB+"}`: "resources.disk",
		`"any_of":[{"resources":{"disk":"1GiB+"}}]`:                                          "any_of[0].resources.disk",
		`"resources":{"accelerator":"H100:8"}`:                                               "resources.accelerator",
		`"resources":{"accelerator":"H100"},"any_of":[{"resources":{"accelerator":"A100"}}]`: "resources.accelerator",
	} {
		job := costing("j", "", ","+fields)
		for path, body := range map[string]string{"/v1/jobs": job, "/v1/jobs/batch": "[" + job + "]"} {
			rec, p := w.ask("POST", path, auth.OwnerName, body)
			if rec.Code != http.StatusUnprocessableEntity || strings.TrimPrefix(p.Field, "[0].") != field || p.Fix == "" {
				t.Errorf("%s, %s: %d %+v", path, fields, rec.Code, p)
			}
		}
	}
	for what, body := range map[string]string{
		"kind, data, work and Slurm": costing("a", "", `,"kind":"inference","compat":"slurm","data":[{"path":"c"}],"work":{"tokens":5}`),
		"an alternative without one": costing("b", "", `,"resources":{"accelerator":"H100"},"any_of":[{"resources":{"cpus":"1+"}}]`),
		"its sender lets it wait": strings.Replace(costing("c", "", `,"resources":{"accelerator":"H100"}`), "{",
			`{"accept_wait":true,`, 1),
	} {
		if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, body); rec.Code != http.StatusOK {
			t.Errorf("%s: %d %+v", what, rec.Code, p)
		}
	}
	if rec, p := newWorld(t, nil).ask("POST", "/v1/jobs", auth.OwnerName,
		costing("d", "", `,"resources":{"accelerator":"H100"}`)); rec.Code != http.StatusOK {
		t.Errorf("nothing is for sale yet, so nobody knows: %d %+v", rec.Code, p)
	}
}

// leased sells two reserved machines and nothing else.
type leased struct{ shut }

func (leased) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	o := market.Offer{ID: "two", Provider: "firm", Region: "r", Zone: "r-a", Capacity: market.Reserved, CPUs: 4,
		Memory: 1 << 30, Currency: money.USD, Speed: 1, Reserved: market.Reservation{Count: 2}}
	q := market.Quote{Offer: o.ID, Rate: firmRate, Priced: true, Available: true, At: time.Now().UTC()}
	return []market.Offer{o}, []market.Quote{q}, nil
}

// A job on more machines than all reservations have, with nothing else for sale, would wait for ever. It is refused
// with the highest possible number, unless the user accepts a wait.
func TestGang_LargerThanAllReservationsIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, leased{}, nil)
	w.until(func(m *core.Machine) bool { return len(m.State().Sale()) > 0 })
	for nodes, code := range map[string]int{`"nodes":2`: 200, `"nodes":"2..4"`: 200, `"nodes":3`: 422, `"nodes":"3..4"`: 422} {
		rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, costing("j-"+strings.Trim(nodes[8:], `"`)[:1]+strconv.Itoa(len(nodes)), "", ","+nodes))
		if rec.Code != code || code == 422 && (p.Field != "nodes" || !strings.Contains(p.Fix, "nodes: 2")) {
			t.Errorf("%s: %d %+v", nodes, rec.Code, p)
		}
	}
	waits := strings.Replace(costing("w", "", `,"nodes":3`), "{", `{"accept_wait":true,`, 1)
	if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, waits); rec.Code != http.StatusOK {
		t.Errorf("its sender lets it wait: %d %+v", rec.Code, p)
	}
}

package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/wire/api"
)

// quotaless sells one machine, whose launches are refused for a quota of zero.
type quotaless struct{ firm }

func (*quotaless) Launch(context.Context, engine.Request) ([]engine.Instance, error) {
	return nil, &engine.RefusalError{Err: fmt.Errorf("%w: no more than 0 of these", engine.ErrQuota)}
}

// A provider's refusal appears in its own words where users look: at the next decision, at the offer, and in the
// receipt.
func TestRefusal_ShowsTheProvidersWords(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &quotaless{}, nil)
	w.until(func(m *core.Machine) bool { return len(m.State().Sale()) > 0 })
	w.must("POST", "/v1/jobs", costing("j", "", ""), nil)
	w.until(func(m *core.Machine) bool {
		for _, l := range m.Sale() {
			return !l.Cools.IsZero()
		}
		return false
	})
	const words = "quota: no more than 0 of these"
	var decisions []api.Decision
	w.must("GET", "/v1/jobs/j/explain", nil, &decisions)
	if n := len(decisions); n < 2 || !strings.Contains(decisions[n-1].Refused, words) || decisions[0].Refused != "" {
		t.Errorf("the decisions are %+v", decisions)
	}
	var sale api.Market
	w.must("GET", "/v1/market", nil, &sale)
	if l := sale.Offers[0]; !l.Cools.After(sale.Clock.Now) || !strings.Contains(l.CoolsFor, words) {
		t.Errorf("the offer is listed as %+v", l)
	}
	var r api.Receipt
	w.must("GET", "/v1/jobs/j/receipt", nil, &r)
	if n := len(r.Decisions); n < 2 || r.Decisions[n-1].Refused != "quota" || r.Decisions[0].Refused != "" {
		t.Errorf("the receipt's decisions are %+v", r.Decisions)
	}
}

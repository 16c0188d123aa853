package reports

import (
	"testing"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/incident"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// A charge without a period, whose hour reaches beyond now, does not end an incident that goes on.
func TestIncidentRow_LeavesAnIncidentOpenThatGoesOn(t *testing.T) {
	now := time.Date(2026, 10, 1, 10, 20, 0, 0, time.UTC)
	idle := charge.Charge{Begin: now.Add(-2 * time.Hour), End: now, Amount: money.Picos(2e12), Currency: "USD", Category: ledger.Compute,
		Use: ledger.Idle, Timed: true, Time: 2 * time.Hour, Price: ledger.PriceOf(1e12, true), Owner: ledger.Owner{Team: "vision", Instance: "i-1"}}
	unused := charge.Charge{Begin: now.Truncate(time.Hour), End: now.Truncate(time.Hour).Add(time.Hour), Amount: money.Picos(1e12), Currency: "USD",
		Category: ledger.Fixed, Use: ledger.Idle, Owner: ledger.Owner{Team: "vision", Instance: "held"}}
	rows := []incident.Row{IncidentRow(&idle, now), IncidentRow(&unused, now)}
	if !rows[1].End.Equal(now) || rows[1].Amount != unused.Amount {
		t.Errorf("%+v", rows[1])
	}
	list := incident.Find(rows)
	if len(list) != 1 || list[0].About != "i-1" || !list[0].Until.IsZero() {
		t.Errorf("%+v", list)
	}
}

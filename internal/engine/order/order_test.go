package order_test

import (
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/order"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// An hour at a rate costs the rate, and a machine without a price has no bill.
func TestOrder_BillsSecondsAtItsRate(t *testing.T) {
	t.Parallel()
	rate, err := money.ParseRate("2.50")
	must.Do(t, err)
	q := engine.Request{Key: "k", Offer: "hpc/gpu", Tags: map[string]string{"a": "b"}}
	offer, quote := market.Offer{Currency: "EUR"}, market.Quote{Rate: rate, Priced: true}
	o := order.Of(&q, &offer, &quote)
	q.Tags["a"] = "changed"
	from := time.Unix(1_000, 0)
	if i := o.Instance("m", from); i.Tags["a"] != "b" || i.State != engine.Running || i.Key != "k" || i.Rate != rate {
		t.Errorf("the machine is %+v", i)
	}
	bill := o.Bill(from, from.Add(90*time.Minute))
	if len(bill) != 1 || bill[0].Amount.String() != "3.75" || bill[0].Currency != "EUR" || o.Nodes != 1 {
		t.Errorf("90 minutes at 2.50 cost %+v", bill)
	}
	quote.Priced = false
	if o = order.Of(&q, &offer, &quote); o.Bill(from, from.Add(time.Hour)) != nil {
		t.Error("an unknown price has a bill")
	}
}

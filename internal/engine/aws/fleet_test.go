//go:build !local

package aws

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/market"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/must"
)

const anyOfC7i = market.OfferID("aws/any/small/spot")

func newFleetSite(t *testing.T, o awstest.Options, fleets ...setting.Fleet) *site {
	s := newSite(t, o)
	s.with.Types, s.with.Fleets = []string{"c7i.*", "m7i.large", "g5.xlarge"}, fleets
	return s
}

func (s *site) find(d *Driver, id market.OfferID) (market.Offer, market.Quote) {
	s.Helper()
	offers, quotes, err := d.Offers(s.Context())
	must.Do(s, err)
	n := slices.IndexFunc(offers, func(o market.Offer) bool { return o.ID == id })
	if n < 0 {
		s.Fatalf("there is no %s", id)
	}
	return offers[n], quotes[n]
}

// A fleet is sold as the minimum of its machines, at the price of the most expensive one that EC2 may pick. The test
// computes the bounds from the offers of its types alone.
func TestFleet_IsSoldAsItsSmallestMachine(t *testing.T) {
	s := newFleetSite(t, awstest.Options{}, setting.Fleet{Name: "small", Types: []string{"c7i.*", "m7i.large"}, Within: "150%"})
	d := s.driver()
	o, q := s.find(d, anyOfC7i)
	offers, quotes, err := d.Offers(t.Context())
	must.Do(t, err)
	var least market.Quote
	for n, p := range offers {
		in := strings.HasPrefix(p.Machine, "c7i.") || p.Machine == "m7i.large"
		if !in || p.Capacity != market.Spot {
			continue
		}
		if p.CPUs < o.CPUs || p.Memory < o.Memory || p.Accelerators != o.Accelerators {
			t.Errorf("%s has less than %+v", p.ID, o)
		}
		if least.Rate == 0 || quotes[n].Rate < least.Rate {
			least = quotes[n]
		}
	}
	var most market.Quote
	for n, p := range offers {
		in := strings.HasPrefix(p.Machine, "c7i.") || p.Machine == "m7i.large"
		if in && p.Capacity == market.Spot && quotes[n].Rate*10 <= least.Rate*25 && quotes[n].Rate > most.Rate {
			most = quotes[n]
		}
	}
	if !q.Priced || q.Rate != most.Rate || most.Rate == least.Rate {
		t.Errorf("priced at %v; the cheapest is %v, and the dearest within 150%% %v", q.Rate, least.Rate, most.Rate)
	}
}

// If the cheapest pool has no room, EC2 rents from another pool of the fleet, at that pool's price. Repeating the key
// rents nothing more, even after price changes and from a server without memory.
func TestFleet_RentsWhereThereIsRoom(t *testing.T) {
	s := newFleetSite(t, awstest.Options{}, setting.Fleet{Name: "small", Types: []string{"c7i.xlarge", "m7i.large"}, Within: "900%"})
	d := s.driver()
	x, err := d.indexed(t.Context())
	must.Do(t, err)
	all := d.seller.Sales(x)
	n := slices.IndexFunc(all, func(s sale.Sale) bool { return s.Offer.ID == anyOfC7i })
	cheapest := all[n].Among[0]
	must.Do(t, s.SetCapacity(catalog.Pool{Type: cheapest.Kind.Name, Zone: cheapest.Zone.Name, Spot: true}, 0))
	q := engine.Request{Key: "one", Offer: anyOfC7i, Nodes: 2}
	list, err := d.Launch(t.Context(), q)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	bill := s.Bill()
	var kinds []string
	for _, i := range bill {
		if i.Kind != "instance" {
			continue
		}
		kinds = append(kinds, i.Type+" "+i.Zone)
		if i.Type == cheapest.Kind.Name && i.Zone == cheapest.Zone.Name {
			t.Errorf("%s is where there is no room", i.ID)
		}
		p := all[slices.IndexFunc(all, func(s sale.Sale) bool {
			return s.Kind.Name == i.Type && s.Zone.Name == i.Zone && s.Offer.Capacity == market.Spot
		})]
		got := list[slices.IndexFunc(list, func(e engine.Instance) bool { return e.ID == i.ID })]
		if got.Offer != anyOfC7i || got.Rate != p.Quote.Rate {
			t.Errorf("%s is %s at %v, want %v of %s", i.ID, got.Offer, got.Rate, p.Quote.Rate, p.Offer.ID)
		}
	}
	if len(kinds) != 2 || kinds[0] != kinds[1] {
		t.Errorf("a gang is rented as %v: it wants one type in one zone", kinds)
	}
	must.Do(t, s.SetSpotPrice(cheapest.Kind.Name, cheapest.Zone.Name, "0.9"))
	for _, d := range []*Driver{d, s.driver()} {
		again, err := d.Launch(t.Context(), q)
		if err != nil || len(again) != 2 || again[0].ID != list[0].ID {
			t.Errorf("asked again: %v, %v", again, err)
		}
	}
}

// A fleet without capacity is refused as a pool is, and the other offers stay.
func TestFleet_IsRefusedWithoutRoom(t *testing.T) {
	none := map[catalog.Pool]int{}
	for _, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1e", "us-east-1f"} {
		none[catalog.Pool{Type: "c7i.xlarge", Zone: zone, Spot: true}] = 0
	}
	s := newFleetSite(t, awstest.Options{Capacity: none}, setting.Fleet{Name: "small", Types: []string{"c7i.xlarge"}})
	d := s.driver()
	if _, err := d.Launch(t.Context(), engine.Request{Key: "one", Offer: anyOfC7i}); !errors.Is(err, engine.ErrNoCapacity) {
		t.Fatal(err)
	}
	if _, q := s.find(d, anyOfC7i); q.Available {
		t.Error("it is still said to be available")
	}
	if _, q := s.find(d, "aws/us-east-1a/c7i.xlarge/on-demand"); !q.Available {
		t.Error("another offer is not available any more")
	}
	if len(s.Bill()) != 0 {
		t.Error("something was rented")
	}
}

// Fleets that are impossible or empty are refused with the field and the fix.
func TestFleets_AreRefusedWhenImpossible(t *testing.T) {
	for _, c := range []struct {
		fleets []setting.Fleet
		want   string
	}{
		{[]setting.Fleet{{Name: "A10G"}}, `name is "A10G": write small letters`},
		{[]setting.Fleet{{Name: "a"}, {Name: "a"}}, "fleets: a: there are two"},
		{[]setting.Fleet{{Name: "a", Within: "a lot"}}, `within is "a lot": write`},
		{[]setting.Fleet{{Name: "a", Types: []string{"g5"}}}, `types has "g5": write`},
	} {
		s := engine.Setting{With: engine.WithOf(setting.With{Region: "us-east-1", Types: []string{"g5.*"}, Fleets: c.fleets})}
		if _, err := setting.Read(&s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.fleets, err, c.want)
		}
	}
	s := newFleetSite(t, awstest.Options{}, setting.Fleet{Name: "mixed"}, setting.Fleet{Name: "none", Types: []string{"p5.48xlarge"}})
	for _, f := range s.driver().Examine(t.Context()) {
		if f.Name == "types" && (f.OK || !strings.Contains(f.Text, "the fleet mixed has machines with different accelerators") ||
			!strings.Contains(f.Text, "the fleet none has none of what is sold")) {
			t.Errorf("%+v", f)
		}
	}
}

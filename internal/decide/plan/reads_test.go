package plan

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/egress"
)

// corpus is 200 GB in us-east-1, with a fare of $0.02 on the continent and $0.09 to anywhere else.
func corpus() Read {
	return Read{Origin: egress.Origin{Provider: "aws", Region: "us-east-1", Near: new(money.Rate(2e10)),
		Out: new(money.Rate(9e10)), Own: []string{"lab"}, Sellers: []string{"aws-2"}},
		Path: "s3://bucket/corpus", Bytes: 200e9}
}

func at(provider, region string, capacity market.Capacity, cents int) Listing {
	id := market.OfferID(fmt.Sprintf("%s/%s/%s", provider, region, capacity))
	return Listing{
		Offer: market.Offer{ID: id, Provider: provider, Region: region, Capacity: capacity, CPUs: 1, Speed: 1},
		Quote: market.Quote{Offer: id, Rate: money.Rate(cents) * 1e10, Priced: true, Available: true},
	}
}

func reader(left time.Duration, reads ...Read) Job {
	return Job{Need: Need{Reads: reads}, Progress: policy.Progress{Now: now, Began: now, Left: left, Known: true,
		Restart: time.Minute, Detect: time.Minute}}
}

func TestReadCost_IsSizeTimesFareOfTheWay(t *testing.T) {
	unsized := corpus()
	unsized.Bytes = 0
	for _, c := range []struct {
		read             Read
		provider, region string
		want             string // "" is unknown
	}{
		{corpus(), "aws", "us-east-1", "0"},
		{corpus(), "aws", "us-west-2", "4"},
		{corpus(), "aws-2", "us-west-2", "4"},
		{corpus(), "aws-2", "us-east-1", "0"},
		{corpus(), "aws", "eu-west-1", ""},
		{corpus(), "gcp", "us-east-1", "18"},
		{corpus(), "lab", "us-east-1", "0"},
		{corpus(), "lab", "lab", "18"},
		{corpus(), "slurm", "", "0"},
		{unsized, "aws", "us-east-1", "0"},
		{unsized, "aws", "us-west-2", ""},
		{Read{Origin: egress.Origin{Region: "eu"}, Bytes: 1}, "any", "eu", "0"},
		{Read{Origin: egress.Origin{Region: "eu"}, Bytes: 1}, "any", "us", ""},
	} {
		n := Need{Reads: []Read{c.read}}
		l := at(c.provider, c.region, market.OnDemand, 100)
		cost, ok := n.ReadCost(&l.Offer)
		if want := c.want; ok != (want != "") || ok && cost.String() != want {
			t.Errorf("%s to %s %s costs %s, %v; want %q", c.read.Path, c.provider, c.region, cost, ok, want)
		}
		if _, ok := n.Fits(&l); ok != (c.want != "") {
			t.Errorf("to %s %s: suitable: %v", c.provider, c.region, ok)
		}
	}
	two := Need{Reads: []Read{corpus(), corpus()}}
	l := at("aws", "us-west-2", market.OnDemand, 100)
	if cost, ok := two.ReadCost(&l.Offer); !ok || cost.String() != "8" {
		t.Errorf("two inputs cost %s, %v; want 8", cost, ok)
	}
}

// Reading the data from another region costs $4: over ten hours, 40 cents an hour. A machine there costs less in total
// only if it saves more than that.
func TestDecide_RunsNearTheDataUnlessElsewhereCostsLessInTotal(t *testing.T) {
	for _, capacity := range []market.Capacity{market.OnDemand, market.Spot} {
		for _, rule := range []policy.Rule{policy.Default, policy.UniformProgress} {
			for cents := 5; cents < 150; cents += 10 {
				for hours := 1; hours <= 40; hours += 3 {
					job := reader(time.Duration(hours)*time.Hour, corpus())
					job.Rule = rule
					sale := []Listing{at("aws", "us-east-1", capacity, 100), at("aws", "us-west-2", capacity, cents),
						at("aws", "eu-west-1", capacity, 1)}
					d := decide(job, sale)
					want := sale[0].Offer.ID
					if 400+cents*hours < 100*hours {
						want = sale[1].Offer.ID
					}
					if 400+cents*hours != 100*hours && d.Take != want {
						t.Errorf("%s by %q: %d ¢ elsewhere for %d h: it takes %s, want %s", capacity, rule, cents, hours,
							d.Take, want)
					}
					if whole := d.Take == sale[1].Offer.ID; d.Reads.IsZero() == whole || whole && d.Reads.String() != "4" {
						t.Errorf("the decision for %s says %s of reads", d.Take, d.Reads)
					}
				}
			}
		}
	}
}

func TestDecide_HeldMachineDoesNotPayForReadingTwice(t *testing.T) {
	sale := []Listing{at("aws", "us-east-1", market.Spot, 100), at("aws", "us-west-2", market.Spot, 70)}
	job := reader(10*time.Hour, corpus())
	if d := decide(job, sale); d.Take != sale[0].Offer.ID {
		t.Fatalf("it begins on %s", d.Take)
	}
	job.Held, job.HeldRate = sale[1].Offer.ID, sale[1].Quote.Rate
	if d := decide(job, sale); d.Take != sale[1].Offer.ID || d.Why != Stays || d.Reads.String() != "4" {
		t.Errorf("it leaves the machine that has read the data: %+v", d)
	}
	job.Unread = true
	if d := decide(job, sale); d.Take != sale[0].Offer.ID {
		t.Errorf("an idle machine that has yet to read the data is kept: %+v", d)
	}
}

func TestDecide_UnknownTransferPriceIsNotZero(t *testing.T) {
	sale := []Listing{at("aws", "eu-west-1", market.OnDemand, 1), at("aws", "us-east-1", market.OnDemand, 100)}
	d := decide(reader(time.Hour, corpus()), sale)
	if d.Take != sale[1].Offer.ID || len(d.Rejected) != 1 || d.Rejected[0].Why != UnknownFare {
		t.Errorf("%+v", d)
	}
	if d := decide(reader(time.Hour, corpus()), sale[:1]); d.Take != "" || d.Why != NoOffer || !d.Unschedulable {
		t.Errorf("without an offer whose fare is known: %+v", d)
	}
}

// On-demand in us-west-2 costs half as much an hour, and $4 more at once, so it costs less in total from eight hours
// on.
func TestOnDemand_ComparesTotalCosts(t *testing.T) {
	sale := []Listing{at("aws", "us-east-1", market.OnDemand, 100), at("aws", "us-west-2", market.OnDemand, 50),
		at("aws", "eu-west-1", market.OnDemand, 1)}
	need := Need{Reads: []Read{corpus()}}
	for hours := 1; hours < 20; hours++ {
		for nodes := 1; nodes <= 2; nodes++ {
			got, ok := need.OnDemand(Work{Span: time.Duration(hours) * time.Hour, Nodes: nodes, Reads: true}, func(yield func(*Listing) bool) {
				for i := range sale {
					if !yield(&sale[i]) {
						return
					}
				}
			})
			want, cents := sale[0].Offer.ID, 100*hours*nodes
			if 100*hours > 50*hours+400 {
				want, cents = sale[1].Offer.ID, 50*hours*nodes
			}
			if !ok || got.Offer != want || got.Cost.Cmp(money.Picos(int64(cents)*1e10)) != 0 {
				t.Errorf("%d h on %d machines: %+v, %v; want %s for %d ¢", hours, nodes, got, ok, want, cents)
			}
		}
	}
}

func TestNeedKey_TellsReadsApart(t *testing.T) {
	far := corpus()
	far.Region = "us-west-2"
	seen := map[string]int{}
	for i, n := range []Need{{}, {Reads: []Read{corpus()}}, {Reads: []Read{far}}, {Reads: []Read{corpus(), far}}} {
		if j, known := seen[n.Key()]; known {
			t.Errorf("needs %d and %d share a class", i, j)
		}
		seen[n.Key()] = i
	}
	old, err := json.Marshal(Need{})
	if err != nil || string(old) != "{}" {
		t.Errorf("a need without reads is logged as %s, %v", old, err)
	}
}

// With a deadline, tables weigh the zones of several regions. They also take the machine near the data unless another
// clearly costs less in total.
func TestDecide_TablesWeighReadsOfSeveralZones(t *testing.T) {
	for _, c := range []struct {
		cents int
		taken int // of the sale below
	}{{75, 0}, {65, 0}, {30, 1}, {45, 1}} {
		sale := []Listing{at("aws", "us-east-1", market.Spot, 100), at("aws", "us-west-2", market.Spot, c.cents),
			at("aws", "us-east-1", market.OnDemand, 300), at("aws", "us-west-2", market.OnDemand, 300)}
		job := reader(10*time.Hour, corpus())
		job.Progress.Deadline = now.Add(30 * time.Hour)
		d := decide(job, sale)
		if d.Take != sale[c.taken].Offer.ID || d.Expect == nil {
			t.Errorf("%d ¢ elsewhere: it takes %s because %s, %+v", c.cents, d.Take, d.Why, d.Expect)
		}
	}
}

// A job with a budget starts only where the budget pays for the inputs that scrimp brings. What the program reads
// itself is not part of the job's spending.
func TestDecide_BudgetPaysForBringingInputs(t *testing.T) {
	for _, c := range []struct {
		name, left string
		pays       bool
	}{{"corpus", "4.5", false}, {"corpus", "5.1", true}, {"", "1.1", true}, {"", "0.9", false}} {
		l := at("aws", "us-west-2", market.OnDemand, 100)
		l.Offer.Currency = money.USD
		read := corpus()
		read.Name = c.name
		left, err := money.Parse(c.left)
		if err != nil {
			t.Fatal(err)
		}
		job := reader(58*time.Minute, read) // an hour with the restart: $1, and $4 for reading
		job.Limited, job.Left = true, left
		r := &ranking{}
		o := &Option{Listing: &l, speed: 1, payable: true}
		r.options = []Option{*o}
		if got := r.payFor(&job, false); got != c.pays {
			t.Errorf("$%s pay for the input %q and an hour: %v", c.left, c.name, got)
		}
		job.Left = money.Picos(4e12)
		if why := r.unaffordable(&job, o); (why == OverBudget) != (c.name != "") {
			t.Errorf("with $4, the input %q is %q", c.name, why)
		}
	}
}

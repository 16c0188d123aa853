//go:build !local

package aws

import (
	"errors"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/lane"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/must"
)

// opened is the start time of the clouds in these tests.
var opened = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// reserveSite is a cloud whose time, and its servers' time, the test controls.
type reserveSite struct {
	*site
	at  time.Time
	dir string
}

func newReserveSite(t *testing.T, o awstest.Options) *reserveSite {
	r := &reserveSite{at: opened, dir: t.TempDir()}
	o.Now = func() time.Time { return r.at }
	r.site = newSite(t, o)
	return r
}

// server returns a new server with what earlier ones have stored.
func (r *reserveSite) server() *Driver {
	r.Helper()
	e, err := Open(r.Context(), engine.Setting{Name: "aws", Kind: Kind, Agents: "http://10.0.0.1:7077",
		With: engine.WithOf(r.with)}, engine.Host{Dir: r.dir})
	must.Do(r, err)
	d, ok := e.Driver.(*Driver)
	if !ok {
		r.Fatal("another driver")
	}
	d.now, d.visible, d.with.Backoff = func() time.Time { return r.at }, 0, 0
	return d
}

func (r *reserveSite) reserve(o awstest.Reservation) string {
	r.Helper()
	id, err := r.ReserveCapacity(o)
	must.Do(r, err)
	return id
}

// pass advances the time.
func (r *reserveSite) pass(d time.Duration) { r.at = r.at.Add(d) }

func (r *reserveSite) launch(d *Driver, key string, nodes int, o market.OfferID) []engine.Instance {
	r.Helper()
	list, err := d.Launch(r.Context(), engine.Request{Key: key, Nodes: nodes, Offer: o})
	if err != nil || len(list) != nodes {
		r.Fatalf("%s: %v, %v", key, list, err)
	}
	return list
}

func (r *reserveSite) list(d *Driver) []engine.Instance {
	r.Helper()
	list, err := d.List(r.Context())
	must.Do(r, err)
	return list
}

// billed adds up the cloud's bill for some kinds of lines.
func (r *reserveSite) billed(kinds ...string) *big.Rat {
	sum := new(big.Rat)
	for _, l := range r.Bill() {
		if slices.Contains(kinds, l.Kind) {
			sum.Add(sum, l.USD)
		}
	}
	return sum
}

// same reports whether two sums are equal except for what is cut off at 1e-12.
func same(a, b *big.Rat) bool {
	off := new(big.Rat).Sub(a, b)
	return off.Abs(off).Cmp(big.NewRat(1, 1e9)) < 0
}

func ratOf(a money.Amount) *big.Rat {
	v, _ := new(big.Rat).SetString(a.String())
	return v
}

const reservedG5 = market.OfferID("aws/us-east-1a/g5.xlarge/reserved")

// A reservation costs what the cloud bills: used and unused hours, disks and addresses, over its whole time, however
// long its machines ran, and despite a restart of the server.
func TestReservation_CostsWhatTheCloudBills(t *testing.T) {
	r := newReserveSite(t, awstest.Options{Capacity: map[catalog.Pool]int{{Type: "g5.xlarge", Zone: "us-east-1a"}: 0},
		Quotas: map[string]int{"L-DB2E81BA": 0}, Public: true})
	id := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1a", Count: 3, From: r.at, To: r.at.Add(5 * time.Hour)})
	r.with.Reservations = setting.Reservations{{ID: id, Team: "vision"}}
	d := r.server()
	o, q := r.find(d, reservedG5)
	if o.Reserved.Count != 3 || !o.Reserved.Until.Equal(r.at.Add(5*time.Hour)) || o.Reserved.Team != "vision" ||
		!q.Priced || !q.Available || q.Rate-o.Reserved.Marginal != 1006000000000 || o.Capacity != market.Reserved {
		t.Fatalf("%+v %+v", o, q)
	}
	gang := r.launch(d, "gang", 2, reservedG5)
	if gang[0].Rate != q.Rate {
		t.Errorf("%v an hour, want %v", gang[0].Rate, q.Rate)
	}
	r.pass(time.Hour)
	d = r.server()
	one := r.launch(d, "one", 1, reservedG5)
	if again := r.launch(r.server(), "one", 1, reservedG5); again[0].ID != one[0].ID {
		t.Errorf("asked again: %v", again)
	}
	if _, err := d.Launch(t.Context(), engine.Request{Key: "full", Offer: reservedG5}); !errors.Is(err, engine.ErrNoCapacity) {
		t.Errorf("where it is full: %v", err)
	}
	r.pass(30 * time.Minute)
	for _, i := range gang {
		must.Do(t, d.Terminate(t.Context(), i.ID))
	}
	r.list(d)
	r.pass(time.Hour)
	must.Do(t, d.Terminate(t.Context(), one[0].ID))
	machines, beside := new(big.Rat), new(big.Rat)
	for _, i := range r.list(d) {
		machines.Add(machines, sumOf(&i, "instance"))
		beside.Add(beside, new(big.Rat).Add(sumOf(&i, "disk"), sumOf(&i, "address")))
	}
	if want := r.billed("instance"); !same(machines, want) {
		t.Errorf("machines cost %s, and are told as %s", want.FloatString(6), machines.FloatString(6))
	}
	if want := r.billed("volume", "address"); !same(beside, want) || want.Sign() == 0 {
		t.Errorf("disks and addresses cost %s, and are told as %s", want.FloatString(6), beside.FloatString(6))
	}
	for range 6 {
		r.pass(time.Hour)
		o, q = r.find(d, reservedG5)
		want := r.billed("instance", "reservation")
		if got := ratOf(o.Reserved.Committed(r.at)); !same(got, want) {
			t.Errorf("%v: the cloud bills %s, and it has cost %s", r.at, want.FloatString(6), got.FloatString(6))
		}
	}
	if q.Available {
		t.Error("it has ended, and is available")
	}
	if _, err := d.Launch(t.Context(), engine.Request{Key: "late", Offer: reservedG5}); !errors.Is(err, engine.ErrNoCapacity) {
		t.Errorf("after its end: %v", err)
	}
	if _, q := r.find(d, "aws/us-east-1a/g5.xlarge/on-demand"); q.Rate == 0 {
		t.Error("the machine on demand is gone")
	}
}

// Costs before scrimp knew the reservation do not count. A change of its size counts from then on. Two reservations
// of the same type and zone keep different names for good.
func TestReservations_ChangeAndKeepTheirNames(t *testing.T) {
	r := newReserveSite(t, awstest.Options{})
	first := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1a", Count: 1, From: r.at.Add(-100 * time.Hour)})
	r.with.Reservations = setting.Reservations{{ID: "all"}, {ID: first, Rate: "0.5"}}
	d := r.server()
	if o, _ := r.find(d, reservedG5); o.Reserved.Committed(r.at).Sign() != 0 || !o.Reserved.Until.After(r.at.Add(1000*time.Hour)) {
		t.Errorf("%+v", o.Reserved)
	}
	r.pass(time.Hour)
	second := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1a", Count: 2, From: r.at})
	must.Do(t, r.CancelReservation(first))
	r.pass(2 * time.Minute)
	d = r.server()
	o, q := r.find(d, reservedG5)
	other, p := r.find(d, market.OfferID("aws/us-east-1a/g5.xlarge@"+second+"/reserved"))
	if q.Available || !p.Available || o.Reserved.Count != 1 || other.Reserved.Count != 2 {
		t.Errorf("%+v %+v, %+v %+v", o, q, other, p)
	}
	if got := ratOf(o.Reserved.Committed(r.at.Add(time.Hour))); !same(got, big.NewRat(31, 60)) { // an hour and two minutes
		t.Errorf("it has cost %s", got.FloatString(6))
	}
	if i := r.launch(d, "one", 1, other.ID); i[0].Rate != p.Rate || i[0].Offer != other.ID {
		t.Errorf("%+v", i)
	}
	list, err := filepath.Glob(filepath.Join(r.dir, "engines", "aws", "*"))
	if err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

// A block costs exactly what was paid for it, spread over the time up to half an hour before its end, when EC2 takes
// its machines. That is announced beforehand, and is an interruption.
func TestBlock_CostsWhatWasPaid(t *testing.T) {
	r := newReserveSite(t, awstest.Options{})
	id := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1a", Count: 2, From: r.at.Add(time.Hour),
		To: r.at.Add(25 * time.Hour), Block: true, Fee: "40.123456789"})
	r.with.Reservations = setting.Reservations{{ID: id}}
	d := r.server()
	if o, q := r.find(d, reservedG5); q.Priced || o.Reserved.Count != 0 || o.Machines != 2 {
		t.Fatalf("nobody says what it cost: %+v %+v", o, q)
	}
	if _, err := d.Launch(t.Context(), engine.Request{Key: "unpriced", Offer: reservedG5, MaxRate: 1 << 60}); !errors.Is(err, engine.ErrPrice) {
		t.Errorf("unpriced: %v", err)
	}
	r.with.Reservations = setting.Reservations{{ID: id, Paid: "40.123456789"}}
	yes := true
	r.with.PublicIP = &yes // then the interface carries the subnet
	d = r.server()
	o, q := r.find(d, reservedG5)
	end := r.at.Add(24*time.Hour + 30*time.Minute)
	if !o.Reserved.Until.Equal(end) || q.Available || !q.Priced || !o.Reserved.From.Equal(r.at.Add(time.Hour)) {
		t.Fatalf("%+v %+v", o, q)
	}
	if _, err := d.Launch(t.Context(), engine.Request{Key: "early", Offer: reservedG5}); !errors.Is(err, engine.ErrNoCapacity) {
		t.Errorf("before it begins: %v", err)
	}
	r.pass(time.Hour + 3*time.Minute)
	if _, err := d.Launch(t.Context(), engine.Request{Key: "three", Nodes: 3, Offer: reservedG5}); !errors.Is(err, engine.ErrNoCapacity) {
		t.Errorf("three of two: %v", err)
	}
	r.pass(3 * time.Minute)
	if _, q = r.find(d, reservedG5); !q.Available {
		t.Fatalf("%+v", q)
	}
	must.Do(t, r.Inject(awstest.Fault{Action: "RunInstances", Kind: "cut", Count: 1}))
	if _, err := d.Launch(t.Context(), engine.Request{Key: "gang", Nodes: 2, Offer: reservedG5}); err == nil || engine.Refused(err) {
		t.Errorf("a lost answer: %v", err)
	}
	gang := r.launch(r.server(), "gang", 2, reservedG5)
	began := gang[0].Launched
	r.pass(24 * time.Hour)
	list := r.list(d)
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	for _, i := range list {
		if i.State != engine.Ended || i.Cause != engine.Interrupted || !i.Ended.Equal(end) || i.Rate != q.Rate {
			t.Errorf("%+v", i)
		}
		want := o.Reserved.Committed(end).Sub(o.Reserved.Committed(began)) // both machines, all the time
		got := new(big.Rat).Mul(sumOf(&i, "instance"), big.NewRat(2, 1))
		if !same(got, ratOf(want)) {
			t.Errorf("its machine costs %s, want the half of %v", got.FloatString(9), want)
		}
	}
	r.pass(10 * time.Hour)
	o, _ = r.find(d, reservedG5)
	if got, want := ratOf(o.Reserved.Committed(r.at)), r.billed("block", "instance"); got.Cmp(want) != 0 {
		t.Errorf("it has cost %s, and the cloud bills %s", got.FloatString(12), want.FloatString(12))
	}
}

// A machine that runs outside its reservation, or continues after it, is booked at what EC2 bills, and the
// reservation as well; doctor reports it.
func TestReservation_BooksAMachineThatLeavesIt(t *testing.T) {
	r := newReserveSite(t, awstest.Options{})
	id := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1a", Count: 1, From: r.at, To: r.at.Add(2 * time.Hour)})
	r.with.Reservations = setting.Reservations{{ID: id}}
	d := r.server()
	r.launch(d, "one", 1, reservedG5)
	r.pass(3 * time.Hour)
	i := r.list(d)[0]
	if i.State != engine.Running {
		t.Fatalf("%+v", i)
	}
	r.find(d, reservedG5)
	must.Do(t, d.Terminate(t.Context(), i.ID))
	i = r.list(d)[0]
	if got, want := sumOf(&i, "instance"), r.billed("instance"); !same(got, want) {
		t.Errorf("it costs %s, and is told as %s", want.FloatString(6), got.FloatString(6))
	}
	r.pass(2 * time.Minute)
	o, _ := r.find(d, reservedG5)
	if got, want := ratOf(o.Reserved.Committed(r.at)), r.billed("reservation", "instance"); !same(got, want) {
		t.Errorf("the cloud bills %s, and it has cost %s", want.FloatString(6), got.FloatString(6))
	}
}

// A machine that was never in its cheaper reservation costs as much as an on-demand machine.
func TestReservation_BooksAMachineThatWasNeverInIt(t *testing.T) {
	r := newReserveSite(t, awstest.Options{})
	id := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1a", Count: 1, From: r.at})
	r.with.Reservations = setting.Reservations{{ID: id, Rate: "0.5"}}
	d := r.server()
	list := r.launch(d, "one", 1, reservedG5)
	must.Do(t, r.Evict(list[0].ID))
	d = r.server() // it sees the machine for the first time
	r.find(d, reservedG5)
	_, q := r.find(d, "aws/us-east-1a/g5.xlarge/on-demand")
	if i := r.list(d)[0]; i.Rate != q.Rate {
		t.Errorf("%v an hour, want %v", i.Rate, q.Rate)
	}
	said := ""
	for _, f := range d.Examine(t.Context()) {
		if f.Name == "machines" && !f.OK {
			said = f.Text
		}
	}
	if !strings.Contains(said, list[0].ID+": it was ordered in the reservation "+id+" and runs outside of it") {
		t.Errorf("the doctor says %q", said)
	}
	r.pass(time.Hour)
	must.Do(t, d.Terminate(t.Context(), list[0].ID))
	i := r.list(d)[0]
	if got, want := sumOf(&i, "instance"), r.billed("instance"); !same(got, want) {
		t.Errorf("it costs %s, and is told as %s", want.FloatString(6), got.FloatString(6))
	}
	r.pass(2 * time.Minute)
	o, _ := r.find(d, reservedG5)
	want := new(big.Rat).Add(r.billed("instance"), big.NewRat(31, 60)) // and the reservation at its configured rate
	if got := ratOf(o.Reserved.Committed(r.at)); !same(got, want) {
		t.Errorf("it has cost %s, want %s", got.FloatString(6), want.FloatString(6))
	}
}

// A reservation in a zone without a subnet of the engine is not sold, and doctor names the missing subnet.
func TestReservation_IsNotSoldWithoutASubnet(t *testing.T) {
	r := newReserveSite(t, awstest.Options{})
	a, err := account.Connect(t.Context(), &r.with)
	must.Do(t, err)
	subnets, err := a.EC2.DescribeSubnets(t.Context(), nil)
	must.Do(t, err)
	for _, s := range subnets.Subnets {
		if *s.AvailabilityZone == "us-east-1b" {
			r.with.Subnets = []string{*s.SubnetId}
		}
	}
	id := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1a", Count: 1, From: r.at})
	for _, name := range []string{id, "all"} {
		r.with.Reservations = setting.Reservations{{ID: name}}
		d := r.server()
		_, err := d.Launch(t.Context(), engine.Request{Key: name, Offer: reservedG5})
		if !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		for _, f := range d.Examine(t.Context()) {
			if f.Name == "reservations" && name == id && (f.OK || !strings.Contains(f.Text, "add one under subnets")) {
				t.Errorf("%+v", f)
			}
		}
	}
}

// On-demand machines take no place in a configured open reservation; a machine that a reservation refuses does not
// become an on-demand machine.
func TestOnDemand_StaysOutOfReservations(t *testing.T) {
	r := newReserveSite(t, awstest.Options{})
	id := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1a", Count: 1, From: r.at, Open: true})
	r.with.Reservations = setting.Reservations{{ID: id}}
	d := r.server()
	r.launch(d, "demand", 1, "aws/us-east-1a/g5.xlarge/on-demand")
	r.launch(d, "held", 1, reservedG5)
	if _, err := d.Launch(t.Context(), engine.Request{Key: "more", Offer: reservedG5}); !errors.Is(err, engine.ErrNoCapacity) {
		t.Errorf("%v", err)
	}
	r.pass(time.Hour)
	n := 0
	for _, l := range r.Bill() {
		if l.Kind == "instance" {
			n++
		}
		if l.Kind == "reservation" && l.Seconds != 0 {
			t.Errorf("it was not used for %d s", l.Seconds)
		}
	}
	if n != 2 {
		t.Errorf("%d machines", n)
	}
}

// A launch whose answer is lost rents once.
func TestReservation_RentsOnceAfterALostAnswer(t *testing.T) {
	r := newReserveSite(t, awstest.Options{})
	id := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1a", Count: 4, From: r.at})
	r.with.Reservations = setting.Reservations{{ID: id}}
	d := r.server()
	must.Do(t, r.Inject(awstest.Fault{Action: "CreateFleet", Kind: "cut", Count: 1}))
	if _, err := d.Launch(t.Context(), engine.Request{Key: "gang", Nodes: 2, Offer: reservedG5}); err == nil || engine.Refused(err) {
		t.Errorf("%v", err)
	}
	for range 2 {
		r.launch(d, "gang", 2, reservedG5)
		r.launch(r.server(), "gang", 2, reservedG5)
	}
	if n := len(r.list(d)); n != 2 {
		t.Errorf("%d machines", n)
	}
}

// Impossible or wrong reservation settings are refused with the field and the fix.
func TestReservations_AreRefusedWhenImpossible(t *testing.T) {
	lane.Component(t, "whole")
	const cr = "cr-0123456789abcdef0"
	for _, c := range []struct {
		with setting.With
		want string
	}{
		{setting.With{Reservations: setting.Reservations{{ID: "g5.xlarge"}}}, `id is "g5.xlarge": write one such as cr-`},
		{setting.With{Reservations: setting.Reservations{{ID: "cb-0123456789abcdef0"}}}, "write the id of its reservation"},
		{setting.With{Reservations: setting.Reservations{{ID: cr}, {ID: cr}}}, "appears twice"},
		{setting.With{Reservations: setting.Reservations{{ID: cr, Rate: "1", Paid: "2"}}}, "has rate and paid"},
		{setting.With{Reservations: setting.Reservations{{ID: cr, Rate: "cheap"}}}, `rate is "cheap": write the dollars`},
		{setting.With{Reservations: setting.Reservations{{ID: cr, Paid: "-1"}}}, `paid is "-1": write the dollars`},
		{setting.With{Reservations: setting.Reservations{{ID: "all", Rate: "1"}}}, "need the id of one reservation"},
		{setting.With{Reservations: setting.Reservations{{ID: cr, Team: "a b"}}}, `team is "a b"`},
		{setting.With{Capacity: []market.Capacity{market.Reserved}}, "capacity has reserved, and there are no reservations"},
	} {
		c.with.Region, c.with.Types = "us-east-1", []string{"g5.*"}
		s := engine.Setting{With: engine.WithOf(c.with)}
		if _, err := setting.Read(&s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.with.Reservations, err, c.want)
		}
	}
}

// Doctor reports the state of reservations, what does not fit, with the fix, and the account's other commitments.
func TestExamine_ShowsReservations(t *testing.T) {
	r := newReserveSite(t, awstest.Options{})
	good := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1a", Count: 3, From: r.at, To: r.at.Add(48 * time.Hour)})
	kind := r.reserve(awstest.Reservation{Type: "p5.48xlarge", Zone: "us-east-1a", Count: 1, From: r.at})
	block := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1b", Count: 1, From: r.at, To: r.at.Add(24 * time.Hour),
		Block: true, Fee: "10"})
	over := r.reserve(awstest.Reservation{Type: "g5.xlarge", Zone: "us-east-1b", Count: 1, From: r.at.Add(-2 * time.Hour),
		To: r.at.Add(-time.Hour)})
	r.Reserve("g5.xlarge", "us-east-1a", 2, false, r.at, r.at.AddDate(1, 0, 0))
	r.AddSavingsPlan(awstest.SavingsPlan{ID: "sp-1", Type: "Compute", Commitment: "12.5", Start: r.at, End: r.at.AddDate(1, 0, 0)})
	r.AddSavingsPlan(awstest.SavingsPlan{ID: "sp-2", Type: "EC2Instance", Commitment: "1.5", Region: "us-east-1", Family: "m5",
		Start: r.at, End: r.at.AddDate(1, 0, 0)})
	r.with.Reservations = setting.Reservations{{ID: good}, {ID: kind}, {ID: block}, {ID: over}, {ID: "cr-00000000000000000"}}
	d := r.server()
	r.launch(d, "one", 1, reservedG5)
	r.launch(d, "demand", 1, "aws/us-east-1a/g5.xlarge/on-demand")
	r.pass(2 * time.Minute)
	text := map[string]string{}
	for _, f := range d.Examine(t.Context()) {
		text[f.Name] = f.Text
	}
	for name, wants := range map[string][]string{
		"reservations": {good + ": reservation of 3 × g5.xlarge in us-east-1a, active, 1 in use, 2 free, until 2026-11-26 12:00",
			"$1.006 an hour of each machine", kind, "add p5.48xlarge there", "write {id: " + block + ", paid: DOLLARS}",
			over, "it has ended", "cr-00000000000000000 is not in account 123456789012 and region us-east-1"},
		"commitments": {"reserved instances: 2 × g5.xlarge in us-east-1a, 2 in use", "savings plan sp-1: $12.5 an hour"},
	} {
		for _, want := range wants {
			if !strings.Contains(text[name], want) {
				t.Errorf("%s: %s\nwant %s", name, text[name], want)
			}
		}
	}
	if strings.Contains(text["commitments"], "sp-2") {
		t.Errorf("a plan of another family: %s", text["commitments"])
	}
}

//go:build !local

package aws

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/tag"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

var (
	seeds     = flag.Int("seeds", lane.Pick(4, 60), "accounts whose cloud is hurt, each by its seed")
	firstSeed = flag.Int("first", 0, "the first of them")
)

// hidden is the longest delay before the cloud lists a new machine; less than usual.Consistency.
const hidden = 90 * time.Second

// ask is a request and the answers to its callers.
type ask struct {
	q        engine.Request
	ids      []string         // of the first full answer
	answered bool             // or refused, the last time
	closed   bool             // given up: not repeated
	lost     map[*Driver]bool // drivers whose launch was granted without an answer
}

// hurt is an account with two servers that take turns, and what they reported.
type hurt struct {
	*site
	rng        *rand.Rand
	at         time.Time // the time of the cloud and the servers
	d          [2]*Driver
	asks       []*ask
	told       map[string]engine.Instance // by id; the first reported end stays
	reason     map[string]string          // the cloud's reason for an instance's end
	rented     map[string][]string        // instances by key, including those that never ran
	listed     map[string]bool            // instances that the cloud lists
	never      map[string]bool            // instances that have not run
	polls      []time.Time                // times of answered lists
	faults     int
	failed     int           // machines that were granted and never ran
	reserved   string        // reservation that some requests ask for; empty: none
	inReserved time.Duration // how long machines ran in it
	unseen     int           // keys refused by a server that could not know of another server's granted launch
}

var hurtTypes = []string{"c7i.xlarge", "m7i.large", "g5.xlarge"}

// server replaces the n-th server by a new one without memory.
func (h *hurt) server(n int) {
	s := engine.Setting{With: engine.WithOf(h.with)}
	w, err := setting.Read(&s)
	must.Do(h, err)
	w.Backoff = 0
	d := newDriver("aws", w)
	d.prepare.Server, d.prepare.Build, d.visible, d.now = "http://10.0.0.1:7077", "0123", 0, func() time.Time { return h.at }
	h.d[n] = d
}

// pass advances the time. A server polls far more often than EC2 forgets ended machines.
func (h *hurt) pass(d time.Duration) {
	for d > 0 {
		step := min(d, 20*time.Minute)
		d -= step
		h.at = h.at.Add(step)
		h.reasons()
		if len(h.polls) == 0 || h.at.Sub(h.polls[len(h.polls)-1]) > 15*time.Minute {
			h.Clear()
			_ = h.lists(h.rng.IntN(2))
		}
	}
}

// acts does one random thing.
func (h *hurt) acts() {
	n, a := h.rng.IntN(2), h.rng.IntN(100)
	pool := catalog.Pool{Type: pick(h.rng, hurtTypes), Zone: pick(h.rng, []string{"us-east-1a", "us-east-1b"}),
		Spot: h.rng.IntN(2) == 0}
	id := h.any()
	switch {
	case a < 30: // again and again, as a caller without an answer does
		k := pick(h.rng, h.asks)
		for range 1 + h.rng.IntN(3) {
			_ = h.launches(n, k)
		}
	case a < 33:
		h.cancels(n, pick(h.rng, h.asks))
	case a < 38 && id != "":
		_ = h.d[n].Terminate(h.Context(), id)
	case a < 48:
		_ = h.lists(n)
	case a < 53:
		h.server(n)
	case a < 57 && id != "":
		_ = h.Interrupt(id, "") // fails: it is on demand
	case a < 60 && id != "":
		_ = h.Terminate(id)
	case a < 63 && id != "":
		_ = h.Kill(id)
	case a < 65 && id != "":
		_ = h.Shutdown(id)
	case a < 69: // not during a minimum charge, for which nobody documents what a price change means
		h.pass(61 * time.Second)
		_ = h.SetSpotPrice(pool.Type, pool.Zone, fmt.Sprintf("0.%04d", 100+h.rng.IntN(4000)))
	case a < 72:
		_ = h.SetCapacity(pool, h.rng.IntN(5)-1)
	case a < 74:
		_ = h.Refuse(pool, pick(h.rng, []string{"InsufficientInstanceCapacity", "UnfulfillableCapacity", "Unsupported"}), 1)
	case a < 76:
		h.SetQuota(pick(h.rng, []string{"L-1216C47A", "L-34B43A08", "L-DB2E81BA"}), h.rng.IntN(20)-1)
	case a < 86:
		h.hurts()
	case a < 91:
		h.Clear()
	default:
		h.pass(time.Duration(1+h.rng.IntN([]int{3, 60, 900, 5000}[h.rng.IntN(4)])) * time.Second)
	}
	h.reasons()
}

// hurts injects a fault.
func (h *hurt) hurts() {
	h.faults++
	switch h.rng.IntN(12) {
	case 0:
		h.Skew(time.Duration(h.rng.IntN(5)-2) * 10 * time.Minute)
	case 10, 11: // granted and ended before running: all or some of a gang
		for range 1 + h.rng.IntN(3) {
			h.BreakLaunch(pick(h.rng, slices.Sorted(maps.Keys(failures))))
		}
	case 1, 2, 3:
		h.Late(time.Duration(1+h.rng.IntN(int(hidden/time.Second))) * time.Second)
	case 4: // machines that appear late, of a launch whose answer is lost, followed by a refusal
		h.Late(hidden)
		for _, f := range []awstest.Fault{{Action: "CreateFleet", Kind: "cut", Count: 1},
			{Action: "CreateFleet", Kind: "deny", Every: 2, Count: 1}} {
			must.Do(h, h.Inject(f))
		}
	default:
		f := awstest.Fault{Kind: pick(h.rng, []string{"throttle", "error", "deny", "cut", "cut", "twice", "slow"}),
			Action: pick(h.rng, []string{"", "CreateFleet", "CreateFleet", "DescribeInstances", "TerminateInstances"}),
			Count:  1 + h.rng.IntN(6), Every: h.rng.IntN(4), Wait: time.Millisecond}
		must.Do(h, h.Inject(f))
	}
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// any returns a reported machine; empty if there is none.
func (h *hurt) any() string {
	ids := slices.Sorted(maps.Keys(h.told))
	if len(ids) == 0 {
		return ""
	}
	return pick(h.rng, ids)
}

func (h *hurt) launches(n int, k *ask) error {
	if k.closed {
		return nil
	}
	before := len(h.linesOf(k.q.Key))
	list, err := h.d[n].Launch(h.Context(), k.q)
	h.hears(list...)
	for _, i := range list {
		if i.Key != k.q.Key || i.Offer != k.q.Offer {
			h.Errorf("%s of %s at %s is an answer to %s at %s", i.ID, i.Key, i.Offer, k.q.Key, k.q.Offer)
		}
	}
	k.answered = err == nil || engine.Refused(err)
	switch {
	case err == nil:
		var ids []string
		for _, i := range list {
			ids = append(ids, i.ID)
		}
		if len(ids) != k.q.Machines() || k.ids != nil && !slices.Equal(ids, k.ids) {
			h.Errorf("%s asks for %d, and is told %v, and before %v", k.q.Key, k.q.Machines(), ids, k.ids)
		}
		k.ids = ids
	case engine.Refused(err):
		h.refused(n, k, err)
	case len(h.linesOf(k.q.Key)) > before:
		k.lost[h.d[n]] = true
	}
	return err
}

// refused checks that a refused key has no machines, as far as the server could know.
func (h *hurt) refused(n int, k *ask, err error) {
	has := h.linesOf(k.q.Key)
	if len(has) == 0 {
		return
	}
	if k.lost[h.d[n]] || h.at.Sub(has[0].From) > hidden && h.at.Sub(has[0].From) < time.Hour {
		h.Errorf("%s is refused (%v), and has had machines since %v; it is %v", k.q.Key, err, has[0].From, h.at)
	}
	h.unseen++
}

func (h *hurt) cancels(n int, k *ask) {
	if err := h.d[n].Cancel(h.Context(), k.q.Key); err == nil || errors.Is(err, engine.ErrNotFound) {
		k.closed = true
	}
}

func (h *hurt) lists(n int) error {
	list, err := h.d[n].List(h.Context())
	if err != nil {
		return err
	}
	h.polls = append(h.polls, h.at)
	for k, i := range list {
		if k > 0 && list[k-1].ID == i.ID {
			h.Errorf("%s is listed twice", i.ID)
		}
	}
	h.hears(list...)
	return nil
}

// hears compares reported machines with earlier reports.
func (h *hurt) hears(list ...engine.Instance) {
	h.reasons()
	for _, i := range list {
		was, ok := h.told[i.ID]
		switch {
		case !ok || was.State == engine.Running:
			h.told[i.ID] = i
		case i.State == engine.Running:
			h.Logf("%s runs by what a server knows, and has ended", i.ID)
		case was.Cause != i.Cause, !h.unsaid(i.ID) && (!was.Ended.Equal(i.Ended) ||
			sumOf(&was, "all").Cmp(sumOf(&i, "all")) != 0):
			h.Errorf("%s ended %s at %v and %s at %v: %v, %v", i.ID, was.Cause, was.Ended, i.Cause, i.Ended, was.Bill, i.Bill)
		}
		if ok && (!was.Launched.Equal(i.Launched) || was.Key != i.Key || was.Rate != i.Rate) {
			h.Errorf("%s was %+v, and is %+v", i.ID, was, i)
		}
	}
}

// reasons asks the cloud, around its faults, why instances ended.
func (h *hurt) reasons() {
	var list []struct {
		ID, Reason string
		Ran        bool
		Tags       map[string]string
	}
	if err := json.Unmarshal(h.order("instances"), &list); err != nil {
		h.Fatal(err)
	}
	h.listed = map[string]bool{}
	for _, i := range list {
		h.listed[i.ID] = true
		if i.Reason != "" {
			h.reason[i.ID] = i.Reason
		}
		if _, known := h.never[i.ID]; !known {
			h.rented[i.Tags[tag.Key]] = append(h.rented[i.Tags[tag.Key]], i.ID)
		}
		h.never[i.ID] = !i.Ran
	}
}

// unsaid reports whether EC2 does not report when a machine ended: on demand, and not by TerminateInstances.
func (h *hurt) unsaid(id string) bool {
	return h.reason[id] != "Client.UserInitiatedShutdown" && !strings.HasSuffix(string(h.told[id].Offer), "/spot")
}

func (h *hurt) linesOf(key string) (list []awstest.Line) {
	for _, l := range h.Bill() {
		if l.Kind == "instance" && l.Tags[tag.Key] == key {
			list = append(list, l)
		}
	}
	return list
}

// settles ends the faults, waits for an answer to each launch, and terminates everything.
func (h *hurt) settles() {
	h.Clear()
	h.server(h.rng.IntN(2))
	_ = h.lists(0)
	for _, k := range h.asks {
		for try := 0; !k.answered && !k.closed; try++ {
			err := h.launches(try%2, k)
			if k.answered {
				break
			}
			h.pass(time.Minute)
			if try > 4 && slices.ContainsFunc(h.rented[k.q.Key], func(id string) bool { return !h.listed[id] }) {
				break // EC2 has forgotten the machine, and a server without memory never knew it; it was listed in its time
			}
			if try > 8 {
				h.Errorf("%s is not answered: %v; it has had %+v", k.q.Key, err, h.linesOf(k.q.Key))
				break
			}
		}
	}
	h.pass(2 * hidden)
	if err := h.lists(1); err != nil {
		h.Errorf("list without faults: %v", err)
	}
	for _, id := range slices.Sorted(maps.Keys(h.told)) {
		if err := h.d[1].Terminate(h.Context(), id); err != nil && !errors.Is(err, engine.ErrNotFound) {
			h.Errorf("terminate without faults: %v", err)
		}
	}
	h.pass(3 * time.Minute) // notices of interruptions
	_ = h.lists(0)
	_ = h.lists(1)
	h.pass(keepFor + 10*time.Minute)
	h.pass(sweepEvery + time.Second)
	_ = h.lists(0)
	_ = h.lists(1)
	for _, t := range h.Left() {
		if t.Kind != "launch-template" && t.Kind != "security-group" {
			h.Errorf("%s %s is left over: %v", t.Kind, t.ID, t.Tags)
		}
	}
}

// TestFaults_WithManySeeds is TestFaults_RentNothingTwiceAndLoseNothing with the nightly lane's number of seeds.
func TestFaults_WithManySeeds(t *testing.T) {
	lane.Nightly(t, "a second for each of 60 seeds")
	survivesFaults(t)
}

// EC2 refuses, loses, duplicates and delays requests and answers; machines are interrupted or fail; prices, capacity
// and quotas change; and servers die. Still no key rents more than it requests, no machine is lost, each is billed to
// the second as the cloud does, and nothing stays when everything is terminated.
func TestFaults_RentNothingTwiceAndLoseNothing(t *testing.T) { survivesFaults(t) }

func survivesFaults(t *testing.T) {
	t.Helper()
	machines, faults, unseen, failed, reserved := 0, 0, 0, 0, time.Duration(0)
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := &hurt{rng: rand.New(rand.NewPCG(uint64(seed), 29)), at: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
				told: map[string]engine.Instance{}, reason: map[string]string{}, rented: map[string][]string{}, never: map[string]bool{}}
			h.site = newSite(t, awstest.Options{Seed: int64(seed), Now: func() time.Time { return h.at },
				Spans: awstest.Spans{Failing: 20 * time.Second}})
			h.with.Placement = pick(h.rng, []string{"none", "cluster"})
			public := seed%2 == 0
			h.with.PublicIP = &public
			if seed%2 == 1 {
				h.reserves()
			}
			machines += h.run()
			faults, unseen, failed = faults+h.faults, unseen+h.unseen, failed+h.failed
			reserved += h.inReserved
		})
		if !ok {
			t.Errorf("go test ./internal/engine/aws -run %s -first %d -seeds 1 repeats it", t.Name(), seed)
		}
	}
	if machines < 5**seeds || failed < *seeds/4 {
		t.Errorf("%d machines and %d that never ran in %d accounts: what is held here was hardly tried", machines, failed, *seeds)
	}
	if reserved == 0 && *seeds > 1 {
		t.Error("no machine ran in a reservation")
	}
	t.Logf("%d faults, %d machines, %d more never ran; %d refusals by servers that could not know of machines; %v in reservations",
		faults, machines, failed, unseen, reserved)
}

// seatsReserved is the number of reserved machines, if any: fewer than are requested.
const seatsReserved = 4

func reservedOf(typ string) market.OfferID {
	return market.OfferID("aws/us-east-1a/" + typ + "/reserved")
}

// reserves makes the account reserve capacity.
func (h *hurt) reserves() {
	var err error
	h.reserved, err = h.ReserveCapacity(awstest.Reservation{Type: hurtTypes[0], Zone: "us-east-1a", Count: seatsReserved, From: h.at})
	must.Do(h, err)
	h.with.Reservations = setting.Reservations{{ID: h.reserved}}
}

func (h *hurt) run() (machines int) {
	for n := range 8 {
		offer := "aws/" + pick(h.rng, []string{"us-east-1a", "us-east-1b"}) + "/" + pick(h.rng, hurtTypes) + "/" +
			pick(h.rng, []string{"spot", "spot", "on-demand"})
		k := &ask{q: engine.Request{Key: fmt.Sprintf("key-%d", n), Nodes: 1 + h.rng.IntN(4), Offer: market.OfferID(offer),
			Tags: map[string]string{"scrimp-job": "job"}}, lost: map[*Driver]bool{}}
		if h.reserved != "" && n%2 == 0 {
			k.q.Offer = reservedOf(hurtTypes[0])
		} else if h.rng.IntN(3) == 0 {
			k.q.MaxRate, _ = money.ParseRate("0.4")
		}
		h.asks = append(h.asks, k)
	}
	h.server(0)
	h.server(1)
	for range 80 {
		h.acts()
	}
	h.settles()
	return h.books()
}

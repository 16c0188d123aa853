//go:build !local

package aws

import (
	"encoding/json"
	"flag"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/engine/aws/tag"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

var chaosFor = flag.Duration("chaos", time.Minute, "how long a cloud and its server are hurt (make chaos-aws)")

// chaos is a server and its cloud under fault injection.
type chaos struct {
	*home
	rng     *rand.Rand
	began   time.Time
	stopped map[string]bool // instances stopped by hand
}

// A server and a cloud whose instances run the real agent, with every fault injected for a while, lose no job and
// rent nothing twice: each job ends as it should, each machine costs what the cloud bills for it, and nothing is
// left.
func TestChaos_LosesNothing(t *testing.T) {
	lane.Nightly(t, "it hurts a server and its cloud for a minute, or for as long as make chaos-aws says")
	seed := uint64(time.Now().UnixNano())
	c := &chaos{newHome(t), rand.New(rand.NewPCG(1, seed)), time.Now(), map[string]bool{}}
	names, hurts := c.Chaos(*chaosFor, func(name string) (string, error) {
		var more []string
		if c.rng.IntN(3) == 0 {
			more = append(more, "--on-demand")
		}
		return c.submits(name, 1+c.rng.IntN(4)/3, 10+c.rng.IntN(30), more...)
	}, func() time.Duration { return time.Duration(1+c.rng.IntN(4)) * time.Second }, c.hurt)
	c.Clear()
	costs := map[string]*big.Rat{}
	attempts := c.Outcomes(names, c.until, func(j client.Job) { c.costs(j.ID, costs) })
	c.until("nothing is left", func() bool {
		return !slices.ContainsFunc(c.Left(), func(l awstest.Thing) bool {
			return l.Kind != "launch-template" && l.Kind != "security-group"
		})
	})
	machines := c.books(costs, hurts)
	c.Does("ledger", "verify")
	t.Logf("%v: %d jobs, %d attempts, %d machines, hurt as %v (seed %d)", time.Since(c.began).Round(time.Second),
		len(names), attempts, machines, hurts, seed)
}

// costs adds up a job's receipt by machine.
func (c *chaos) costs(name string, sums map[string]*big.Rat) {
	c.Helper()
	add := func(id string, a money.Amount) {
		v, ok := new(big.Rat).SetString(a.String())
		if !ok {
			c.Fatalf("%v is not an amount", a)
		}
		if sums[id] == nil {
			sums[id] = new(big.Rat)
		}
		sums[id].Add(sums[id], v)
	}
	for _, try := range c.Receipt(name).Tries {
		if len(try.Nodes) == 0 && try.Instance != "" {
			add(try.Instance, try.Cost)
		}
		for _, n := range try.Nodes {
			if n.Instance != "" {
				add(n.Instance, n.Cost)
			}
		}
	}
}

// books compares the receipts with the cloud's own bill and returns the number of machines.
func (c *chaos) books(costs map[string]*big.Rat, hurts map[string]int) int {
	c.Helper()
	type bill struct {
		awstest.Line          // of the instance
		sum, second  *big.Rat // of all its lines; the cost of one more second
	}
	bills, keys := map[string]*bill{}, map[string]int{}
	for _, l := range c.Bill() {
		b := bills[l.Instance]
		if b == nil {
			b = &bill{sum: new(big.Rat), second: new(big.Rat)}
			bills[l.Instance] = b
		}
		if l.Kind == "instance" {
			b.Line = l
			nodes, _ := strconv.Atoi(l.Tags[tag.Nodes])
			if keys[l.Tags[tag.Key]]++; keys[l.Tags[tag.Key]] > nodes {
				c.Errorf("%s has had %d machines, and asks for %d", l.Tags[tag.Key], keys[l.Tags[tag.Key]], nodes)
			}
		}
		b.sum.Add(b.sum, l.USD)
		if l.Seconds > 0 {
			b.second.Add(b.second, new(big.Rat).Quo(l.USD, big.NewRat(l.Seconds, 1)))
		}
		if l.Open {
			c.Errorf("%s of %s is still paid", l.ID, l.Instance)
		}
	}
	unsaid, reasons := 0, c.reasonsNow()
	for _, id := range slices.Sorted(maps.Keys(bills)) {
		b, got := bills[id], costs[id]
		if got == nil {
			if b.sum.Sign() > 0 {
				c.Errorf("%s (%s) costs %s, and is on no receipt", id, b.Tags[tag.Key], b.sum.FloatString(12))
			}
			continue
		}
		delete(costs, id)
		off := new(big.Rat).Sub(got, b.sum)
		least, most := new(big.Rat), big.NewRat(4, 1e12) // each part is cut to 1e-12 dollars
		least.Neg(most)
		switch {
		case c.stopped[id]: // its disk costs until termination, and its seconds until the server hears of the stop
			least.SetInt64(-1).Mul(least, new(big.Rat).Mul(b.second, big.NewRat(unheard, 1)))
			most.Mul(b.second, big.NewRat(unheard, 1))
		case !b.Spot && reasons[id] != "Client.UserInitiatedShutdown":
			// EC2 does not report the time: it ends when the server sees it, and its first minute is paid in any
			// case.
			unsaid++
			most.Mul(b.second, big.NewRat(unheard, 1))
		}
		if off.Cmp(least) < 0 || off.Cmp(most) > 0 {
			c.Errorf("%s (%s, %s, %d s, %s, %s) costs %s, and is told as %s", id, b.Tags[tag.Key], reasons[id], b.Seconds, b.Free,
				b.Type, b.sum.FloatString(12), got.FloatString(12))
		}
	}
	for id, sum := range costs {
		if sum.Sign() != 0 {
			c.Errorf("%s is on a receipt with %s, and the cloud bills nothing for it", id, sum.FloatString(12))
		}
	}
	n := hurts["agent killed"] + hurts["hardware failed"] + hurts["machine impaired"] + hurts["the next launch fails"]
	if unsaid > 2*n+len(c.stopped) {
		c.Errorf("of %d machines it is not said when they ended: what is held here was hardly tried", unsaid)
	}
	return len(bills)
}

// unheard bounds the seconds between a machine's end, if EC2 does not report its time, and the server's notice of it:
// while the server is killed, the cloud is down, or everything is slow.
const unheard = 180

// reasonsNow returns the cloud's reasons for the end of each instance.
func (c *chaos) reasonsNow() map[string]string {
	c.Helper()
	reasons := map[string]string{}
	for _, i := range c.instances() {
		reasons[i.ID] = i.Reason
	}
	return reasons
}

type listed struct {
	ID, State, Reason string
	Spot              bool
}

// hurt injects one random fault into clouds, machines or servers, and names it.
func (c *chaos) hurt() string {
	c.Helper()
	pause := func(most int) { _ = wait.For(c.Context(), time.Duration(1+c.rng.IntN(most))*time.Second) }
	var spot, demand, all []string
	for _, i := range c.instances() {
		if i.State != "running" {
			continue
		}
		if all = append(all, i.ID); i.Spot {
			spot = append(spot, i.ID)
		} else {
			demand = append(demand, i.ID)
		}
	}
	// one applies do to one random element of a list, and returns how unless the list is empty.
	one := func(list []string, how string, do func(string) error) string {
		if len(list) == 0 || do(pick(c.rng, list)) != nil { // it has ended meanwhile
			return ""
		}
		return how
	}
	faults := func(how string, most int, list ...awstest.Fault) string {
		for _, f := range list {
			must.Do(c, c.Inject(f))
		}
		pause(most)
		c.Clear()
		return how
	}
	switch c.rng.IntN(18) {
	case 0, 1:
		return one(spot, "interrupted", func(id string) error { return c.Interrupt(id, "") })
	case 2:
		return one(spot, "interrupted without notice", c.Reclaim)
	case 3:
		return one(spot, "rebalance recommended", c.Rebalance)
	case 4:
		return faults("throttled", 8, awstest.Fault{Kind: "throttle", Every: 1 + c.rng.IntN(3)})
	case 5:
		return faults("answers lost", 8, awstest.Fault{Kind: "cut", Every: 1 + c.rng.IntN(3)},
			awstest.Fault{Kind: "cut", Action: "CreateFleet", Count: 1})
	case 6:
		c.Late(time.Duration(1+c.rng.IntN(10)) * time.Second)
		pause(10)
		c.Clear()
		return "listed late"
	case 7:
		for _, t := range []string{"c7i.xlarge", "m7i.large"} {
			for _, spot := range []bool{true, false} {
				if c.rng.IntN(3) > 0 {
					_ = c.Refuse(catalog.Pool{Type: t, Spot: spot}, "InsufficientInstanceCapacity", 0)
				}
			}
		}
		pause(8)
		c.Clear()
		return "no capacity"
	case 8:
		return faults("requests doubled", 8, awstest.Fault{Kind: "twice"})
	case 9:
		c.BreakLaunch(pick(c.rng, []string{"Server.InternalError", "Client.InternalError", "Server.InsufficientInstanceCapacity"}))
		return "the next launch fails"
	case 10:
		return one(all, "terminated by hand", c.Terminate)
	case 11:
		return one(demand, "stopped by hand", func(id string) error {
			err := c.Stop(id)
			c.stopped[id] = err == nil
			return err
		})
	case 12:
		return one(all, "hardware failed", c.Kill)
	case 13:
		return one(all, "machine impaired", c.Impair)
	case 14:
		if pids := c.agents(); len(pids) > 0 && syscall.Kill(pick(c.rng, pids), syscall.SIGKILL) == nil {
			return "agent killed"
		}
		return ""
	case 15:
		return faults("cloud down", 15, awstest.Fault{Kind: "down"})
	case 16:
		c.Skew(time.Duration(c.rng.IntN(3)-1) * 20 * time.Minute)
		pause(8)
		c.Clear()
		return "clock off"
	}
	c.KillServer()
	pause(8)
	c.serve()
	return "server killed"
}

// instances returns the cloud's instances, read around its faults.
func (h *home) instances() (list []listed) {
	h.Helper()
	must.Do(h, json.Unmarshal(h.order("instances"), &list))
	return list
}

// Package enginetest is the suite that every engine.Driver must pass, with the real engine behind it.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// Rig is a driver under test with controls for its engine.
type Rig struct {
	Driver engine.Driver

	Granted market.OfferID // always available, at one price, never interrupted
	Empty   market.OfferID // known but not available

	// Restart kills the engine and starts it again; nil: not possible.
	Restart func(t testing.TB)
	// Foreign rents an instance without our tag, and returns its ID; nil: not possible.
	Foreign func(t testing.TB) string
	// Fails is an offer that the provider interrupts soon after its launch; "": none.
	Fails market.OfferID
	// Queued is an offer whose launches wait in the engine's queue until Grant is called with their key; "":
	// launches are answered at once.
	Queued market.OfferID
	Grant  func(t testing.TB, key string)
	// Parts is an offer of which the engine grants one machine at once, and the others when Grant is called with the
	// key; "": the engine grants all or none.
	Parts market.OfferID
	// Refusals are offers whose launches the engine refuses with a scope; nil: none.
	Refusals []Refusal
	// Later advances time until the bills of ended instances are known; nil: they are in the list together with the
	// end.
	Later func(t testing.TB)
	// Beside lists the rules of lines billed by time beside the plain ones, each with its own minimum, such as those
	// of a disk.
	Beside []string
	// Tells is the shortest run with a bill above zero; 0: any.
	Tells time.Duration
	// Consistency is how long the engine's list may lack a running machine.
	Consistency time.Duration
}

// Refusal is an offer that an engine refuses.
type Refusal struct {
	Offer market.OfferID
	Err   error // an error of package engine
	Scope string
	Wait  time.Duration
}

// Case is one check of the suite.
type Case struct {
	Name string
	// lacks returns the capability that the case needs and the engine lacks; "": none. nil: the case needs no
	// capability.
	lacks func(*Rig) string
	hold  func(*rig)
}

// Cases returns all cases.
func Cases() []Case {
	return []Case{
		{"offers have price, source and time", nil, offers},
		{"a launch is listed with its key, offer, price and tags", nil, listed},
		{"a key rents once, again and at the same time", nil, once},
		{"a key rents once, also when its machine has ended", nil, onceForEver},
		{"a lost answer does not rent twice", nil, lostAnswer},
		{"a key rents once, also when the engine dies", noRestart, restarted},
		{"a refusal says why and rents nothing", nil, refused},
		{"a refusal says what it is about and for how long", noScope, scoped},
		{"a launch that is pending is granted later, and rents once", noQueue, pending},
		{"a launch that is given up rents nothing", noWaiting, cancelled},
		{"several machines are rented as one", nil, gang},
		{"several machines are refused as one", noEmpty, gangRefused},
		{"a partial grant is what it is", noParts, partial},
		{"a partial grant is left as it is when the rest is given up", noParts, partGivenUp},
		{"giving back can be asked for again", nil, terminated},
		{"only ours are listed", noForeign, foreign},
		{"bills add up, however the span is cut", billsLater, bills},
		{"a bill that comes later comes with its key", billsAtOnce, billedLater},
		{"what the provider interrupts ends with its cause and bill", noInterruptions, interrupted},
		{"changes are told", noWatch, watched},
	}
}

// unless returns why if the capability is missing.
func unless(there bool, why string) string {
	if there {
		return ""
	}
	return why
}

func noRestart(g *Rig) string  { return unless(g.Restart != nil, "the engine cannot be restarted") }
func noQueue(g *Rig) string    { return unless(g.Queued != "", "launches are answered at once") }
func noEmpty(g *Rig) string    { return unless(g.Empty != "", "the engine always has something") }
func noParts(g *Rig) string    { return unless(g.Parts != "", "it grants all or none") }
func noForeign(g *Rig) string  { return unless(g.Foreign != nil, "nothing else can be rented there") }
func billsLater(g *Rig) string { return unless(g.Later == nil, "its bills come later") }
func billsAtOnce(g *Rig) string {
	return unless(g.Later != nil, "bills are in the list as soon as the end is")
}

func noInterruptions(g *Rig) string { return unless(g.Fails != "", "the engine takes nothing away") }

func noScope(g *Rig) string {
	return unless(len(g.Refusals) > 0, "its refusals are about their offer, and say no time")
}

func noWaiting(g *Rig) string {
	return unless(g.Queued != "", "launches are answered at once: none can be given up")
}

func noWatch(g *Rig) string {
	_, watches := g.Driver.(engine.Watcher)
	return unless(watches, "it is polled")
}

// Result is the result of a case.
type Result struct {
	Case    string
	Skipped string // why it did not run; "": it ran
}

// notOver is why a case has no result: it failed, or something that it needs is not installed.
const notOver = "failed"

// Run runs the suite on a driver, and returns which cases ran. open returns a rig with an engine of its own, for
// each case that applies.
func Run(t *testing.T, open func(t testing.TB) Rig) (results []Result) {
	var g *Rig // the latest; all have the same capabilities
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			n := len(results)
			results = append(results, Result{c.Name, notOver})
			if g == nil || c.lacking(g) == "" {
				opened := open(t)
				g = &opened
			}
			results[n].Skipped = c.Hold(t, *g)
		})
	}
	return results
}

// lacking returns the capability that the engine lacks for the case; "": none.
func (c Case) lacking(g *Rig) string {
	if c.lacks == nil {
		return ""
	}
	return c.lacks(g)
}

// Hold runs the case on the rig, or returns why it cannot; "": it ran.
func (c Case) Hold(t testing.TB, g Rig) (skipped string) {
	t.Helper()
	if why := c.lacking(&g); why != "" {
		return why
	}
	c.hold(&rig{Rig: g, TB: t, launched: map[string]time.Time{}, gangs: map[string]int{}})
	return ""
}

// Table lists the cases that ran and the others, for the page of an engine.
func Table(results []Result) string {
	var b strings.Builder
	b.WriteString("| case | ran against the engine itself |\n|---|---|\n")
	for _, r := range results {
		ran := "yes"
		if r.Skipped != "" {
			ran = "no: " + r.Skipped
		}
		fmt.Fprintf(&b, "| %s | %s |\n", r.Case, ran)
	}
	return b.String()
}

func offers(r *rig) {
	sale, quotes, err := r.Driver.Offers(r.Context())
	must.Do(r, err)
	known := map[market.OfferID]bool{}
	for _, o := range sale {
		if known[o.ID] || !complete(o) {
			r.Errorf("offer %+v lacks something, or stands twice", o)
		}
		known[o.ID] = true
	}
	quoted := map[market.OfferID]market.Quote{}
	for _, q := range quotes {
		if !known[q.Offer] || q.Source == "" || q.At.IsZero() || q.Priced && q.Rate <= 0 {
			r.Errorf("quote %+v: its offer is unknown, or it lacks source, time or price", q)
		}
		quoted[q.Offer] = q
	}
	if !quoted[r.Granted].Available || !quoted[r.Granted].Priced {
		r.Errorf("quote %+v of the offer that can be had", quoted[r.Granted])
	}
	if r.Empty != "" && quoted[r.Empty].Available {
		r.Errorf("quote %+v of the offer that can not be had", quoted[r.Empty])
	}
}

// complete reports whether an offer has everything that a decision needs.
func complete(o market.Offer) bool {
	return o.ID != "" && o.Currency != "" && o.Machine != "" && o.Capacity != "" && o.CPUs > 0 && o.Memory > 0
}

func listed(r *rig) {
	before := r.list()
	i := r.launch("a.1")
	got, ok := r.list()["a.1"]
	if !ok || len(r.list()) != len(before)+1 {
		r.Fatalf("the list lacks %s", i.ID)
	}
	for _, x := range []engine.Instance{i, got} {
		if x.ID == "" || x.ID != i.ID || x.Key != "a.1" || x.Offer != r.Granted || !x.Launched.Equal(i.Launched) ||
			x.Rate != i.Rate || !justStarted(x) {
			r.Errorf("instance %+v", x)
		}
		if want := r.request("a.1").Tags; !maps.Equal(x.Tags, want) {
			r.Errorf("tags %v, want %v", x.Tags, want)
		}
	}
}

// justStarted reports whether an instance runs at a price and has cost nothing yet.
func justStarted(x engine.Instance) bool {
	return x.State == engine.Running && !x.Launched.IsZero() && x.Rate > 0 && x.Ended.IsZero() && len(x.Bill) == 0
}

func once(r *rig) {
	ids := make([]string, 24)
	var wg sync.WaitGroup
	for n := range ids {
		wg.Go(func() { ids[n] = r.launch(fmt.Sprintf("a.%d", n%3)).ID })
	}
	wg.Wait()
	for n, id := range ids {
		if id != ids[n%3] {
			r.Errorf("key a.%d rented %s and %s", n%3, ids[n%3], id)
		}
	}
	if again := r.launch("a.0"); again.ID != ids[0] {
		r.Errorf("key a.0 rented %s, and %s later", ids[0], again.ID)
	}
	if all := r.list(); len(all) != 3 {
		r.Errorf("3 keys rented %d instances", len(all))
	}
}

func onceForEver(r *rig) {
	first := r.launch("a.1")
	ended := r.giveBack("a.1")
	again := r.launch("a.1")
	if again.ID != first.ID || again.State != engine.Ended || !same(again.Bill, ended.Bill) {
		r.Errorf("the key rented %s; after its end it gives %+v", first.ID, again)
	}
	if all := r.list(); len(all) != 1 {
		r.Errorf("one key rented %d instances", len(all))
	}
}

// lossy performs requests and loses the responses to the next lose of them.
type lossy struct {
	engine.Driver
	mu   sync.Mutex
	lose int
}

var errLost = errors.New("the answer was lost")

func (l *lossy) lost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose--
	return l.lose >= 0
}

func (l *lossy) Launch(ctx context.Context, q engine.Request) ([]engine.Instance, error) {
	list, err := l.Driver.Launch(ctx, q)
	if l.lost() {
		return nil, errLost
	}
	return list, err
}

func (l *lossy) Terminate(ctx context.Context, id string) error {
	err := l.Driver.Terminate(ctx, id)
	if l.lost() {
		return errLost
	}
	return err
}

func lostAnswer(r *rig) {
	l := &lossy{Driver: r.Driver, lose: 2}
	cfg := engine.DefaultClient()
	cfg.Wait, cfg.MaxWait = time.Millisecond, time.Millisecond
	p := engine.NewClient(l, cfg)
	i, err := r.one(p.Launch(r.Context(), r.request("a.1")))
	r.answered("a.1")
	if err != nil || r.list()["a.1"].ID != i.ID || len(r.list()) != 1 {
		r.Fatalf("%+v, %v; listed are %v", i, err, r.list())
	}
	l.lose = 2
	if err := p.Terminate(r.Context(), i.ID); err != nil && !errors.Is(err, engine.ErrNotFound) {
		r.Error(err)
	}
	r.until("its end", func() bool { return r.list()["a.1"].State == engine.Ended })

	// A caller who hangs up during a launch gets no result, and still rents only once.
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	if _, err := r.Driver.Launch(ctx, r.request("a.2")); err == nil {
		r.Error("a caller who has hung up is answered")
	}
	two := r.launch("a.2")
	if again := r.launch("a.2"); again.ID != two.ID {
		r.Errorf("key a.2 rented %s and %s", two.ID, again.ID)
	}
	r.list()
}

func restarted(r *rig) {
	one, two := r.launch("a.1"), r.launch("a.2")
	ended := r.giveBack("a.2")
	r.Restart(r.TB)
	if again := r.launch("a.1"); again.ID != one.ID || again.State != engine.Running ||
		!again.Launched.Equal(one.Launched) {
		r.Errorf("key a.1 rented %s; after the restart it gives %+v", one.ID, again)
	}
	if again := r.launch("a.2"); again.ID != two.ID || again.State != engine.Ended || !again.Ended.Equal(ended.Ended) ||
		!same(again.Bill, ended.Bill) {
		r.Errorf("key a.2 ended as %+v; after the restart it gives %+v", ended, again)
	}
	three := r.launch("a.3")
	if all := r.list(); len(all) != 3 || all["a.1"].State != engine.Running || three.ID == one.ID || three.ID == two.ID {
		r.Errorf("after the restart, listed are %v", all)
	}
}

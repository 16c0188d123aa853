package enginetest

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// fake is an engine in memory with every capability and one fault.
type fake struct {
	wrong string

	mu        sync.Mutex
	list      []*engine.Instance
	shown     map[string]time.Time // when it appears in the list
	queued    map[string]bool      // by key; true: granted, and not requested again yet
	parts     map[string]bool      // by key, with one granted machine; true: all are granted
	cancelled map[string]bool
	billed    []engine.Bill
	pending   []engine.Bill // known later
	told      chan struct{}
}

const (
	sold, gone, shaky, slow, full market.OfferID = "f/a/m/on-demand", "f/b/m/spot", "f/c/m/spot", "f/d/m/on-demand", "f/e/m/on-demand"
	some                          market.OfferID = "f/g/m/on-demand"
	lag                                          = 50 * time.Millisecond
)

func newFake(wrong string) *fake {
	return &fake{wrong: wrong, shown: map[string]time.Time{}, queued: map[string]bool{}, parts: map[string]bool{}, cancelled: map[string]bool{}, told: make(chan struct{}, 1000)}
}

// rig returns a rig for the fake, with bills at the end, or later.
func (f *fake) rig(later bool) Rig {
	g := Rig{Driver: struct {
		*fake
		fakeBills
	}{f, fakeBills{f}}, Granted: sold, Empty: gone, Fails: shaky, Queued: slow, Parts: some, Consistency: lag,
		Grant: func(_ testing.TB, key string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if _, waits := f.queued[key]; waits {
				f.queued[key] = true
			}
			if _, waits := f.parts[key]; waits {
				f.parts[key] = true
			}
		},
		Restart: func(testing.TB) {
			if f.wrong == "forgets when it dies" {
				f.mu.Lock()
				f.list = nil
				f.mu.Unlock()
			}
		},
		Foreign: func(testing.TB) string {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.wrong == "lists what is not ours" {
				f.list = append(f.list, &engine.Instance{ID: "x", Key: "x", State: engine.Running})
			}
			return "x"
		},
		Refusals: []Refusal{{full, engine.ErrQuota, "account", time.Hour}, {full + "2", engine.ErrThrottled, "zone", time.Minute}},
	}
	if later {
		g.Later = func(testing.TB) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.billed, f.pending = append(f.billed, f.pending...), nil
		}
	}
	return g
}

func (f *fake) is(wrong string) bool { return f.wrong == wrong }

func (f *fake) Launch(ctx context.Context, q engine.Request) ([]engine.Instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil && !f.is("answers who hung up") {
		return nil, err
	}
	if list := f.known(q.Key); len(list) > 0 {
		return f.rest(q, list)
	}
	if err := f.refuses(q); err != nil {
		return nil, err
	}
	delete(f.queued, q.Key)
	first := f.rent(q)
	switch {
	case q.Offer == some && q.Nodes > 1:
		f.parts[q.Key] = false
		if f.is("grants all at once") {
			break
		}
		return []engine.Instance{first}, engine.ErrPending
	case f.is("rents one of several"):
		return []engine.Instance{first}, nil
	}
	list := []engine.Instance{first}
	for len(list) < q.Machines() {
		f.rent(q)
		newest := f.list[len(f.list)-1]
		newest.Launched = first.Launched
		if f.is("tags only the first") {
			newest.Tags = nil
		}
		list = append(list, *newest)
	}
	return list, nil
}

// known returns the machines of a key.
func (f *fake) known(key string) (list []engine.Instance) {
	for _, i := range f.list {
		if i.Key == key && !f.is("rents anew") && (i.State == engine.Running || !f.is("rents anew after the end")) {
			list = append(list, *i)
		}
	}
	if f.is("turns the order round") {
		slices.Reverse(list)
	}
	return list
}

// rest returns the response to a used key.
func (f *fake) rest(q engine.Request, list []engine.Instance) ([]engine.Instance, error) {
	granted, part := f.parts[q.Key]
	switch {
	case part && !granted && f.is("forgets that the rest waits"):
		return list, nil
	case part && !granted:
		return list, engine.ErrPending
	case part && f.is("never grants the rest"):
		return list, engine.ErrPending
	case part && f.is("rents the part anew"):
		list = nil
	}
	for part && len(list) < q.Machines() {
		list = append(list, f.rent(q))
	}
	delete(f.parts, q.Key)
	return list, nil
}

// refuses returns why a launch is not granted now.
func (f *fake) refuses(q engine.Request) error {
	granted, waits := f.queued[q.Key]
	switch {
	case q.Key == "":
		return engine.ErrRequest
	case q.Image != "" && !f.is("forgets the image"):
		return q.NoImage()
	case q.Offer == gone && !f.is("rents what is not there"):
		if f.is("keeps a part of what it refuses") && q.Nodes > 1 {
			f.rent(q)
		}
		return engine.ErrNoCapacity
	case q.MaxRate == 1 && !f.is("rents too dear"):
		return engine.ErrPrice
	case q.Offer == full && f.is("says no scope"):
		return engine.ErrQuota
	case q.Offer == full:
		return &engine.RefusalError{Err: engine.ErrQuota, Scope: "account", Wait: time.Hour}
	case q.Offer == full+"2":
		return &engine.RefusalError{Err: engine.ErrThrottled, Scope: "zone", Wait: time.Minute}
	case !slices.Contains([]market.OfferID{sold, shaky, slow, gone, some}, q.Offer):
		return engine.ErrNotFound
	case q.Offer == slow && f.cancelled[q.Key]:
		return engine.ErrNotFound
	case q.Offer == slow && !granted && !f.is("refuses what is pending"):
		f.queued[q.Key] = f.is("grants what was given up") && waits
		return engine.ErrPending
	case q.Offer == slow && !granted:
		return engine.ErrNoCapacity
	}
	return nil
}

func (f *fake) rent(q engine.Request) engine.Instance {
	i := &engine.Instance{ID: fmt.Sprint("i", len(f.list)), Key: q.Key, Offer: q.Offer, State: engine.Running, Launched: time.Now(), Rate: 3.6e12, Tags: maps.Clone(q.Tags)}
	if f.is("loses tags") {
		i.Tags = nil
	}
	f.list = append(f.list, i)
	f.shown[i.ID] = time.Now().Add(lag / 2)
	if f.is("lags for too long") {
		f.shown[i.ID] = time.Now().Add(10 * lag)
	}
	if !f.is("tells nobody") {
		f.told <- struct{}{}
	}
	if q.Offer == shaky {
		f.end(i, engine.Interrupted)
		if f.is("calls an interruption an end") {
			i.Cause = engine.Terminated
		}
	}
	return *i
}

func (f *fake) end(i *engine.Instance, why engine.Cause) {
	i.State, i.Ended, i.Cause = engine.Ended, time.Now(), why
	line := engine.Line{From: i.Launched, To: i.Ended, Amount: i.Rate.Until(i.Ended.Sub(i.Launched)), Currency: money.USD}
	if f.is("bills too much") {
		line.Amount = line.Amount.Add(money.Picos(5))
	}
	bill := engine.Bill{Instance: i.ID, Key: i.Key, Lines: []engine.Line{line}}
	if f.is("bills without a key") {
		bill.Key = ""
	}
	i.Bill = bill.Lines
	if !f.is("never bills") {
		f.pending = append(f.pending, bill)
	}
}

func (f *fake) Terminate(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.list {
		if i.ID == id && i.State == engine.Running {
			f.end(i, engine.Terminated)
			return nil
		}
		if i.ID == id && f.is("ends twice") {
			i.Ended = time.Now()
		}
	}
	if f.is("ends what it does not know") {
		return nil
	}
	return engine.ErrNotFound
}

func (f *fake) List(context.Context) ([]engine.Instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []engine.Instance
	for _, i := range f.list {
		if time.Now().Before(f.shown[i.ID]) {
			continue
		}
		out = append(out, *i)
	}
	if f.is("lists what is pending") {
		for key := range f.queued {
			out = append(out, engine.Instance{ID: "q" + key, Key: key, State: engine.Running})
		}
	}
	return out, nil
}

func (f *fake) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	var offers []market.Offer
	var quotes []market.Quote
	for _, id := range []market.OfferID{sold, gone, shaky, slow} {
		offers = append(offers, market.Offer{ID: id, Provider: "f", Machine: "m", Capacity: market.OnDemand, CPUs: 1, Memory: 1, Currency: money.USD})
		q := market.Quote{Offer: id, Rate: 3.6e12, Priced: true, Available: id != gone, At: time.Now(), Source: "fake"}
		if f.is("quotes without a source") {
			q.Source = ""
		}
		quotes = append(quotes, q)
	}
	return offers, quotes, nil
}

func (f *fake) Cancel(_ context.Context, key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.is("ends what it cancels too late") {
		for _, i := range f.list {
			if i.Key == key {
				i.State = engine.Ended
			}
		}
	}
	if _, part := f.parts[key]; part {
		if f.is("ends the part when the rest is given up") {
			for _, i := range f.list {
				f.end(i, engine.Terminated)
			}
		}
		if f.is("grants the rest that was given up") {
			f.rent(engine.Request{Key: key, Offer: some})
		}
		delete(f.parts, key)
		return nil
	}
	if _, waits := f.queued[key]; !waits {
		if f.is("cancels what it does not know") {
			return nil
		}
		return engine.ErrNotFound
	}
	if f.is("grants what was given up") {
		f.rent(engine.Request{Key: key, Offer: slow})
	}
	delete(f.queued, key)
	f.cancelled[key] = true
	return nil
}

func (f *fake) Watch(ctx context.Context, changed func()) error {
	for {
		select {
		case <-f.told:
			changed()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fakeBills is the part of the fake that knows bills later.
type fakeBills struct{ f *fake }

func (b fakeBills) Bills(context.Context, time.Time) ([]engine.Bill, error) {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	return slices.Clone(b.f.billed), nil
}

type laterList struct{ engine.Driver }

func (l laterList) List(ctx context.Context) ([]engine.Instance, error) {
	list, err := l.Driver.List(ctx)
	for n := range list {
		list[n].Bill = nil
	}
	return list, err
}

// recorder records the failure of a case instead of failing the test.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed []string
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, text)
}
func (r *recorder) Helper()                   {}
func (r *recorder) Error(a ...any)            { r.note(fmt.Sprint(a...)) }
func (r *recorder) Errorf(f string, a ...any) { r.note(fmt.Sprintf(f, a...)) }
func (r *recorder) Fatal(a ...any)            { r.note(fmt.Sprint(a...)); runtime.Goexit() }
func (r *recorder) Fatalf(f string, a ...any) { r.note(fmt.Sprintf(f, a...)); runtime.Goexit() }

// hold runs one case against a fake, and returns its complaints.
func hold(t *testing.T, c Case, f *fake) (complaints []string, skipped string) {
	r := &recorder{TB: t}
	later := c.Name == "a bill that comes later comes with its key"
	g := f.rig(later)
	if later {
		d := g.Driver
		g.Driver = struct {
			laterList
			engine.Canceller
			engine.Watcher
			engine.Biller
		}{laterList{d}, d.(engine.Canceller), d.(engine.Watcher), d.(engine.Biller)}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		skipped = c.Hold(r, g)
	}()
	<-done
	return r.failed, skipped
}

// Each case passes on a correct engine, and catches one that breaks the contract.
func TestCases_CatchFaultyDrivers(t *testing.T) {
	wrong := map[string][]string{
		"offers have price, source and time":                         {"quotes without a source"},
		"a launch is listed with its key, offer, price and tags":     {"loses tags", "lags for too long"},
		"a key rents once, again and at the same time":               {"rents anew"},
		"a key rents once, also when its machine has ended":          {"rents anew after the end"},
		"a lost answer does not rent twice":                          {"rents anew", "answers who hung up"},
		"a key rents once, also when the engine dies":                {"forgets when it dies"},
		"a refusal says why and rents nothing":                       {"rents what is not there", "rents too dear", "forgets the image"},
		"a refusal says what it is about and for how long":           {"says no scope"},
		"a launch that is pending is granted later, and rents once":  {"refuses what is pending", "lists what is pending"},
		"a launch that is given up rents nothing":                    {"grants what was given up", "cancels what it does not know", "ends what it cancels too late"},
		"several machines are rented as one":                         {"rents one of several", "tags only the first", "turns the order round", "forgets when it dies", "rents anew after the end"},
		"several machines are refused as one":                        {"keeps a part of what it refuses", "rents what is not there"},
		"a partial grant is what it is":                              {"grants all at once", "forgets that the rest waits", "never grants the rest", "rents the part anew"},
		"a partial grant is left as it is when the rest is given up": {"ends the part when the rest is given up", "grants the rest that was given up"},
		"giving back can be asked for again":                         {"ends twice", "ends what it does not know"},
		"only ours are listed":                                       {"lists what is not ours"},
		"bills add up, however the span is cut":                      {"bills too much"},
		"a bill that comes later comes with its key":                 {"bills without a key", "never bills"},
		"what the provider interrupts ends with its cause and bill":  {"calls an interruption an end"},
		"changes are told":                                           {"tells nobody"},
	}
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				failed, skipped := hold(t, c, newFake(""))
				if len(failed) > 0 || (skipped == "") != (wrong[c.Name] != nil) {
					t.Fatalf("an engine that does all right: skipped %q, failed %q", skipped, failed)
				}
			})
			for _, w := range wrong[c.Name] {
				synctest.Test(t, func(t *testing.T) {
					if failed, _ := hold(t, c, newFake(w)); len(failed) == 0 {
						t.Errorf("an engine that %s passes", w)
					}
				})
			}
		})
	}
}

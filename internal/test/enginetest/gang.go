package enginetest

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// askFor requests n machines as one launch.
func (r *rig) askFor(key string, n int, offer market.OfferID) ([]engine.Instance, error) {
	q := r.request(key)
	q.Offer, q.Nodes = offer, n
	r.gangs[key] = n
	return r.Driver.Launch(r.Context(), q)
}

// gangOf rents n machines as one launch.
func (r *rig) gangOf(key string, n int) []engine.Instance {
	r.Helper()
	list, err := r.askFor(key, n, r.Granted)
	if err != nil || len(list) != n {
		r.Fatalf("launch %d machines as %s: %v, %v", n, key, list, err)
	}
	return list
}

// listedOf returns the key's machines in the list once there are n, in the order of ids.
func (r *rig) listedOf(key string, n int, ids []string) []engine.Instance {
	r.Helper()
	var own []engine.Instance
	for begun := time.Now(); ; <-time.NewTimer(5 * time.Millisecond).C { // the list may lack some for a while
		all, err := r.Driver.List(r.Context())
		must.Do(r, err)
		own = slices.DeleteFunc(all, func(i engine.Instance) bool { return i.Key != key })
		if len(own) >= n || time.Since(begun) > r.Consistency {
			break
		}
	}
	slices.SortFunc(own, func(a, b engine.Instance) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return own
}

func names(list []engine.Instance) (ids []string) {
	for _, i := range list {
		ids = append(ids, i.ID)
	}
	return ids
}

// distinct reports whether the machines differ in their IDs and in nothing else.
func distinct(list []engine.Instance) bool {
	known := map[string]bool{}
	for _, i := range list {
		ok := i.ID != "" && !known[i.ID] && i.Launched.Equal(list[0].Launched)
		known[i.ID] = true
		if i.ID, i.Launched = list[0].ID, list[0].Launched; !ok || !reflect.DeepEqual(i, list[0]) {
			return false
		}
	}
	return true
}

func gang(r *rig) {
	const nodes = 4
	first := r.gangOf("g.1", nodes)
	ids := names(first)
	if !distinct(first) || first[0].Key != "g.1" || first[0].Offer != r.Granted || !justStarted(first[0]) {
		r.Errorf("rented as one: %+v", first)
	}
	if own := r.listedOf("g.1", nodes, ids); !slices.Equal(names(own), ids) || !distinct(own) {
		r.Errorf("rented were %v, listed are %+v", ids, own)
	}
	gangAgain(r, nodes, ids)
	ended := func(i engine.Instance) bool { return i.State == engine.Ended }
	own := endOne(r, ids, ended)
	if r.Restart != nil {
		r.Restart(r.TB)
	}
	again := r.gangOf("g.1", nodes)
	if !slices.Equal(names(again), ids) || slices.IndexFunc(again, ended) != 1 || slices.ContainsFunc(again[2:], ended) ||
		!same(again[1].Bill, own[1].Bill) || (len(again[1].Bill) == 0) != (r.Later != nil) || len(again[0].Bill) > 0 {
		r.Errorf("rented were %v; one was given back; asked again: %+v", ids, again)
	}
	if own := r.listedOf("g.1", nodes, ids); len(own) != nodes {
		r.Errorf("%d machines are listed of %d", len(own), nodes)
	}
}

// endOne ends the second machine of the gang g.1, and returns the gang as it is listed then.
func endOne(r *rig, ids []string, ended func(engine.Instance) bool) (own []engine.Instance) {
	must.Do(r, r.Driver.Terminate(r.Context(), ids[1]))
	r.until("the end of one of them", func() bool {
		own = r.listedOf("g.1", len(ids), ids)
		return slices.ContainsFunc(own, ended)
	})
	return own
}

// gangAgain requests the gang g.1 eight times at once, and checks that each answer names the machines ids.
func gangAgain(r *rig, nodes int, ids []string) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if again, err := r.Driver.Launch(r.Context(), engine.Request{Key: "g.1", Nodes: nodes, Offer: r.Granted,
				Tags: r.request("g.1").Tags}); err != nil || !slices.Equal(names(again), ids) {
				r.Errorf("rented were %v; asked again: %v, %v", ids, names(again), err)
			}
		})
	}
	wg.Wait()
}

func gangRefused(r *rig) {
	for offer, want := range map[market.OfferID]error{
		r.Empty: engine.ErrNoCapacity, "nowhere/none/none/spot": engine.ErrNotFound,
	} {
		if list, err := r.askFor("g.1", 3, offer); !errors.Is(err, want) || !engine.Refused(err) || len(list) > 0 {
			r.Errorf("3 machines of %s: %v, %v; want %v", offer, list, err, want)
		}
	}
	if all := r.list(); len(all) != 0 {
		r.Errorf("refusals rented %v", all)
	}
	r.gangOf("g.1", 3) // a refusal does not use up the key
}

// part requests the offer that is granted in parts.
func (r *rig) part(key string, nodes int) []engine.Instance {
	r.Helper()
	list, err := r.askFor(key, nodes, r.Parts)
	if !errors.Is(err, engine.ErrPending) || engine.Refused(err) || len(list) != 1 || list[0].Key != key {
		r.Fatalf("launch %d machines as %s: %v, %v; want one, and the rest pending", nodes, key, list, err)
	}
	return list
}

func partial(r *rig) {
	const nodes = 3
	first := r.part("g.1", nodes)
	if again := r.part("g.1", nodes); again[0].ID != first[0].ID {
		r.Errorf("granted was %s; asked again: %s", first[0].ID, again[0].ID)
	}
	if own := r.listedOf("g.1", 1, nil); len(own) != 1 || own[0].ID != first[0].ID {
		r.Errorf("granted was %s; listed are %v", first[0].ID, own)
	}
	r.Grant(r.TB, "g.1")
	var all []engine.Instance
	r.until("the grant of the rest", func() bool {
		var err error
		if all, err = r.askFor("g.1", nodes, r.Parts); err != nil && !errors.Is(err, engine.ErrPending) {
			r.Fatal(err)
		}
		return err == nil && len(all) == nodes
	})
	if all[0].ID != first[0].ID || len(slices.Compact(slices.Sorted(slices.Values(names(all))))) != nodes {
		r.Errorf("granted was %s, and in the end %v", first[0].ID, names(all))
	}
	if own := r.listedOf("g.1", nodes, names(all)); !slices.Equal(names(own), names(all)) {
		r.Errorf("granted were %v, listed are %v", names(all), names(own))
	}
}

func partGivenUp(r *rig) {
	c, ok := r.Driver.(engine.Canceller)
	if !ok {
		r.Fatal("launches may be granted in part, and the driver has no Cancel")
	}
	first := r.part("g.1", 3)
	if err := c.Cancel(r.Context(), "g.1"); err != nil {
		r.Errorf("cancel: %v", err)
	}
	r.Grant(r.TB, "g.1") // there is nothing to grant
	if own := r.listedOf("g.1", 2, nil); len(own) != 1 || own[0].ID != first[0].ID || own[0].State != engine.Running {
		r.Errorf("granted was %s, and the rest given up; listed are %+v", first[0].ID, own)
	}
	if err := c.Cancel(r.Context(), "g.1"); !errors.Is(err, engine.ErrNotFound) {
		r.Errorf("given up again: %v, want ErrNotFound", err)
	}
}

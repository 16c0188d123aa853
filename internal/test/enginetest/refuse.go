package enginetest

import (
	"errors"
	"slices"
	"sync"

	"scrimp/internal/engine"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

func refused(r *rig) {
	for _, c := range []struct {
		name   string
		change func(*engine.Request)
		want   error
	}{
		{"nothing to be had", func(q *engine.Request) { q.Offer = r.Empty }, engine.ErrNoCapacity},
		{"no such offer", func(q *engine.Request) { q.Offer = "nowhere/none/none/spot" }, engine.ErrNotFound},
		{"too dear", func(q *engine.Request) { q.MaxRate = 1 }, engine.ErrPrice},
		{"no key", func(q *engine.Request) { q.Key = "" }, engine.ErrRequest},
		{"an image, and its machines run none", r.imaged, engine.ErrRequest},
	} {
		q := r.request("a.1")
		if c.change(&q); q.Offer == "" {
			continue // this engine always has capacity
		}
		i, err := r.one(r.Driver.Launch(r.Context(), q))
		if !errors.Is(err, c.want) || !engine.Refused(err) || i.ID != "" {
			r.Errorf("%s: %+v, %v; want %v", c.name, i, err, c.want)
		}
	}
	if all := r.list(); len(all) != 0 {
		r.Errorf("refusals rented %v", all)
	}
	r.launch("a.1") // a refusal does not use up the key
}

// imaged adds an image to a request if the offer's machines are not containers.
func (r *rig) imaged(q *engine.Request) {
	sale, _, err := r.Driver.Offers(r.Context())
	must.Do(r, err)
	q.Image = "pytorch/pytorch:2.4.0"
	if slices.ContainsFunc(sale, func(o market.Offer) bool { return o.ID == q.Offer && o.Images }) {
		q.Offer = ""
	}
}

func terminated(r *rig) {
	i := r.launch("a.1")
	other := r.launch("a.2")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := r.Driver.Terminate(r.Context(), i.ID); err != nil && !errors.Is(err, engine.ErrNotFound) {
				r.Error(err)
			}
		})
	}
	wg.Wait()
	var end engine.Instance
	r.until("the end", func() bool { end = r.list()["a.1"]; return end.State == engine.Ended })
	if end.Cause != engine.Terminated || end.Ended.Before(end.Launched) || (len(end.Bill) == 0) != (r.Later != nil) {
		r.Errorf("ended as %+v", end)
	}
	if err := r.Driver.Terminate(r.Context(), i.ID); err != nil && !errors.Is(err, engine.ErrNotFound) {
		r.Errorf("once more: %v", err)
	}
	if again := r.list()["a.1"]; !again.Ended.Equal(end.Ended) || !same(again.Bill, end.Bill) {
		r.Errorf("ended as %+v, and later as %+v", end, again)
	}
	for _, id := range []string{"i-never", "", "../instances", "a b%2f?c"} {
		if err := r.Driver.Terminate(r.Context(), id); !errors.Is(err, engine.ErrNotFound) {
			r.Errorf("terminate %q: %v, want ErrNotFound", id, err)
		}
	}
	if r.list()["a.2"].State != engine.Running {
		r.Errorf("%s ended too", other.ID)
	}
}

func foreign(r *rig) {
	id := r.Foreign(r.TB)
	ours := r.launch("a.1")
	for _, i := range r.list() {
		if i.ID != ours.ID {
			r.Errorf("listed is %s; ours is %s and a foreign one %s", i.ID, ours.ID, id)
		}
	}
}

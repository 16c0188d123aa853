package enginetest

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/test/must"
)

// ask requests the queued offer.
func (r *rig) ask(key string) (engine.Instance, error) {
	q := r.request(key)
	q.Offer = r.Queued
	return r.one(r.Driver.Launch(r.Context(), q))
}

// waits requests the queued offer, which must be pending and rent nothing yet.
func (r *rig) waits(key string) {
	r.Helper()
	if i, err := r.ask(key); !errors.Is(err, engine.ErrPending) || engine.Refused(err) || i.ID != "" {
		r.Fatalf("launch %s: %+v, %v; want it pending", key, i, err)
	}
	if i, there := r.list()[key]; there {
		r.Errorf("listed is %+v, and its launch is pending", i)
	}
}

func pending(r *rig) {
	r.waits("a.1")
	r.waits("a.1") // a repeated request keeps waiting, once
	r.Grant(r.TB, "a.1")
	var i engine.Instance
	r.until("the grant", func() bool {
		var err error
		i, err = r.ask("a.1")
		if err != nil && !errors.Is(err, engine.ErrPending) {
			r.Fatal(err)
		}
		return err == nil
	})
	r.answered("a.1")
	if got := r.list(); i.ID == "" || i.Key != "a.1" || i.Launched.IsZero() || got["a.1"].ID != i.ID || len(got) != 1 {
		r.Errorf("granted later: %+v; listed are %v", i, got)
	}
	if again, err := r.ask("a.1"); err != nil || again.ID != i.ID {
		r.Errorf("asked again after the grant: %+v, %v", again, err)
	}
}

func cancelled(r *rig) {
	c, ok := r.Driver.(engine.Canceller)
	if !ok {
		r.Fatal("launches may be pending, and the driver has no Cancel")
	}
	r.waits("a.1")
	if err := c.Cancel(r.Context(), "a.1"); err != nil {
		r.Errorf("cancel: %v", err)
	}
	r.Grant(r.TB, "a.1")                                                 // there is nothing to grant
	for begun := time.Now(); ; <-time.NewTimer(5 * time.Millisecond).C { // the list may lack it for a while
		if i, there := r.list()["a.1"]; there {
			r.Errorf("given up, and rented all the same: %+v", i)
		}
		if time.Since(begun) > r.Consistency {
			break
		}
	}
	for _, key := range []string{"a.1", "never"} {
		if err := c.Cancel(r.Context(), key); !errors.Is(err, engine.ErrNotFound) {
			r.Errorf("cancel %s: %v, want ErrNotFound", key, err)
		}
	}
	i := r.launch("a.2")
	if err := c.Cancel(r.Context(), "a.2"); !errors.Is(err, engine.ErrNotFound) {
		r.Errorf("cancel of what was granted: %v, want ErrNotFound", err)
	}
	if got := r.list()["a.2"]; got.ID != i.ID || got.State != engine.Running {
		r.Errorf("a cancel that comes too late ends the machine: %+v", got)
	}
}

func scoped(r *rig) {
	for n, want := range r.Refusals {
		q := r.request("a.1")
		q.Offer = want.Offer
		i, err := r.one(r.Driver.Launch(r.Context(), q))
		var got *engine.RefusalError
		if !errors.As(err, &got) || !errors.Is(err, want.Err) || !engine.Refused(err) || i.ID != "" {
			r.Errorf("refusal %d: %+v, %v; want %v", n, i, err, want.Err)
			continue
		}
		if got.Scope != want.Scope || got.Wait != want.Wait {
			r.Errorf("refusal %d is about %q for %v, want %q for %v", n, got.Scope, got.Wait, want.Scope, want.Wait)
		}
	}
	if all := r.list(); len(all) != 0 {
		r.Errorf("refusals rented %v", all)
	}
}

func billedLater(r *rig) {
	b, ok := r.Driver.(engine.Biller)
	if !ok {
		r.Fatal("bills come later, and the driver has no Bills")
	}
	since := time.Now().Add(-time.Hour)
	i := r.launch("a.1")
	running := r.launch("a.2")
	end := r.giveBack("a.1")
	r.Later(r.TB)
	list, err := b.Bills(r.Context(), since)
	must.Do(r, err)
	found := 0
	for _, bill := range list {
		switch bill.Instance {
		case i.ID:
			found++
			if bill.Key != "a.1" || len(bill.Lines) == 0 {
				r.Errorf("bill %+v", bill)
				continue
			}
			end.Bill = bill.Lines
			problems(r, end, bill.Lines[0].Currency)
			if again, err := b.Bills(r.Context(), since); err != nil || len(again) == 0 || !same(again[0].Lines, list[0].Lines) {
				r.Errorf("asked again: %+v, %v", again, err)
			}
		case running.ID:
			r.Errorf("what runs is billed: %+v", bill)
		}
	}
	if found != 1 {
		r.Errorf("%d bills of what has ended, in %v", found, list)
	}
}

func watched(r *rig) {
	w := r.Driver.(engine.Watcher)
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	told, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		ended <- w.Watch(ctx, func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	r.until("word of a launch", func() bool {
		r.launch("a.1") // the key rents once: the machine may have appeared earlier
		if err := r.Driver.Terminate(r.Context(), r.launch("a.1").ID); err != nil && !errors.Is(err, engine.ErrNotFound) {
			r.Error(err)
		}
		return len(told) > 0
	})
	stop()
	r.until("the end of the watch", func() bool { return len(ended) > 0 })
}

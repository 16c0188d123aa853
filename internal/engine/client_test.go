package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/market"
)

// scripted is a driver that answers as configured and records when it was called.
type scripted struct {
	mu    sync.Mutex
	begun time.Time
	keys  []string        // keys of launches
	at    []time.Duration // time of each call, since begun
	// answer decides the nth call, from 1. It may wait for ctx.
	answer func(ctx context.Context, n int) error
}

func (s *scripted) call(ctx context.Context, key string) error {
	s.mu.Lock()
	s.keys, s.at = append(s.keys, key), append(s.at, time.Since(s.begun))
	n := len(s.at)
	s.mu.Unlock()
	return s.answer(ctx, n)
}

func (s *scripted) Launch(ctx context.Context, r Request) ([]Instance, error) {
	return []Instance{{ID: "i-1", Key: r.Key, Launched: time.Now()}}, s.call(ctx, r.Key)
}
func (s *scripted) Terminate(ctx context.Context, _ string) error { return s.call(ctx, "") }
func (s *scripted) List(ctx context.Context) ([]Instance, error)  { return nil, s.call(ctx, "") }
func (s *scripted) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	return nil, nil, s.call(ctx, "")
}

// patient is a configuration with times that are easy to add up.
func patient() ClientConfig {
	return ClientConfig{Timeout: 10 * time.Second, Tries: 4, Wait: time.Second, MaxWait: 3 * time.Second, Jitter: func() float64 { return 0 }}
}

// over runs f with a Client for a scripted driver, on a bubble's clock.
func over(t *testing.T, cfg ClientConfig, answer func(context.Context, int) error, f func(*testing.T, *Client, *scripted)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{begun: time.Now(), answer: answer}
		f(t, NewClient(s, cfg), s)
	})
}

func TestClient_RetriesUnansweredWithSameKeyAndLongerWaits(t *testing.T) {
	broken := errors.New("connection reset")
	over(t, patient(), func(context.Context, int) error { return broken }, func(t *testing.T, p *Client, s *scripted) {
		_, err := p.Launch(t.Context(), Request{Key: "job.1", Offer: "a"})
		if !errors.Is(err, ErrUnanswered) || !errors.Is(err, broken) {
			t.Errorf("error %v, want ErrUnanswered and its cause", err)
		}
		if want := []string{"job.1", "job.1", "job.1", "job.1"}; !slices.Equal(s.keys, want) {
			t.Errorf("keys %v, want %v", s.keys, want)
		}
		if want := []time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second}; !slices.Equal(s.at, want) { // waits of 1, 2 and 3 s, the maximum
			t.Errorf("called at %v, want %v", s.at, want)
		}
	})
}

func TestClient_ReturnsAnswerAfterFault(t *testing.T) {
	for name, do := range map[string]func(context.Context, *Client) error{
		"launch": func(ctx context.Context, p *Client) error {
			i, err := p.Launch(ctx, Request{Key: "k"})
			if err == nil && i[0].ID != "i-1" {
				err = fmt.Errorf("instance %q", i[0].ID)
			}
			return err
		},
		"terminate": func(ctx context.Context, p *Client) error { return p.Terminate(ctx, "i-1") },
		"list":      func(ctx context.Context, p *Client) error { _, err := p.List(ctx); return err },
		"offers":    func(ctx context.Context, p *Client) error { _, _, err := p.Offers(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			over(t, patient(), func(_ context.Context, n int) error {
				if n < 3 {
					return ErrThrottled
				}
				return nil
			}, func(t *testing.T, p *Client, s *scripted) {
				if err := do(t.Context(), p); err != nil || len(s.at) != 3 {
					t.Errorf("%v after %d calls, want an answer after 3", err, len(s.at))
				}
			})
		})
	}
}

func TestClient_DoesNotRetryRefusal(t *testing.T) {
	for _, no := range []error{ErrNoCapacity, ErrQuota, ErrPrice, ErrNotFound, ErrRequest} {
		over(t, patient(), func(context.Context, int) error { return fmt.Errorf("offer a: %w", no) }, func(t *testing.T, p *Client, s *scripted) {
			if _, err := p.Launch(t.Context(), Request{Key: "k"}); !errors.Is(err, no) || errors.Is(err, ErrUnanswered) || len(s.at) != 1 {
				t.Errorf("%v after %d calls, want %v after one", err, len(s.at), no)
			}
		})
	}
}

func TestLaunch_RefusesEmptyKey(t *testing.T) {
	over(t, patient(), func(context.Context, int) error { return nil }, func(t *testing.T, p *Client, s *scripted) {
		if _, err := p.Launch(t.Context(), Request{Offer: "a"}); !errors.Is(err, ErrRequest) || len(s.at) != 0 {
			t.Errorf("%v after %d calls, want ErrRequest after none", err, len(s.at))
		}
	})
}

func TestClient_CutsOffAndRetriesHangingCall(t *testing.T) {
	over(t, patient(), func(ctx context.Context, n int) error {
		if n == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}, func(t *testing.T, p *Client, s *scripted) {
		if err := p.Terminate(t.Context(), "i-1"); err != nil {
			t.Error(err)
		}
		if want := []time.Duration{0, 11 * time.Second}; !slices.Equal(s.at, want) { // the timeout and one wait
			t.Errorf("called at %v, want %v", s.at, want)
		}
	})
}

func TestClient_ReturnsUnansweredWhenCancelled(t *testing.T) {
	over(t, patient(), func(ctx context.Context, _ int) error {
		<-ctx.Done()
		return ctx.Err()
	}, func(t *testing.T, p *Client, s *scripted) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := p.Launch(ctx, Request{Key: "k"})
		if !errors.Is(err, ErrUnanswered) || !errors.Is(err, context.DeadlineExceeded) || len(s.at) != 1 || time.Since(s.begun) != 3*time.Second {
			t.Errorf("%v after %d calls and %v", err, len(s.at), time.Since(s.begun))
		}
	})
}

func TestLaunch_RejectsAnswerForOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{begun: time.Now(), answer: func(context.Context, int) error { return nil }}
		p := NewClient(stranger{s}, patient())
		if i, err := p.Launch(t.Context(), Request{Key: "k"}); !errors.Is(err, ErrUnanswered) || len(i) > 0 {
			t.Errorf("%+v, %v: want no instance", i, err)
		}
	})
}

type stranger struct{ *scripted }

func (s stranger) Launch(ctx context.Context, _ Request) ([]Instance, error) {
	return s.scripted.Launch(ctx, Request{Key: "another"})
}

func TestClient_ReadsNeverDelayTerminate(t *testing.T) {
	cfg := patient()
	cfg.Read, cfg.Act = Limit{Every: time.Second, Burst: 3}, Limit{Every: 2 * time.Second, Burst: 1}
	over(t, cfg, func(context.Context, int) error { return nil }, func(t *testing.T, p *Client, s *scripted) {
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { _, _ = p.List(t.Context()) })
		}
		wg.Wait()
		if want := []time.Duration{0, 0, 0, time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(s.at, want) {
			t.Errorf("six looks at %v, want %v", s.at, want)
		}
		if err := p.Terminate(t.Context(), "i-1"); err != nil || s.at[6] != 3*time.Second {
			t.Errorf("given back at %v (%v), want at once", s.at[6], err)
		}
		<-time.After(time.Hour) // bubble time: the burst is full again and no larger
		s.at, s.begun = nil, time.Now()
		for range 4 {
			_, _ = p.List(t.Context())
		}
		if want := []time.Duration{0, 0, 0, time.Second}; !slices.Equal(s.at, want) {
			t.Errorf("after an hour, four looks at %v, want %v", s.at, want)
		}
	})
}

func TestClient_HoldsAllCallsWhenThrottled(t *testing.T) {
	over(t, patient(), func(_ context.Context, n int) error {
		if n == 1 {
			return ErrThrottled
		}
		return nil
	}, func(t *testing.T, p *Client, s *scripted) {
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = p.List(t.Context()) })
		synctest.Wait()
		_, _, err := p.Offers(t.Context())
		wg.Wait()
		if err != nil || s.at[1] < time.Second {
			t.Errorf("the others were called at %v (%v), want not before 1 s", s.at[1:], err)
		}
	})
}

func TestClient_SpreadsRetriesWithJitter(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	cfg := patient()
	cfg.Tries, cfg.Jitter = 2, chance.Float64
	seen := map[time.Duration]bool{}
	for range 50 {
		over(t, cfg, func(context.Context, int) error { return errors.New("broken") }, func(t *testing.T, p *Client, s *scripted) {
			_, _ = p.List(t.Context())
			if wait := s.at[1]; wait <= time.Second/2 || wait > time.Second {
				t.Errorf("waited %v, want between 0.5 s and 1 s", wait)
			}
			seen[s.at[1]] = true
		})
	}
	if len(seen) < 40 {
		t.Errorf("50 waits have %d lengths", len(seen))
	}
}

func TestClientConfig_RefusesBadValues(t *testing.T) {
	if err := DefaultClient().Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*ClientConfig){
		"no timeout": func(c *ClientConfig) { c.Timeout = 0 },
		"no try":     func(c *ClientConfig) { c.Tries = 0 },
		"no wait":    func(c *ClientConfig) { c.Wait = 0 },
		"no burst":   func(c *ClientConfig) { c.Act = Limit{Every: time.Second} },
		"no jitter":  func(c *ClientConfig) { c.Jitter = nil },
	} {
		c := DefaultClient()
		if spoil(&c); c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// several is a driver that answers with the configured machines.
type several struct {
	scripted
	list []Instance
}

func (s *several) Launch(ctx context.Context, _ Request) ([]Instance, error) {
	return s.list, s.call(ctx, "")
}

func TestLaunch_AcceptsOrRejectsWholeAnswer(t *testing.T) {
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	one := func(id, key string) Instance { return Instance{ID: id, Key: key, Launched: at} }
	for name, c := range map[string]struct {
		list []Instance
		err  error
		want error // nil: all are accepted
	}{
		"all":                    {[]Instance{one("a", "k"), one("b", "k"), one("c", "k")}, nil, nil},
		"a part, at once":        {[]Instance{one("a", "k"), one("b", "k")}, nil, nil},
		"a part, the rest waits": {[]Instance{one("a", "k")}, ErrPending, ErrPending},
		"all wait":               {nil, ErrPending, ErrPending},
		"none":                   {nil, nil, ErrUnanswered},
		"too many":               {[]Instance{one("a", "k"), one("b", "k"), one("c", "k"), one("d", "k")}, nil, ErrUnanswered},
		"all, and more wait":     {[]Instance{one("a", "k"), one("b", "k"), one("c", "k")}, ErrPending, ErrUnanswered},
		"one of another key":     {[]Instance{one("a", "k"), one("b", "other")}, nil, ErrUnanswered},
		"one twice":              {[]Instance{one("a", "k"), one("a", "k")}, nil, ErrUnanswered},
		"one without a name":     {[]Instance{one("a", "k"), one("", "k")}, ErrPending, ErrUnanswered},
		"refused, with a part":   {[]Instance{one("a", "k")}, ErrNoCapacity, ErrNoCapacity},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &several{scripted: scripted{begun: time.Now(), answer: func(context.Context, int) error { return c.err }}, list: c.list}
				list, err := NewClient(s, patient()).Launch(t.Context(), Request{Key: "k", Nodes: 3})
				taken := len(c.list)
				if c.want != nil && !errors.Is(c.want, ErrPending) && !Refused(c.want) {
					taken = 0
				}
				if !errors.Is(err, c.want) || len(list) != taken {
					t.Errorf("%v, %v; want %d machines, %v", list, err, taken, c.want)
				}
			})
		})
	}
}

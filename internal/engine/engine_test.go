package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

func TestClock_ConvertsToSameMoments(t *testing.T) {
	wall := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, other := range map[string]Clock{
		"the wall's":     {},
		"opened earlier": {Wall: wall.Add(-time.Hour), Market: wall.Add(-time.Hour), Speed: 1},
		"ahead":          {Wall: wall.Add(-time.Hour), Market: wall.Add(47 * time.Hour), Speed: 1},
	} {
		on := Clock{Wall: wall, Market: wall, Speed: 1}
		at := wall.Add(90 * time.Minute)
		if got := on.From(other, other.ToMarket(at)); !got.Equal(at) {
			t.Errorf("%s: %v on the wall is %v", name, at, got)
		}
		if !on.From(other, time.Time{}).IsZero() {
			t.Errorf("%s: no time becomes one", name)
		}
		if back := other.ToWall(other.ToMarket(at)); !back.Equal(at) {
			t.Errorf("%s: %v and back is %v", name, at, back)
		}
	}
}

// clocked answers with times of its own market.
type clocked struct{ at time.Time }

func (c clocked) Launch(_ context.Context, r Request) ([]Instance, error) {
	return []Instance{{ID: "i", Key: r.Key, State: Running, Launched: c.at}}, nil
}
func (c clocked) Terminate(context.Context, string) error { return nil }
func (c clocked) List(context.Context) ([]Instance, error) {
	return []Instance{{ID: "i", Launched: c.at, Ended: c.at.Add(time.Hour), Bill: []Line{{From: c.at, To: c.at.Add(time.Hour)}}}}, nil
}
func (c clocked) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	return []market.Offer{{ID: "o", Reserved: market.Reservation{From: c.at, Until: c.at.Add(time.Hour)}}}, []market.Quote{{Offer: "o", At: c.at}}, nil
}
func (c clocked) Bills(context.Context, time.Time) ([]Bill, error) {
	return []Bill{{Instance: "i", Lines: []Line{{From: c.at, To: c.at.Add(time.Hour)}}}}, nil
}

func TestOpen_ConvertsTimesToServersClock(t *testing.T) {
	wall := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ahead := wall.Add(48 * time.Hour)
	e := Engine{Name: "x", Driver: clocked{ahead}, Clock: Clock{Wall: wall, Market: ahead, Speed: 1}}
	c := e.Open(Clock{Wall: wall, Market: wall, Speed: 1})
	i, err := c.Launch(t.Context(), Request{Key: "k"})
	list, err2 := c.List(t.Context())
	offers, quotes, err3 := c.Offers(t.Context())
	bills, err4 := c.Bills(t.Context(), wall)
	must.Do(t, errors.Join(err, err2, err3, err4))
	end := wall.Add(time.Hour)
	for what, at := range map[string][2]time.Time{
		"launch": {i[0].Launched, wall}, "listed launch": {list[0].Launched, wall}, "end": {list[0].Ended, end},
		"line": {list[0].Bill[0].To, end}, "quote": {quotes[0].At, wall}, "reserved": {offers[0].Reserved.Until, end},
		"bill": {bills[0].Lines[0].From, wall},
	} {
		if !at[0].Equal(at[1]) {
			t.Errorf("%s: %v, want %v", what, at[0], at[1])
		}
	}
}

func TestCommon_RefusesFastMarketBesideOthers(t *testing.T) {
	fast, plain := Engine{Name: "fast", Clock: Clock{Name: "m", Speed: 60}}, Engine{Name: "plain"}
	if c, err := Common([]Engine{fast}); err != nil || c != fast.Clock {
		t.Errorf("alone: %+v, %v", c, err)
	}
	if _, err := Common([]Engine{plain, fast}); err == nil || !strings.Contains(err.Error(), "engine fast") || !strings.Contains(err.Error(), "leave the others out") {
		t.Errorf("with another: %v", err)
	}
	if c, err := Common([]Engine{plain}); err != nil || c.Speed != 1 {
		t.Errorf("an engine on the wall: %+v, %v", c, err)
	}
}

func TestClient_WaitsAsLongAsThrottlingAsks(t *testing.T) {
	throttled := func(d time.Duration) error { return &RefusalError{Err: ErrThrottled, Scope: "account", Wait: d} }
	over(t, patient(), func(_ context.Context, n int) error {
		if n < 2 {
			return throttled(2500 * time.Millisecond) // longer than the first wait of a second
		}
		return nil
	}, func(t *testing.T, p *Client, s *scripted) {
		if err := p.Terminate(t.Context(), "i-1"); err != nil || len(s.at) != 2 || s.at[1]-s.at[0] != 2500*time.Millisecond {
			t.Errorf("%v after %v", err, s.at)
		}
	})
	over(t, patient(), func(context.Context, int) error { return throttled(time.Hour) }, func(t *testing.T, p *Client, s *scripted) {
		_, err := p.Launch(t.Context(), Request{Key: "k"})
		if !errors.Is(err, ErrThrottled) || !Refused(err) || len(s.at) != 1 {
			t.Errorf("told to wait for an hour: %v after %v", err, s.at)
		}
	})
}

func TestSettings_KeepsOrder(t *testing.T) {
	dir := t.TempDir()
	list, err := Settings(dir)
	if err != nil || len(list) != 1 || list[0].Name != "local" || list[0].Kind != "local" {
		t.Errorf("a folder without a file has %+v, %v", list, err)
	}
	text := "engines:\n  - {name: b, kind: local, agents: listen, with: {market: x.yaml}, timing: {poll: 2s, grant_wait: 3h}}\n  - {name: a, kind: local, users: same}\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, SettingsName), []byte(text), 0o600))
	list, err = Settings(dir)
	var with struct{ Market string }
	if err == nil {
		err = list[0].With.Into(&with, "it has market")
	}
	if err != nil || len(list) != 2 || list[0].Name != "b" || with.Market != "x.yaml" || list[1].Name != "a" ||
		list[0].Users != "" || list[1].Users != UsersSame {
		t.Fatalf("%+v, %v", list, err)
	}
	got := list[0].Timing.Over(Timing{Poll: time.Second, Sweep: time.Minute, Boot: time.Hour})
	if want := (Timing{Poll: 2 * time.Second, Sweep: time.Minute, Boot: time.Hour, GrantWait: 3 * time.Hour}); got != want {
		t.Errorf("timing %+v, want %+v", got, want)
	}
	if d := got.Detection(); d != 4*time.Second {
		t.Errorf("a loss goes unnoticed for %v, want two polls", d)
	}
}

// users must be one of two words; an error names both.
func TestSettings_RefusesUnknownUsers(t *testing.T) {
	dir := t.TempDir()
	text := "engines: [{name: a, kind: local, users: root}]\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, SettingsName), []byte(text), 0o600))
	_, err := Settings(dir)
	if err == nil || !strings.Contains(err.Error(), "engine a") || !strings.Contains(err.Error(), "auto") ||
		!strings.Contains(err.Error(), "same") {
		t.Errorf("it says %v", err)
	}
}

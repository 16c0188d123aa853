package engine

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/quantity"

	"go.yaml.in/yaml/v3"
)

// A number out of bounds in an engine's settings is refused with its line, field and bounds.
func TestWith_RefusesNumbersOutOfBounds(t *testing.T) {
	t.Parallel()
	var s Setting
	if err := yaml.Unmarshal([]byte("name: a\nkind: k\ntiming: {idle: 100000h}"), &s); err == nil || !strings.Contains(err.Error(), "87600h") {
		t.Errorf("an idle time of a century: %v", err)
	}
	if err := yaml.Unmarshal([]byte("name: a\nkind: k\nwith:\n  pools: [{cpus: 4}, {cpus: 2000000000}]"), &s); err != nil {
		t.Fatal(err)
	}
	var with struct {
		Pools []struct {
			CPUs int `yaml:"cpus"`
		} `yaml:"pools"`
	}
	if err := s.With.Into(&with, "it has pools"); err == nil || !strings.Contains(err.Error(), "pools[1].cpus") {
		t.Errorf("two billion processors: %v", err)
	}
	for text, ok := range map[string]bool{"$2.50": true, "2.50": true, "1000000": true, "1000001": false, "-1": false, "9e9": false} {
		if _, err := ParseRate(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// On the fastest market no span of the server exceeds the longest span of an event, and its clock continues.
func TestClock_StaysWithinBounds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	c := Clock{Wall: now, Market: now, Speed: 1e6}
	if d := c.Stretch(7 * 24 * time.Hour); d != quantity.Decade {
		t.Errorf("a week is %v", d)
	}
	if d := c.Stretch(time.Second); d != 1e6*time.Second {
		t.Errorf("a second is %v", d)
	}
	if at := c.ToMarket(now.Add(time.Hour)); !at.Equal(now.Add(1e6 * time.Hour)) {
		t.Errorf("after an hour it is %v", at)
	}
	if !c.ToMarket(time.Time{}).IsZero() {
		t.Error("no time became one")
	}
}

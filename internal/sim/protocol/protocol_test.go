package protocol_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/sim/protocol"
	"scrimp/internal/sim/tick/multizone"
	"scrimp/internal/test/must"
)

const whole = `tick: 5m
jobs: [{work: 24h, deadline: 28h}]
restart: [3m, 12m]
checkpoint: {gb: [0, 100.5], usd_per_gb: {us-east-1: {eu: 0.05}, eu: {us-east-1: 0.09}}, move_time: 90s}
on_demand: {default: 3.06, us-east-1: 2.90, eu-2: 3.2}
sight: [A, C]
look: {fee: 60s, per_tick: any}
guard: latch
regions: {eu: [mars]}
groups:
  - [us-east-1a, eu-2, mars]
`

func read(text string) (*multizone.Protocol, error) { return protocol.Read("p.yaml", []byte(text)) }

func TestRead_TakesEveryValueOfTheForm(t *testing.T) {
	p, err := read(whole)
	must.Do(t, err)
	g := p.Groups[0]
	if g[0].Region != "us-east-1" || g[1].Region != "eu" || g[2].Region != "eu" {
		t.Errorf("regions %v: a zone's name begins with a region of the table, or the file names its region", g)
	}
	if g[0].OnDemand != 2_900_000_000_000 || g[1].OnDemand != 3_200_000_000_000 || g[2].OnDemand != 3_060_000_000_000 {
		t.Errorf("on-demand prices %v", g)
	}
	c := p.Checkpoints[1]
	if got := c.Egress.Moving("us-east-1", "eu", money.Amount{}); got.String() != "5.025" {
		t.Errorf("100.5 GB at $0.05 cost %v", got)
	}
	if got := c.Egress.Moving("eu", "us-east-1", money.Amount{}); got.String() != "9.045" {
		t.Errorf("100.5 GB at $0.09 cost %v", got)
	}
	if !p.Latch || p.PerTick != 0 || p.Fee != time.Minute || len(p.Restarts) != 2 || len(p.Sights) != 2 || p.MoveTime != 90*time.Second {
		t.Errorf("%+v", p)
	}
	for from, to := range map[string]string{
		"restart: [3m, 12m]": "restart: 0", "sight: [A, C]": "sight: C", "per_tick: any": "per_tick: 3", "guard: latch\n": "",
		"on_demand: {default: 3.06, us-east-1: 2.90, eu-2: 3.2}": "on_demand: $3.06",
		"jobs: [{work: 24h, deadline: 28h}]":                     "jobs: {work: 1d, deadline: 1.5d}",
		"{us-east-1: {eu: 0.05}, eu: {us-east-1: 0.09}}":         "{default: {default: 0.02}}",
	} {
		if _, err := read(strings.Replace(whole, from, to, 1)); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestRead_RefusesTheRestWithLineAndFix(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"tick: 5m", "tick: 5", `p.yaml:1: tick is "5"`},
		{"tick: 5m", "tick: 5m\ntock: 5m", "tock is not known here"},
		{"tick: 5m\n", "", "tick is missing"},
		{"deadline: 28h", "deadline: 24h", "leaves 288 whole ticks"},
		{"work: 24h, ", "", "jobs[0].work is missing"},
		{"restart: [3m, 12m]", "restart: []", "restart is empty"},
		{"restart: [3m, 12m]", "restart: [-3m]", "restart[0]"},
		{"gb: [0, 100.5]", "gb: [-1]", "checkpoint.gb[0]"},
		{"gb: [0, 100.5]", "gb: [50%]", "is a percentage"},
		{", move_time: 90s", "", "checkpoint.move_time is missing"},
		{"eu: {us-east-1: 0.09}", "eu: {us-west-1: 0.09}", "says nothing of eu to us-east-1"},
		{"us-east-1: {eu: 0.05}", "us-east-1: {eu: -0.05}", "checkpoint.usd_per_gb.us-east-1.eu"},
		{"default: 3.06, ", "", "mars has no on-demand price"},
		{"default: 3.06", "default: 0", "on_demand.default"},
		{"default: 3.06", "default: free", "on_demand.default"},
		{"sight: [A, C]", "sight: [A, D]", `sight[1] is "D"`},
		{"sight: [A, C]", "sight: [A, A]", "is there twice"},
		{"look: {fee: 60s, per_tick: any}\n", "", "look is missing, and sight C needs it"},
		{"fee: 60s", "fee: 60", "look.fee"},
		{"per_tick: any", "per_tick: 0", "look.per_tick"},
		{"guard: latch", "guard: maybe", "guard"},
		{"groups:\n  - [us-east-1a, eu-2, mars]\n", "", "groups is missing"},
		{"[us-east-1a, eu-2, mars]", "[mars, mars]", "is in the group already"},
		{"[us-east-1a, eu-2, mars]", "[]", "groups[0] is empty"},
	} {
		_, err := read(strings.Replace(whole, c.from, c.to, 1))
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "`", ""), c.want) ||
			!regexp.MustCompile(`p\.yaml:\d+`).MatchString(err.Error()) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v\ninstead of one problem, %s, with file, line and fix", c.to, err, c.want)
		}
	}
}

// The public protocol file equals the built-in default.
func TestRead_PublicBenchmarkFileEqualsDefault(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "data", "spot", "protocol.yaml"))
	if err != nil {
		t.Skip("SKIPPED: ../shared/data/spot/protocol.yaml is not beside the repository")
	}
	p, err := read(string(text))
	must.Do(t, err)
	if want := multizone.Public(); !reflect.DeepEqual(p, want) {
		t.Errorf("%+v\ninstead of %+v", p, want)
	}
}

// The example in docs/simulate.md is a valid file.
func TestRead_AcceptsFileOfGuide(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "simulate.md"))
	must.Do(t, err)
	m := regexp.MustCompile("(?s)```yaml\n(# market\\.yaml.*?)```").FindSubmatch(text)
	if m == nil {
		t.Fatal("docs/simulate.md has no market.yaml")
	}
	if _, err := read(string(m[1])); err != nil {
		t.Error(err)
	}
}

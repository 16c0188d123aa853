package simulation

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/work/serving/load"
)

// Kind is a family of rules.
type Kind string

// The kinds. A fixed rule keeps its machines for the whole window; the others start and stop machines.
const (
	Fixed       Kind = "fixed"         // machines always on, one request at a time
	Batched     Kind = "batched"       // machines always on, dynamic batches
	Autoscale   Kind = "autoscale"     // one machine or more, by the requests in the system
	ScaleToZero Kind = "scale-to-zero" // the same from none on
	WarmHours   Kind = "warm-hours"    // warm machines in some hours of the day, none at least in the others
	Serverless  Kind = "serverless"    // a function, paid by request and by GiB-second
)

// Kinds are the rules that machines are tried with, in the order in which they are shown.
var Kinds = []Kind{Fixed, Batched, Autoscale, ScaleToZero, WarmHours}

// A Rule says how requests are put together and how many machines there are.
type Rule struct {
	Kind  Kind
	Batch int           // requests that are answered together, at most
	Wait  time.Duration // that the oldest request of a batch waits for others, at most
	Min   int           // machines at least
	Max   int           // machines at most
	Warm  load.Hours    // of the day, in which there are at least WarmMin machines
	// WarmMin is the machines in the hours of Warm.
	WarmMin int
	Cold    time.Duration // from the start of a machine to its first request
	Keep    time.Duration // that a machine without requests is kept
	Poll    time.Duration // between two decisions to start machines; 0: at once
}

// Elastic reports whether machines are started and stopped.
func (r Rule) Elastic() bool { return r.Min < r.Max }

// A Target is a bound on a quantile of the latency.
type Target struct {
	PerMille int // the quantile: 990 is p99
	Limit    time.Duration
}

// quantiles are the ones that a target may name.
var quantiles = map[string]int{"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p99.9": 999}

// ParseTargets reads p99<=300ms, several separated by commas. Spaces and upper case are accepted.
func ParseTargets(text string) (list []Target, err error) {
	seen := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		t, cause := target(strings.ToLower(strings.Join(strings.Fields(part), "")))
		if seen[t.PerMille] && cause == "" {
			cause = "a quantile has one bound, and this is the second"
		}
		if cause != "" {
			return nil, fmt.Errorf("%.60q is no bound on the latency: %s: write p99<=300ms", part, cause)
		}
		seen[t.PerMille] = true
		list = append(list, t)
	}
	return list, nil
}

// target reads one bound without spaces in lower case, or says what is wrong with it.
func target(text string) (t Target, cause string) {
	name, limit, ok := strings.Cut(text, "<=")
	if !ok {
		return t, "it has no <="
	}
	if t.PerMille, ok = quantiles[name]; !ok {
		return t, fmt.Sprintf("the quantile %.20q is none of p50, p90, p95, p99 and p99.9", name)
	}
	if _, err := strconv.ParseFloat(limit, 64); err == nil && limit != "0" {
		return t, fmt.Sprintf("%.20s has no unit, such as ms, s or m", limit)
	}
	d, err := time.ParseDuration(limit)
	switch {
	case err != nil:
		return t, fmt.Sprintf("%.20q is not a span of time, such as 300ms or 1m30s", limit)
	case d <= 0 || d > load.MaxWindow:
		return t, "the limit is not above 0 and at most 9600h"
	}
	t.Limit = d
	return t, ""
}

func (t Target) String() string {
	text := strings.TrimSuffix(fmt.Sprintf("p%d.%d", t.PerMille/10, t.PerMille%10), ".0")
	return text + "<=" + Short(t.Limit)
}

// Short writes a span without the minutes and seconds that are zero: 24h, 1m30s.
func Short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// allowed returns how many of n requests may take longer than the limit: the quantile is the latency with rank
// ceil(q·n) in ascending order.
func (t Target) allowed(n int) int { return n - rank(t.PerMille, n) }

func rank(perMille, n int) int { return (perMille*n + 999) / 1000 }

// String says what the rule is, in one line.
func (r Rule) String() string {
	text := string(r.Kind)
	if r.Batch > 1 {
		text += fmt.Sprintf(", batches of up to %d", r.Batch)
		if r.Wait > 0 {
			text += fmt.Sprintf(" that wait up to %s", Short(r.Wait))
		}
	}
	text += ", machines: " + r.Machines()
	if r.WarmMin > 0 {
		text += fmt.Sprintf(", %d at least in the hours %s", r.WarmMin, r.Warm)
	}
	return text
}

// Machines returns how many machines a rule has, such as 2 or 0-4.
func (r Rule) Machines() string {
	if r.Min == r.Max {
		return fmt.Sprint(r.Max)
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}

package serving

import (
	"fmt"
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

// elastic reports whether machines are started and stopped.
func (r Rule) elastic() bool { return r.Min < r.Max }

// A Target is a bound on a quantile of the latency.
type Target struct {
	PerMille int // the quantile: 990 is p99
	Limit    time.Duration
}

// quantiles are the ones that a target may name.
var quantiles = map[string]int{"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p99.9": 999}

// ParseTargets reads p99<=300ms, several separated by commas.
func ParseTargets(text string) (list []Target, err error) {
	seen := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, limit, ok := strings.Cut(strings.TrimSpace(part), "<=")
		q, known := quantiles[strings.TrimSpace(name)]
		d, bad := time.ParseDuration(strings.TrimSpace(limit))
		if !ok || !known || bad != nil || d <= 0 || d > load.MaxWindow || seen[q] {
			return nil, fmt.Errorf("%.60q is no bound on the latency: write p99<=300ms; quantiles are p50, p90, p95, p99 and "+
				"p99.9, each once", part)
		}
		seen[q] = true
		list = append(list, Target{q, d})
	}
	return list, nil
}

func (t Target) String() string {
	text := strings.TrimSuffix(fmt.Sprintf("p%d.%d", t.PerMille/10, t.PerMille%10), ".0")
	return text + "<=" + short(t.Limit)
}

// short writes a span without the minutes and seconds that are zero: 24h, 1m30s.
func short(d time.Duration) string {
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

// Package compression formats the result of scrimp compress.
package compression

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/work/compress"
	"scrimp/internal/work/compress/judge"
)

// Numbers are a value before and after.
type Numbers struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Sizes are the bytes of the model before and after, with its external data.
type Sizes struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Costs are the dollars of a million predictions before and after.
type Costs struct {
	Before money.Amount `json:"before"`
	After  money.Amount `json:"after"`
}

// Offer is an offer of the machine that was measured, with the dollars of a million predictions on it.
type Offer struct {
	Provider   string          `json:"provider"`
	Region     string          `json:"region"`
	Machine    string          `json:"machine"`
	Capacity   market.Capacity `json:"capacity"`
	Hourly     money.Rate      `json:"usd_per_hour"`
	PerMillion Costs           `json:"usd_per_million_predictions"`
}

// Quality is the user's metric.
type Quality struct {
	Numbers
	Fall      float64 `json:"fall"` // how much worse it is
	Tolerance float64 `json:"tolerance"`
}

// Outputs compares what both models compute for the same inputs.
type Outputs struct {
	Values     int     `json:"values"`
	Difference float64 `json:"largest_difference"`
	Largest    float64 `json:"largest_magnitude"` // of the original's outputs
}

// Layer is what happened to the weight of one node.
type Layer struct {
	Node    string  `json:"node"`
	Op      string  `json:"op"`
	Weight  string  `json:"weight,omitempty"`
	Rows    int64   `json:"rows,omitempty"`
	Columns int64   `json:"columns,omitempty"`
	Skipped string  `json:"skipped,omitempty"` // why the weight stays
	Diff    float64 `json:"largest_difference"`
	Bound   float64 `json:"bound"`
	Zeros   int64   `json:"zeros,omitempty"`
	Removed int64   `json:"removed_channels,omitempty"`
}

// Speed is how many times as long the copy takes as the original, with the 95 % interval.
type Speed struct {
	Ratio   float64 `json:"ratio"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Pairs   int     `json:"pairs"`   // of turns
	Verdict string  `json:"verdict"` // faster, slower or cannot tell
}

// Result is the output of scrimp compress. null means that it was not measured.
type Result struct {
	Model       string          `json:"model"`
	Output      string          `json:"output"`
	Method      compress.Method `json:"method"`
	Parameters  int64           `json:"parameters"`
	Changed     int64           `json:"changed_parameters"` // for prune-structured those that are gone
	Size        Sizes           `json:"size_bytes"`
	Ratio       float64         `json:"size_ratio"`
	Quality     *Quality        `json:"quality"`
	P50         *Numbers        `json:"latency_p50_seconds"`
	P99         *Numbers        `json:"latency_p99_seconds"`
	Speed       *Speed          `json:"latency_ratio"`
	Throughput  *Numbers        `json:"predictions_per_second"` // one after another
	Runtime     string          `json:"onnx_runtime,omitempty"` // version that --runtime measured with
	Batch       int             `json:"batch,omitempty"`        // examples in a run of --runtime
	Outputs     *Outputs        `json:"outputs"`
	PerMillion  *Costs          `json:"usd_per_million_predictions"`
	Offers      []Offer         `json:"offers,omitempty"` // of --machine, the cheapest first
	Diff        float64         `json:"largest_difference"`
	Recommended *bool           `json:"recommended"`
	Why         []string        `json:"reasons"` // why it is not recommended
	Layers      []Layer         `json:"layers"`
}

// Of fills the part of the result that the plan and its measurements give.
func Of(p *compress.Plan, m judge.Measures) Result {
	r := Result{Method: p.Method, Changed: p.Changed(), Size: Sizes(m.Size), Layers: []Layer{}, Why: []string{}}
	r.Ratio = float64(m.Size.After) / float64(m.Size.Before)
	for _, l := range p.Layers {
		r.Layers = append(r.Layers, Layer(l))
		r.Diff = max(r.Diff, l.Diff)
	}
	if q := m.Quality; q != nil {
		r.Quality = &Quality{Numbers(q.Pair), q.Fall(), q.Tolerance}
	}
	if v := m.Speed; v != nil {
		r.Speed = &Speed{v.Is, v.Low, v.High, v.Pairs, v.Verdict()}
	}
	if yes, known := m.Recommended(p.Method); known {
		r.Recommended = &yes
	}
	if err := m.Judge(p.Method); err != nil {
		r.Why = strings.Split(err.Error(), "\n")
	}
	return r
}

// Text formats the result for people.
func (r Result) Text(p show.Place) string {
	var b strings.Builder
	rows := [][]string{{"size", size.Bytes(r.Size.Before).String(), size.Bytes(r.Size.After).String(), times(r.Ratio)}}
	row := func(name string, v *Numbers, format func(float64) string) {
		if v != nil {
			rows = append(rows, []string{name, format(v.Before), format(v.After), times(v.After / v.Before)})
		}
	}
	if q := r.Quality; q != nil {
		rows = append(rows, []string{"quality", metric(q.Before), metric(q.After), fmt.Sprintf("%+.4g", q.After-q.Before)})
	}
	row("latency p50", r.P50, seconds)
	row("latency p99", r.P99, seconds)
	row("predictions/s", r.Throughput, metric)
	if c := r.PerMillion; c != nil {
		digits := 4
		if c.Before.Float() < 0.01 || c.After.Float() < 0.01 {
			digits = 8
		}
		rows = append(rows, []string{"$ per million", money.Format(c.Before, money.USD, digits),
			money.Format(c.After, money.USD, digits), times(c.After.Float() / c.Before.Float())})
	}
	b.WriteString(draw.Grid([]draw.Column{{Name: "", Key: true}, {Name: "BEFORE", Right: true},
		{Name: "AFTER", Right: true}, {Name: "CHANGE", Right: true}}, rows, p.Columns()))
	b.WriteString(r.offers(p) + "\n" + r.layers(p))
	for _, line := range r.notes() {
		b.WriteString(draw.Wrap("", line, p.Columns()))
	}
	return b.String()
}

// mostOffers is how many offers the table shows; --json has all.
const mostOffers = 12

func (r Result) offers(p show.Place) string {
	var rows [][]string
	for _, o := range r.Offers[:min(len(r.Offers), mostOffers)] {
		rows = append(rows, []string{show.Clean(o.Machine), show.Clean(o.Provider), show.Clean(o.Region), string(o.Capacity),
			money.Format(o.Hourly.Until(time.Hour), money.USD, 4), money.Short(o.PerMillion.Before, money.USD),
			money.Short(o.PerMillion.After, money.USD)})
	}
	if len(rows) == 0 {
		return ""
	}
	text := "\n" + draw.Grid([]draw.Column{{Name: "MACHINE", Key: true}, {Name: "PROVIDER"}, {Name: "REGION"},
		{Name: "CAPACITY"}, {Name: "AN HOUR", Right: true}, {Name: "$ PER MILLION", Right: true},
		{Name: "AFTER", Right: true}}, rows, p.Columns())
	if n := len(r.Offers) - len(rows); n > 0 {
		text += fmt.Sprintf("%s more: --json has all.\n", draw.Count(n, "offer"))
	}
	return text
}

func (r Result) layers(p show.Place) string {
	var rows [][]string
	for _, l := range r.Layers {
		shape, diff, bound, why := "-", "-", "-", "changed"
		if l.Removed > 0 {
			why = fmt.Sprintf("%d of %d channels are gone", l.Removed, l.Columns)
		}
		if l.Weight != "" {
			shape = fmt.Sprintf("%d x %d", l.Rows, l.Columns)
		}
		if l.Skipped != "" {
			why = "stays: " + l.Skipped
			if r.Method == compress.PruneStructured { // it can shrink with the channels of the layer before
				why = "keeps its outputs: " + l.Skipped
			}
		} else {
			diff, bound = fmt.Sprintf("%.4g", l.Diff), fmt.Sprintf("%.4g", l.Bound)
		}
		rows = append(rows, []string{show.Clean(l.Node), show.Clean(l.Op), shape, diff, bound, show.Clean(why)})
	}
	return draw.Grid([]draw.Column{{Name: "NODE", Least: 12, Key: true}, {Name: "OPERATOR"}, {Name: "SHAPE", Right: true},
		{Name: "DIFFERENCE", Right: true}, {Name: "BOUND", Right: true}, {Name: "WEIGHT", Least: 12}}, rows, p.Columns())
}

func (r Result) notes() []string {
	share := 0.0
	if r.Parameters > 0 {
		share = 100 * float64(r.Changed) / float64(r.Parameters)
	}
	text := "%s of %s parameters (%.1f %%) are in weights that changed; the largest difference of a weight is %.4g."
	if r.Method == compress.PruneStructured {
		text = "%s of %s parameters (%.1f %%) are gone; the largest weight among them was %.4g."
	}
	list := []string{"", fmt.Sprintf(text, draw.Short(r.Changed), draw.Short(r.Parameters), share, r.Diff)}
	if r.Method == compress.PruneUnstructured {
		list = append(list, "Zeros in a dense matrix save no time on dense hardware, and the file stays as large; they help "+
			"only a runtime or an archive that stores sparse weights.")
	}
	if r.P50 == nil {
		list = append(list, "No speed was measured: --runtime or --latency does.")
	}
	if v := r.Speed; v != nil {
		verdict := "the copy is " + v.Verdict
		if v.Verdict == judge.CannotTell {
			verdict = "the measurement cannot tell which is faster; a larger --repeat narrows the interval"
		}
		list = append(list, fmt.Sprintf("Over %d pairs of turns the copy takes %.3f x as long (95 %% interval %.3f to "+
			"%.3f): %s.", v.Pairs, v.Ratio, v.Low, v.High, verdict))
	}
	if o := r.Outputs; o != nil {
		list = append(list, fmt.Sprintf("In ONNX Runtime %s, with %s a run: %s outputs of the copy differ by at "+
			"most %.4g; the largest of the original is %.4g.", show.Clean(r.Runtime),
			draw.Count(r.Batch, "example"), draw.Short(int64(o.Values)), o.Difference, o.Largest))
	}
	switch {
	case len(r.Why) > 0:
		list = append(list, "Not recommended: "+strings.Join(r.Why, "; ")+".")
	case r.Quality == nil:
		list = append(list, "No recommendation: --eval measures the quality.")
	case r.Recommended != nil && *r.Recommended:
		list = append(list, fmt.Sprintf("Recommended: the quality holds within %g.", r.Quality.Tolerance))
	default:
		list = append(list, "No recommendation: the quality holds, and nothing that was measured is better.")
	}
	return list
}

// Seconds converts a pair of durations.
func Seconds(p judge.Pair[time.Duration]) *Numbers {
	return &Numbers{p.Before.Seconds(), p.After.Seconds()}
}

// seconds formats a latency with four digits and its unit.
func seconds(v float64) string {
	for _, u := range []struct {
		least float64
		name  string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}} {
		if v >= u.least {
			return fmt.Sprintf("%.4g %s", v/u.least, u.name)
		}
	}
	return fmt.Sprintf("%.4g ns", v/1e-9)
}

func times(v float64) string { return fmt.Sprintf("%.3f x", v) }

func metric(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

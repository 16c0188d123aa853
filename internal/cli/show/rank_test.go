package show_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/internal/catalog"
	"scrimp/internal/cli/show"
	"scrimp/internal/golden"
	"scrimp/internal/rank"
)

// rankings are a feasible wish with levers, and one that nothing fulfils.
func rankings(t *testing.T) map[string]show.Ranking {
	q := rank.Question{
		Offers: offers(t).Listings, Work: 3600, Now: now, Deadline: 16 * time.Hour, Budget: catalog.Known(420), Promise: 0.95, Checkpoints: true, Start: 5 * time.Minute, Resume: 5 * time.Minute, Save: 30 * time.Second, Gap: 10 * time.Minute,
		Asks: catalog.Filter{Accelerator: "H100", Least: 8, Most: 8}, Variants: []rank.Variant{{}, {Name: "bf16", Lever: "mixed precision"}},
		Estimate: func(s rank.Shape, v int) (rank.Estimate, bool) {
			fits := true
			rate := float64(1+v) / 10
			return rank.Estimate{Rate: rank.Range{Low: rate / 1.2, Value: rate, High: rate * 1.2}, Fits: &fits, Source: "the time that the job states"}, s.Accelerator != ""
		},
	}
	v := func(q rank.Question) show.Ranking {
		return show.Ranking{Name: "bert", Work: "10h 00m, as the job states it", Assumed: []string{"5m 00s from a machine to the first step", "stated times hold to a factor of 1.2"}, Answer: rank.Rank(q)}
	}
	all := map[string]show.Ranking{"feasible": v(q)}
	lived := all["feasible"]
	lived.Played = &show.Played{Runs: 200, Done: 1, InTime: ptr(1.0), Cost: [3]float64{96.1, 96.8, 97.2}, Hours: []float64{10.01, 10.08, 10.12}}
	all["feasible"] = lived
	q.Deadline, q.Budget = 6*time.Hour+30*time.Minute, catalog.Known(300)
	all["infeasible"] = v(q)
	return all
}

func TestARankingIsPrintedAndDrawn(t *testing.T) {
	for name, v := range rankings(t) {
		for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "120": {Width: 120, Now: now}, "piped": {}} {
			text := v.Text(p)
			golden.Check(t, "rank-"+name+"."+width+".txt", text)
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); p.Width > 0 && n > p.Width {
					t.Errorf("%s at %s has a line of %d: %q", name, width, n, line)
				}
			}
		}
		golden.JSON(t, "json/rank-"+name+".json", v)
		d := xml.NewDecoder(strings.NewReader(v.SVG()))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

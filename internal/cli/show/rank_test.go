package show_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/decide/rank"
	"scrimp/internal/lib/figure"
	"scrimp/internal/market/catalog"
	"scrimp/internal/test/golden"
)

// rankings holds a feasible request with recommendations, and an infeasible one.
func rankings(t *testing.T) map[string]planning.Ranking {
	q := rank.Request{
		Offers: offers(t).Listings, Work: 3600, Now: now, Deadline: 16 * time.Hour, Budget: figure.Known(420), Promise: 0.95, Checkpoints: true, Start: 5 * time.Minute, Resume: 5 * time.Minute, Save: 30 * time.Second, Gap: 10 * time.Minute,
		Requirements: catalog.Filter{Accelerator: "H100", Least: 8, Most: 8}, Variants: []rank.Variant{{}, {Name: "bf16", Recommendation: "mixed precision"}},
		Estimate: func(s rank.Shape, v int) (rank.Estimate, bool) {
			fits := true
			rate := float64(1+v) / 10
			return rank.Estimate{Rate: rank.Range{Low: rate / 1.2, Value: rate, High: rate * 1.2}, Fits: &fits, Source: "the time that the job states"}, s.Accelerator != ""
		},
	}
	v := func(q rank.Request) planning.Ranking {
		return planning.Ranking{Here: []string{"slurm"}, Name: "bert", Work: "10h 00m, as the job states it", Assumed: []string{"5m 00s from a machine to the first step", "stated times hold to a factor of 1.2"}, Answer: rank.Rank(q)}
	}
	all := map[string]planning.Ranking{"feasible": v(q)}
	lived := all["feasible"]
	lived.Played = &planning.Played{Runs: 200, Done: 1, InTime: ptr(1.0), Cost: [3]float64{96.1, 96.8, 97.2}, Hours: []float64{10.01, 10.08, 10.12}}
	lived.Answer.Plans[0].Data, lived.Answer.Plans[0].Stored = 12.5, 0.034
	all["feasible"] = lived
	q.Deadline, q.Budget = 6*time.Hour+30*time.Minute, figure.Known(300)
	all["infeasible"] = v(q)
	q.Requirements = catalog.Filter{Accelerator: "H999", Least: 8, Most: 8}
	all["nowhere"] = v(q)
	return all
}

func TestRanking_MatchesGolden(t *testing.T) {
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
		svg := v.SVG()
		if len(v.Answer.Frontier) == 0 {
			if svg != "" {
				t.Errorf("%s: nothing is drawn as %s", name, svg)
			}
			continue
		}
		if !strings.Contains(svg, "<style>") { // a separate file gets no colours from a page
			t.Errorf("%s: %s", name, svg)
		}
		for _, f := range v.Answer.Frontier {
			if !strings.Contains(svg, ">"+string(f.Offer)) {
				t.Errorf("%s: %s is not named in the drawing", name, f.Offer)
			}
		}
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

func TestRanking_PrintedBudgetSuffices(t *testing.T) {
	v := rankings(t)["infeasible"]
	v.Answer.Nearest = []rank.Nearest{{Wish: "both", Cost: 12.3401, Hours: 1.5003}, {Wish: "deadline", Hours: 72.01}, {Wish: "budget", Cost: 12.34}, {Wish: "deadline", Hours: 0.5}}
	text := v.Text(show.Place{Width: 120, Now: now})
	for _, want := range []string{"a budget of $12.35 and a deadline in 1h 31m:", "a deadline in 3d 01h:", "a budget of $12.34:", "a deadline in 30m 00s:"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

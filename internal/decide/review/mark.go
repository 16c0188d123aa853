package review

import (
	"fmt"
	"math"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Mark says how mature a capability of FinOps is. client.ReviewMark describes the fields.
type Mark struct {
	Capability string         `json:"capability"`
	Currency   money.Currency `json:"currency,omitempty"`
	Mark       string         `json:"mark"`
	Share      *float64       `json:"share"`
	Evidence   string         `json:"evidence"`
	Rule       string         `json:"rule"`
}

// The marks of the FinOps Foundation's maturity model. Its goals are more than 80 % and 90 % of the spending allocated,
// and a forecast within 15 % and 12 % of the spending. The other limits are scrimp's own.
const (
	crawl = "crawl"
	walk  = "walk"
	run   = "run"
)

// atLeast marks a share that should be large.
func (m Mark) atLeast(share *float64, walks, runs float64) Mark {
	m.Share, m.Rule = share, fmt.Sprintf("walk above %.0f %%, run above %.0f %%", 100*walks, 100*runs)
	switch {
	case share == nil:
	case *share > runs:
		m.Mark = run
	case *share > walks:
		m.Mark = walk
	default:
		m.Mark = crawl
	}
	return m
}

// atMost marks a share that should be small.
func (m Mark) atMost(share *float64, walks, runs float64) Mark {
	m.Share, m.Rule = share, fmt.Sprintf("walk up to %.0f %%, run up to %.0f %%", 100*walks, 100*runs)
	switch {
	case share == nil:
	case *share <= runs:
		m.Mark = run
	case *share <= walks:
		m.Mark = walk
	default:
		m.Mark = crawl
	}
	return m
}

// Answers counts the incidents of a month, and those about which somebody has said what they were.
type Answers struct{ Incidents, Answered int }

// Marks marks what sums and answers show. Answers are nil if the incidents are unknown.
func Marks(sums []Sum, answers *Answers) []Mark {
	list := []Mark{}
	for i := range sums {
		list = append(list, sums[i].marks()...)
	}
	m := Mark{Capability: "anomaly management", Evidence: "the incidents are unknown"}
	var share *float64
	if answers != nil {
		m.Evidence = "no incident"
		if n := answers.Incidents; n > 0 {
			m.Evidence = fmt.Sprintf("%d of %s confirmed, dismissed or planned", answers.Answered, draw.Count(n, "incident"))
			share = new(float64(answers.Answered) / float64(n))
		}
	}
	return append(list, m.atLeast(share, 0.8, 0.9))
}

func (s *Sum) marks() []Mark {
	mark := func(capability, evidence string) Mark {
		return Mark{Capability: capability, Currency: s.Currency, Evidence: evidence}
	}
	of := func(a money.Amount) string {
		return fmt.Sprintf("%s of %s", money.Short(a, s.Currency), money.Short(s.Spent, s.Currency))
	}
	teams, waste := s.Spent.Sub(s.Teams[""]), s.Uses[ledger.Lost].Add(s.Uses[ledger.Idle])
	missed, text := s.missed()
	return []Mark{
		mark("allocation", of(teams)+" has a team").atLeast(ShareOf(teams, s.Spent), 0.8, 0.9),
		mark("budgeting", of(s.Budgeted)+" is under a limit per month").atLeast(ShareOf(s.Budgeted, s.Spent), 0.8, 0.9),
		mark("estimating", text).atMost(missed, 0.15, 0.12),
		mark("usage optimization", of(waste)+" was lost or idle").atMost(ShareOf(waste, s.Spent), 0.2, 0.1),
	}
}

// missed returns by which share the estimates were wrong in sum; nil without an estimate.
func (s *Sum) missed() (share *float64, text string) {
	if s.Estimated == nil || s.Estimated.Sign() <= 0 {
		return nil, "no job with an estimate has ended"
	}
	text = fmt.Sprintf("%s estimated, %s actual, of %s", money.Short(*s.Estimated, s.Currency),
		money.Short(*s.Actual, s.Currency), draw.Count(s.Foreseen, "job"))
	return new(math.Abs(*ShareOf(s.Actual.Sub(*s.Estimated), *s.Estimated))), text
}

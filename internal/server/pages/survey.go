package pages

import (
	"errors"
	"net/http"
	"slices"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

// surveyed is what the engines see in their accounts.
type surveyed struct {
	client.Survey
	Barred   bool // the reader does not see all teams
	Asked    int  // engines that list an account
	More     int  // resources beyond those shown
	Sums     []monthlySum
	Unpriced int
}

// monthlySum is what the resources of a currency with a known price cost in 30 days.
type monthlySum struct {
	Currency money.Currency
	Amount   money.Amount
}

// shownResources bounds the rows of the survey; the sums cover all of them.
const shownResources = 200

// surveyOf asks the engines, which may take a minute.
func surveyOf(v *visit) (*surveyed, error) {
	s := &surveyed{}
	err := v.get("/v1/waste/survey", &s.Survey)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusForbidden {
		s.Barred = true
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range s.Engines {
		if e.Lists && e.Error == "" {
			s.Asked++
		}
	}
	for i := range s.Resources {
		r := &s.Resources[i]
		if r.Monthly == nil {
			s.Unpriced++
			continue
		}
		at := slices.IndexFunc(s.Sums, func(m monthlySum) bool { return m.Currency == r.Currency })
		if at < 0 {
			at = len(s.Sums)
			s.Sums = append(s.Sums, monthlySum{Currency: r.Currency})
		}
		s.Sums[at].Amount = s.Sums[at].Amount.Add(*r.Monthly)
	}
	s.More = max(0, len(s.Resources)-shownResources)
	s.Resources = s.Resources[:len(s.Resources)-s.More]
	return s, nil
}

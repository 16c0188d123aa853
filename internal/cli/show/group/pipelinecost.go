package group

import (
	"fmt"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/calibration"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// PipelineCost holds the cost of each stage of a run. The lines add up to Cost, which equals the receipt's.
type PipelineCost struct {
	ID       string         `json:"id"`
	Currency money.Currency `json:"currency"`
	Stages   []StageCost    `json:"stages"`
	Cost     money.Amount   `json:"cost"`
	Saved    money.Amount   `json:"saved"` // by reused stages
	Largest  string         `json:"largest,omitempty"`
	Lower    string         `json:"lower,omitempty"` // what would lower the cost of the most expensive stage
	// Sample is what the stages on a part of the data have cost, which is a part of Cost; null: the run has no sample.
	Sample *money.Amount           `json:"sample,omitempty"`
	Counts calibration.StageCounts `json:"counts"`
}

// StageCost is a line of PipelineCost.
type StageCost struct {
	Stage         string        `json:"stage"`
	State         string        `json:"state"`
	Job           string        `json:"job,omitempty"`
	Seconds       *float64      `json:"seconds"`
	Cost          money.Amount  `json:"cost"`
	Share         *float64      `json:"share"` // of the total, 0 to 1; null if the total is zero
	Saved         *money.Amount `json:"saved,omitempty"`
	Interruptions int           `json:"interruptions,omitempty"`
	CostOpen      bool          `json:"cost_open,omitempty"` // Cost is not final
	// Part is the part of the data that the stage worked on, a decimal; "": all of it.
	Part string `json:"part,omitempty"`
	// Predicted is what the samples say of a stage on all of the data; null: they have not run, or their cost is open.
	Predicted *calibration.Predicted `json:"predicted,omitempty"`
}

// CostOf splits the cost of a run by stage, from its receipt. A member without a stage gets its own line.
func CostOf(r api.GroupReceipt) PipelineCost {
	v := PipelineCost{ID: r.Group.ID, Currency: r.Group.Currency, Cost: r.Cost}
	left := map[string]api.GroupMember{}
	for _, m := range r.Members {
		left[m.ID] = m
	}
	largest, at := money.Amount{}, -1
	for i, s := range r.Group.Pipeline.Stages {
		line := StageCost{Stage: s.Name, State: s.State, Job: s.Job, Saved: s.Saved, CostOpen: s.CostOpen,
			Part: s.Sample}
		m, there := left[s.Job]
		v.Counts.Add(s.State, there && m.Started != nil)
		if there && s.State != "reused" {
			delete(left, s.Job)
			line.Cost, line.Interruptions = m.Cost, m.Interruptions
			if m.Started != nil && m.Finished != nil {
				line.Seconds = new(m.Finished.Sub(*m.Started).Seconds())
			}
		}
		if v.Stages = append(v.Stages, line); line.Cost.Cmp(largest) > 0 {
			largest, at = line.Cost, i
		}
		if s.Saved != nil {
			v.Saved = v.Saved.Add(*s.Saved)
		}
	}
	for _, m := range r.Members {
		if _, other := left[m.ID]; other {
			v.Stages = append(v.Stages, StageCost{Stage: "(other)", State: m.State, Job: m.ID, Cost: m.Cost})
		}
	}
	for i := range v.Stages {
		if v.Cost.Sign() > 0 {
			v.Stages[i].Share = new(v.Stages[i].Cost.Float() / v.Cost.Float())
		}
	}
	v.calibrate(r.Group.Pipeline.Stages)
	if at >= 0 {
		s := r.Group.Pipeline.Stages[at]
		m := r.Members[slices.IndexFunc(r.Members, func(m api.GroupMember) bool { return m.ID == s.Job })]
		v.Largest, v.Lower = s.Name, lowers(s, m)
	}
	return v
}

// calibrate adds up what the samples cost, and adds what they predict. A sample that was reused predicts nothing.
func (v *PipelineCost) calibrate(stages []api.StageState) {
	runs, shares := calibration.Samples{}, calibration.SharesOf(stages)
	for i, s := range stages {
		line := &v.Stages[i]
		if s.Sample == "" { // the samples come first
			line.Predicted = runs.Of(s.Name)
			continue
		}
		if v.Sample == nil {
			v.Sample = new(money.Amount)
		}
		*v.Sample = v.Sample.Add(line.Cost)
		if s.State == "done" && line.Seconds != nil && !line.CostOpen {
			runs.Add(s.Of, shares[s.Name], *line.Seconds, line.Cost)
		}
	}
}

// lowers suggests how to lower the cost of a stage.
func lowers(s api.StageState, m api.GroupMember) string {
	whole := len(s.Inputs) == 1 && s.Inputs[0].Path == "."
	switch {
	case m.Attempts > 1+m.Interruptions:
		return fmt.Sprintf("it was tried %d times: scrimp logs %s says why", m.Attempts, m.ID)
	case m.Interruptions > 0:
		return fmt.Sprintf("it lost its machine %s: checkpoint.dir lets it go on where it was, and scrimp checkpoints %s "+
			"shows how often it saves", howOften(m.Interruptions), m.ID)
	case m.OnDemand != nil && m.OnDemand.Sign() > 0 && m.Cost.Cmp(*m.OnDemand) >= 0:
		return "it has cost no less than on-demand: resources.capacity: [spot] and checkpoint.dir let it run on spot"
	case whole:
		return "it reads the whole work folder: deps that name what it reads let it be reused when other files change"
	}
	return fmt.Sprintf("scrimp status %s shows what its machine was busy with, and scrimp explain %s what else was for "+
		"sale", m.ID, m.ID)
}

func howOften(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// row formats the stage as a row of the table.
func (s *StageCost) row(currency money.Currency) []string {
	took, share, saved, cost := "-", "-", "-", "-"
	if s.Seconds != nil {
		took = show.Seconds(*s.Seconds)
	}
	if s.Saved != nil {
		saved = money.Format(*s.Saved, currency, 6)
	}
	if s.Job != "" && s.State != "reused" && (!s.CostOpen || s.State == "running") { // else it is not billed yet
		if cost = money.Format(s.Cost, currency, 6); s.Share != nil {
			share = fmt.Sprintf("%.1f %%", 100**s.Share)
		}
	}
	return []string{show.Clean(s.Stage), show.Words(s.State), took, cost, share, saved, show.OrDash(show.Clean(s.Job))}
}

// Text formats the cost for people.
func (v PipelineCost) Text(p show.Place) string {
	var rows [][]string
	for i := range v.Stages {
		rows = append(rows, v.Stages[i].row(v.Currency))
	}
	var b strings.Builder
	b.WriteString(draw.Grid([]draw.Column{{Name: "STAGE", Key: true}, {Name: "STATE"},
		{Name: "TIME", Right: true, Leaves: 3}, {Name: "COST", Right: true}, {Name: "SHARE", Right: true, Leaves: 2},
		{Name: "SAVED", Right: true, Leaves: 1}, {Name: "JOB", Least: 8, Leaves: 4}}, rows, p.Columns()))
	fmt.Fprintf(&b, "\n%s\n", show.Clean(v.ID))
	p.Fact(&b, "stages", "%s", v.Counts.Text())
	p.Fact(&b, "cost", "%s, as in its receipt", money.Format(v.Cost, v.Currency, 6))
	if v.Sample != nil {
		p.Fact(&b, "of it", "%s for the sample", money.Format(*v.Sample, v.Currency, 6))
	}
	p.Fact(&b, "saved", "%s by stages that were not run again", money.Format(v.Saved, v.Currency, 6))
	if v.Largest != "" {
		p.Fact(&b, "largest", "%s: %s", v.Largest, v.Lower)
	}
	var lines []calibration.Line
	for i := range v.Stages {
		if s := &v.Stages[i]; s.Predicted != nil {
			l := calibration.Line{Stage: s.Stage, Predicted: *s.Predicted}
			if s.State == "done" && !s.CostOpen {
				l.Seconds, l.Cost = s.Seconds, &s.Cost
			}
			lines = append(lines, l)
		}
	}
	b.WriteString(calibration.Text(lines, v.Currency, p))
	return b.String()
}

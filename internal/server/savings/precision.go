package savings

import (
	"context"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/job/spec"
	"scrimp/internal/market"
	"scrimp/internal/work/recommend"
)

// mostEstimated bounds the jobs of a currency that are estimated for a recommendation, the costliest first.
const mostEstimated = 50

// full32 returns the share of its cost that 16 bits would save of each job whose file says that it computes in 32 bits.
func (d *Service) full32(ctx context.Context, costs []recommend.Cost) (map[string]float64, error) {
	jobs := costliest(costs, mostEstimated, func(*recommend.Cost) bool { return true })
	machines := map[string]*core.Attempt{}
	err := d.Books.EachJob(ctx, jobs, func(j *core.Job) { machines[j.ID()] = j.Attempt() })
	if err != nil {
		return nil, err
	}
	e, shares := estimate.New(hardware.Catalogued(), nil, nil), map[string]float64{}
	for _, job := range jobs {
		text, known, err := d.Control.Spec(ctx, job)
		if err != nil {
			return nil, err
		}
		j, _, err := spec.ParseJSON(spec.Read, text, "", d.now())
		if a := machines[job]; known && err == nil && a != nil { // a file of an older release may be unreadable
			shares[job] = in16(e, j, d.acceleratorOf(a), float64(a.GPUs()))
		}
	}
	return shares, nil
}

// acceleratorOf returns the accelerator of an attempt's machines; "" if its offer is gone.
func (d *Service) acceleratorOf(a *core.Attempt) (name string) {
	d.Control.ReadUncommitted(func(m *core.Machine) {
		if l := m.State().Listing(market.OfferID(a.Offer())); l != nil {
			name = l.Offer().Accelerator
		}
	})
	return name
}

// in16 returns the share of its time that a job would save in bf16 on count accelerators, by the estimate of
// docs/formulas.md; 0 if it does not compute in 32 bits, or nothing is known.
func in16(e *estimate.Estimator, j spec.Job, accelerator string, count float64) float64 {
	if j.Model.Precision != "fp32" && j.Model.Precision != "tf32" || accelerator == "" || count < 1 {
		return 0
	}
	m, known := runhistory.Shape(j.Name, j.Model)
	if !known {
		return 0
	}
	q := runhistory.Request(j, m)
	q.Chip, q.Count = accelerator, count
	now, err := e.Answer(q)
	if err != nil || now.Throughput == nil {
		return 0
	}
	q.Precision, q.Micro = "bf16", now.Micro
	then, err := e.Answer(q)
	if err != nil || then.Throughput == nil || then.Throughput.Value <= now.Throughput.Value {
		return 0
	}
	return 1 - now.Throughput.Value/then.Throughput.Value
}

package admission

// broken applies injected faults to v.
func (ad *Admission) broken(v Verdict) Verdict {
	if v.No != nil && ad.Faults.LetsIn != nil && ad.Faults.LetsIn(v.No) {
		v.No = nil
	}
	if ad.Faults.Unasked {
		v.Asking = nil
	}
	return v
}

package admission

// broken is v as the injected faults have it.
func (ad *Admission) broken(v Verdict) Verdict {
	if v.No != nil && ad.Faults.LetsIn != nil && ad.Faults.LetsIn(v.No) {
		v.No = nil
	}
	if ad.Faults.Unasked {
		v.Asking = nil
	}
	return v
}

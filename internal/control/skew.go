package control

import (
	"slices"
	"time"

	"scrimp/internal/wire/api"
)

// leastSkew is what a machine's clock may be off and be left as it is: a report that
// was on its way for so long looks the same.
const leastSkew = 10 * time.Second

// ours is the message with its times by this server's clock, where that of the
// machine which sent it at sent, by its own, is off. Else a machine that is two hours
// behind would save nothing: each checkpoint would be older than the program. When a
// notice ends is the provider's word, and stays. Spans on the machine need nothing.
func ours(m api.Message, sent, heard time.Time) api.Message {
	off := heard.Round(0).Sub(sent)
	if sent.IsZero() || off.Abs() < leastSkew {
		return m
	}
	m.At = m.At.Add(off)
	if m.Step != nil && len(m.Step.Values) > 0 {
		step := *m.Step
		step.Values = slices.Clone(step.Values)
		for i := range step.Values {
			step.Values[i].At = step.Values[i].At.Add(off)
		}
		m.Step = &step
	}
	if m.Saved != nil {
		saved := *m.Saved
		saved.Captured = saved.Captured.Add(off)
		m.Saved = &saved
	}
	return m
}

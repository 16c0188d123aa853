package inbox

import (
	"slices"
	"time"

	"scrimp/internal/wire/api"
)

// minSkew is the clock error that is ignored: a report that was on its way for as long looks the same.
const minSkew = 10 * time.Second

// ours converts the message's times to this server's clock if the clock of the sending machine, which read sent, is
// off. Otherwise a machine two hours behind would save nothing, because each checkpoint would be older than the
// program. The end of a notice is the provider's time and stays. Durations on the machine need no conversion.
func ours(m api.Message, sent, heard time.Time) api.Message {
	off := heard.Round(0).Sub(sent)
	if sent.IsZero() || off.Abs() < minSkew {
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

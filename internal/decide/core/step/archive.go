package step

import (
	"strings"
	"time"

	"scrimp/internal/decide/state"
)

// rehydratedFor is how much longer a job stays that was brought back: what it was brought back for is still to come.
const rehydratedFor = time.Second

// ArchiveAt is when a job that is over is archived: some time after its end and that of its
// last machine, a longer one where a bill may come. ok is false where it stays.
func (c *Context) ArchiveAt(j *state.Job) (t time.Time, ok bool) {
	after := c.Config().ArchiveAfter
	if after <= 0 || !j.State().Over() || j.Costs() {
		return t, false
	}
	last := Later(j.Finished(), TimesOf(j).Back.Add(rehydratedFor))
	for _, a := range j.Attempts() {
		last = Later(last, a.Until())
		if a.Instance() != "" && !a.Billed() && !a.Machine().Prepaid {
			after = max(after, c.Config().ArchiveUnbilled)
		}
	}
	return last.Add(after), true
}

// Closes schedules the archiving of a job that is over.
func (c *Context) Closes(j *state.Job) {
	t, ok := c.ArchiveAt(j)
	if p := TimesOf(j); !ok {
		p.Archive = time.Time{}
	} else if !p.Archive.Equal(t) {
		p.Archive = t
		c.Archive.Push(Wake{t, j})
	}
}

// OfLaunch is the job whose launch or attempt has that name; "": none can.
func OfLaunch(name string) string {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		return name[:dot]
	}
	return ""
}

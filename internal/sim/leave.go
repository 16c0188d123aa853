package sim

import (
	"crypto/sha256"
	"fmt"
	"time"

	"scrimp/internal/decide/core"
)

func (a *agent) complete() {
	if a.dead || a.over {
		return
	}
	a.over = true
	a.save(a.job.steps, func() {
		a.end("completed", 0, a.job.steps, a.job.terms.Saves)
		a.completes()
	})
}

// drain saves, ends the program and reports it.
func (a *agent) drain(reason string) {
	if a.dead || a.over {
		return
	}
	step := a.step()
	a.left = step
	switch {
	case a.began.IsZero() || a.node > 0:
		a.over = true
		a.end(reason, 143, 0, false)
	case a.job.deaf || a.w.fault == FaultDeafProgram:
		a.w.after(a.job.terms.Grace, func() {
			if !a.dead && !a.over {
				a.over = true
				a.end(reason, 137, a.step(), false)
			}
		})
	default:
		a.over = true
		a.save(step, func() { a.end(reason, 143, step, a.job.terms.Saves) })
	}
}

// notice warns the agent that its machine will be interrupted in d.
func (a *agent) notice(d time.Duration) {
	if a.dead || d == 0 {
		return
	}
	a.w.saw("notice")
	a.want, a.noticed = a.step(), !a.over && !a.began.IsZero()
	if a.w.fault == FaultDeaf {
		return
	}
	until := a.w.now.Add(d)
	a.say(func(n int64) core.Body {
		return core.NoticeGiven{Attempt: a.attempt, Node: a.node, Message: n, Source: "sim", Until: until}
	})
	a.drain("drained")
}

// digestOf stands for the digest of the outputs at a path.
func digestOf(outputs string) string {
	if outputs == "" {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(outputs)))
}

package attempt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"scrimp/internal/agent/interactive"
	"scrimp/internal/agent/keeper"
	"scrimp/internal/agent/program"
	"scrimp/internal/agent/save"
	"scrimp/internal/agent/stop"
	"scrimp/internal/agent/wire"
	"scrimp/internal/wire/api"
)

// How long the agent tries to upload to the store.
const (
	keepLimit = 15 * time.Minute // without an interruption
	keepExtra = time.Minute      // after the time of the interruption
)

// keep uploads what the ended program left, and returns how the program ended.
func (g *Attempt) keep(life context.Context, e save.Ending, s *stop.Request, exit program.Exit) outcome {
	ctx, cancel := context.WithTimeout(life, keepTime(g.Now(), s))
	defer cancel()
	var listening sync.WaitGroup
	var broken *stop.Request // the stop that interrupts keep
	listening.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case x := <-g.stops:
				g.announceStop(x)
				if x.Silent() {
					broken = &x
					cancel()
					return
				}
			}
		}
	})
	e.Status, e.Signaled = exit.Status, exit.Signaled
	step, metrics := g.seen()
	o := outcome{ended: g.endOf(e, s, exit), stop: s, over: e.Ended}
	o.ended.Step = step

	kept, err := g.saver.Final(ctx, e, save.Meta{Step: step, Captured: e.Ended, Metrics: metrics})
	err = errors.Join(err, g.saver.Flush(ctx))
	o.ended.Saved = kept && err == nil && g.saver.Holds() &&
		(o.ended.Reason == api.EndCompleted || g.saver.HasWork(step, e))
	if err != nil {
		g.Log.Error("keep the last checkpoint", "error", err)
		o.ended.Error = fmt.Sprintf("the last checkpoint could not be kept: %v", err)
	}
	if !errors.Is(err, wire.ErrFenced) {
		kept, wrong := g.keepOutputs(ctx)
		o.ended.Outputs, o.ended.OutputsDigest = kept.At, kept.Digest
		o.ended.Error = joinText(o.ended.Error, wrong)
	}
	cancel()
	listening.Wait()
	switch {
	case broken != nil:
		return outcome{stop: broken, silent: true}
	case errors.Is(err, wire.ErrFenced):
		s := g.fencedStop(err)
		return outcome{stop: &s, silent: true}
	}
	return o
}

// keepOutputs keeps the outputs of the job on this machine, and describes what failed.
func (g *Attempt) keepOutputs(ctx context.Context) (kept keeper.Outputs, wrong string) {
	if len(g.Task.Outputs) == 0 || g.Task.OutputsURL == "" {
		return kept, ""
	}
	names, wrong, err := g.OutputNames()
	if err != nil {
		g.Log.Error("keep outputs", "error", err)
		return kept, fmt.Sprintf("outputs could not be kept: %v", err)
	}
	if len(names) == 0 {
		return kept, wrong
	}
	kept, err = g.keeper.Keep(ctx, g.Reading(g.Folders.Work), names)
	if err != nil && !errors.Is(err, wire.ErrFenced) {
		g.Log.Error("keep outputs", "error", err)
		wrong = joinText(wrong, fmt.Sprintf("outputs could not be kept: %v", err))
	}
	if lacks := kept.Left; len(lacks) > 0 {
		g.Log.Warn("some outputs cannot be kept", "what", lacks.String())
		wrong = joinText(wrong, "outputs that are not kept: "+lacks.String())
	}
	return kept, wrong
}

func joinText(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// keepTime returns how long to try.
func keepTime(now time.Time, s *stop.Request) time.Duration {
	if s == nil || s.Source == "" {
		return keepLimit
	}
	return max(0, s.Until.Sub(now)) + keepExtra
}

// endOf returns the reason for the end. A program that was signalled or that read should_stop
// counts as drained, whatever its status. In a gang it may have learned of the stop from another
// rank's program. A program that died of SIGTERM may have received it from the process that
// signalled the agent.
func (g *Attempt) endOf(e save.Ending, s *stop.Request, exit program.Exit) api.Ended {
	g.mu.Lock()
	knew := g.knew
	g.mu.Unlock()
	switch {
	case s != nil && (!e.Asked.IsZero() || e.Killed || knew || g.Task.Nodes > 1 && exit.Status != 0 || stop.ByTerm(exit)):
		return api.Ended{Reason: api.EndDrained, Exit: exit.Status}
	case exit.Status == 0, g.Task.Session == interactive.Shell && !exit.Signaled: // a shell exits with any status
		return api.Ended{Reason: api.EndCompleted}
	}
	return api.Ended{Reason: api.EndFailed, Exit: exit.Status}
}

package outbox

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/tries"
)

// askedFolder records the approvals that webhooks were asked for.
const askedFolder = "asked"

// askApproval calls the webhooks of the limits that a job waits for approval of, and records that. If the server
// stops before, the next one calls them at its start.
func (o *Outbox) askApproval(ctx context.Context, n core.Notify) {
	var j core.Job
	var rules budget.Rules
	o.Control.Read(func(m *core.Machine) {
		if job, ok := m.Job(n.Job); ok {
			j = *job
		}
		rules, _ = m.Rules()
	})
	if j.State() != core.Held { // it was reviewed first
		return
	}
	told := map[string]bool{}
	for _, t := range j.Approval().Limits {
		i := slices.IndexFunc(rules.Limits, func(l budget.Limit) bool { return l.Name() == t.Limit })
		if i < 0 || rules.Limits[i].Notify == "" || told[rules.Limits[i].Notify] {
			continue
		}
		target := rules.Limits[i].Notify
		told[target] = true
		_, err := o.Hooks.Deliver(ctx, target, j.User(), n.Job, n.Key(), message(target, word{ID: n.Key(), Job: n.Job,
			State: string(n.State), Why: n.Why, Approval: &asked{Budget: t.Limit,
				Detail: j.Approval().String(), By: j.User(), Team: j.Terms().Owner.Team,
				Until: o.Control.Clock().ToWall(j.Approval().Until), Fix: "scrimp approve " + n.Job}}), tries.Progress{})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			o.Log.Warn("cannot request an approval from the webhook of a budget", "limit", t.Limit, "job", n.Job,
				"error", err)
		}
	}
	if len(told) == 0 {
		return
	}
	if err := os.WriteFile(filepath.Join(o.Dir, askedFolder, n.Job), nil, 0o600); err != nil {
		o.Log.Warn("cannot record the request for an approval; it will be repeated", "job", n.Job, "error", err)
	}
}

package budgets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/fair"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/webhook"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/api"
)

// Keys of the metadata beside the log.
const (
	budgetsMeta = "budgets" // rules of old releases, which had no event for them
	warnedMeta  = "budgets_warned"
)

// Settled makes sure that the core holds the rules in force. It imports once, with what their limits have spent, the
// rules that an old release kept beside the log.
func (d *Service) Settled(ctx context.Context) *reply.Refusal {
	if d.ruled.Load() {
		return nil
	}
	d.setting.Lock()
	defer d.setting.Unlock()
	if err := d.settle(ctx); err != nil {
		return &reply.Refusal{Status: http.StatusServiceUnavailable, Title: "cannot read the budgets",
			Fix: "ask again with the same key", Err: err}
	}
	return nil
}

// settle is Settled for a caller who holds d.setting.
func (d *Service) settle(ctx context.Context) error {
	if d.ruled.Load() {
		return nil
	}
	var v budget.Rules
	set, partial := false, false
	d.Control.ReadUncommitted(func(m *core.Machine) {
		v, set = m.Rules()
		partial = m.PartlySpent()
	})
	if !set {
		text, ok, err := d.Meta.Meta(ctx, budgetsMeta)
		if err != nil {
			return err
		}
		if partial = ok; ok {
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return fmt.Errorf("read the budgets: %w", err)
			}
		}
	}
	if partial {
		if err := d.setRules(ctx, v, func(e core.Event) error {
			e.Actor = "server"
			return d.Control.Propose(ctx, e)
		}); err != nil {
			return err
		}
	}
	d.ruled.Store(true)
	return nil
}

// setRules passes rules to tell, with what their limits have spent so far. It retries if that is outdated by then.
func (d *Service) setRules(ctx context.Context, v budget.Rules, tell func(core.Event) error) (err error) {
	for range 10 {
		b := core.BudgetsSet{Rules: v}
		if b.Base, b.AsOf, err = d.Spent(ctx, v.Limits); err != nil {
			return err
		}
		err = tell(core.Event{At: d.Control.Now(), Schema: core.Schema, Tenant: d.Control.Tenant(), Body: b})
		if !errors.Is(err, core.ErrStale) {
			return err
		}
	}
	return err
}

// rulesNow returns the rules in force.
func (d *Service) rulesNow() (v budget.Rules) {
	d.Control.ReadUncommitted(func(m *core.Machine) { v, _ = m.Rules() })
	return v
}

// booked returns the spent and held amounts as of now. They may depend on events up to seq that are not durable yet;
// a caller waits for those before it shows the amounts.
func (d *Service) booked() (b budget.Accounts, burn map[string]money.Rate, seq uint64) {
	d.Control.ReadUncommitted(func(m *core.Machine) {
		now := d.Control.Now()
		if m.Now().After(now) {
			now = m.Now()
		}
		b, burn = m.Books(now)
		seq = m.Seq()
	})
	return b, burn, seq
}

// durable waits until the event is durable.
func (d *Service) durable(seq uint64) {
	d.Control.ReadUpTo(func(*core.Machine) uint64 { return seq })
}

// maySee reports whether the caller may see the limit: that of a team it sees, its own, or any if it sees all teams.
func maySee(c identity.Caller, scope budget.Scope) bool {
	kind, name, _ := strings.Cut(string(scope), ":")
	return c.Role(identity.Everywhere) >= identity.Viewer || kind == "team" && c.Role(name) >= identity.Viewer ||
		kind == "user" && name == c.User
}

// Show lists the limits that the caller sees, with their spent and held amounts.
func (d *Service) Show(w http.ResponseWriter, r *http.Request) {
	v := api.Budgets{Limits: []api.BudgetLine{}, Tags: budget.Tags{}, Shares: []string{}, Currency: money.USD}
	set, b, burn, err := d.accountsNow(r.Context())
	if err != nil {
		reply.Problem(w, http.StatusInternalServerError, "cannot read the budgets", "try again", err)
		return
	}
	if set.Tags != nil {
		v.Tags = set.Tags
	}
	for _, team := range set.Shares {
		if maySee(auth.CallerOf(r), budget.Scope("team:"+team)) {
			v.Shares = append(v.Shares, team)
		}
	}
	outlooks, now := map[string]budget.Outlook{}, d.Control.Now()
	if len(b.Limits) > 0 {
		outlooks, now = d.outlooks(b)
	}
	all := auth.Rules(auth.CallerOf(r))
	for _, l := range set.Limits {
		if !maySee(auth.CallerOf(r), l.Scope) {
			continue
		}
		use := b.Use(l)
		line := api.BudgetLine{Limit: convert.To[client.Limit](l), Use: convert.To[client.LimitUse](use),
			Burn: burn[l.Name()]}
		if at, ok := l.Breach(use, line.Burn, now); ok {
			line.AtRate = &at
		}
		if o, ok := outlooks[l.Name()]; ok {
			line.Outlook, line.Breach = convert.To[*client.Outlook](&o), o.Breach
		}
		if line.Limit.Notify != "" && !all {
			line.Limit.Notify = webhook.Host(line.Limit.Notify) // the full address may contain a secret
		}
		v.Limits = append(v.Limits, line)
	}
	names := d.Gate.People.Names()
	slices.SortStableFunc(v.Limits, func(x, y api.BudgetLine) int {
		return strings.Compare(names.Of(x.Limit.Name()), names.Of(y.Limit.Name()))
	})
	reply.JSON(w, v)
}

// checkScope returns why no job can be in the scope, since a misspelt name would guard nothing. Without any teams, job
// files may use any name of a team.
func (d *Service) checkScope(scope budget.Scope) (wrong, fix string) {
	var users []identity.User
	var teams []identity.Team
	d.Gate.People.Read(func(b *identity.Book) { users, teams = b.Users(), b.Teams() })
	kind, name, _ := strings.Cut(string(scope), ":")
	switch kind {
	case "team":
		if len(teams) > 0 && !slices.ContainsFunc(teams, func(t identity.Team) bool { return t.Name == name }) {
			return fmt.Sprintf("team %q is not known", name), "scrimp teams lists them, scrimp teams set makes one"
		}
	case "project":
		if len(teams) > 0 && !slices.ContainsFunc(teams,
			func(t identity.Team) bool { return len(t.Projects) == 0 || slices.Contains(t.Projects, name) }) {
			return fmt.Sprintf("no team has a project %q", name), "scrimp teams lists them"
		}
	case "user":
		if name != auth.OwnerName &&
			!slices.ContainsFunc(users, func(u identity.User) bool { return u.Name == name }) {
			return fmt.Sprintf("user %q is not known", name), "scrimp users lists them, scrimp users set makes one"
		}
	}
	return "", ""
}

// weighedJobs bounds the waiting jobs in an outlook to the most urgent ones. For a longer queue, nobody would trust
// the forecast of the rest.
const weighedJobs = 500

// outlooks forecasts the limits by name, and returns the time at which the forecast starts.
func (d *Service) outlooks(b budget.Accounts) (map[string]budget.Outlook, time.Time) {
	uses := map[string]budget.Use{}
	for _, l := range b.Limits {
		uses[l.Name()] = b.Use(l)
	}
	var courses []budget.Course
	var now time.Time
	places, beyond := 0, false
	d.Control.Read(func(m *core.Machine) {
		if now = d.Control.Now(); m.Now().After(now) {
			now = m.Now()
		}
		courses, places, beyond = m.Courses(now, weighedJobs)
	})
	return budget.Foresee(b.Limits, uses, courses, places, beyond, now), now
}

// Put creates, changes or removes the limit of a scope and window, or sets the values that a tag may have.
func (d *Service) Put(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.SetBudget](w, r)
	if !ok {
		return
	}
	d.setting.Lock()
	defer d.setting.Unlock()
	v, object, ok := d.changed(w, r, b)
	if !ok {
		return
	}
	d.tell(w, r, v, object)
}

// changed returns the rules with the change, and the object of the change for the audit trail. If the change is wrong,
// it answers the request. The caller holds d.setting.
func (d *Service) changed(w http.ResponseWriter, r *http.Request, b api.SetBudget) (v budget.Rules,
	object string, ok bool) {
	if err := d.settle(r.Context()); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "cannot read the budgets", "try again", err)
		return v, "", false
	}
	old := d.rulesNow()
	v = budget.Rules{Limits: slices.Clone(old.Limits), Tags: budget.Tags{}, Shares: slices.Clone(old.Shares),
		Fair: fair.Clone(old.Fair)}
	for k, values := range old.Tags {
		v.Tags[k] = values
	}
	switch {
	case b.Limit != nil:
		limit := convert.To[budget.Limit](*b.Limit)
		limit.Scope = budget.Scope(d.Gate.People.Scope(string(limit.Scope)))
		if err := limit.Check(); err != nil {
			reply.FieldProblem(w, http.StatusUnprocessableEntity, "limit", "the limit is not valid",
				"scrimp budgets set --help says more", err)
			return v, "", false
		}
		if d.Hooks.Refuses(limit.Notify) {
			reply.FieldProblem(w, http.StatusUnprocessableEntity, "limit.notify",
				"the webhook leads inside the server's network",
				webhook.InsideFix, nil)
			return v, "", false
		}
		if wrong, fix := d.checkScope(limit.Scope); wrong != "" {
			reply.FieldProblem(w, http.StatusUnprocessableEntity, "limit.scope", wrong, fix, nil)
			return v, "", false
		}
		object = limit.Name()
		v.Limits = slices.DeleteFunc(v.Limits, func(l budget.Limit) bool { return l.Name() == object })
		v.Limits = append(v.Limits, limit)
		slices.SortFunc(v.Limits, func(x, y budget.Limit) int { return strings.Compare(x.Name(), y.Name()) })
		if wrong := wrongShare(fair.Check(v.Fair, v.Limits)); wrong != nil {
			reply.FieldProblem(w, http.StatusUnprocessableEntity, "limit.dollars", wrong.Cause,
				"raise the dollars, or lower a guarantee with scrimp queue set", nil)
			return v, "", false
		}
	case b.Remove != "":
		object = d.Gate.People.Scope(b.Remove)
		n := len(v.Limits)
		if v.Limits = slices.DeleteFunc(v.Limits,
			func(l budget.Limit) bool { return l.Name() == object }); len(v.Limits) == n {
			reply.Problem(w, http.StatusNotFound, "there is no budget "+b.Remove, "scrimp budgets lists them", nil)
			return v, "", false
		}
	case b.Tag != "":
		object = "tag " + b.Tag
		if delete(v.Tags, b.Tag); !b.Free {
			v.Tags[b.Tag] = reply.List(b.Values)
		}
	case b.Share != "":
		object = "machines of " + b.Share
		if wrong, fix := d.checkScope(budget.Scope("team:" + b.Share)); wrong != "" {
			reply.FieldProblem(w, http.StatusUnprocessableEntity, "share", wrong, fix, nil)
			return v, "", false
		}
		v.Shares = slices.DeleteFunc(v.Shares, func(team string) bool { return team == b.Share })
		if !b.Off {
			v.Shares = append(v.Shares, b.Share)
			slices.Sort(v.Shares)
		}
	default:
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "limit", "the change is empty",
			"send a limit, remove, a tag or share", nil)
		return v, "", false
	}
	return v, object, true
}

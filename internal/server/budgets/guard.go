package budgets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/webhook"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/api"
)

// Guard checks the limits every few seconds and sends warnings. The core enforces the limits.
func (d *Service) Guard(ctx context.Context) {
	t := time.NewTicker(2 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := d.Poll(ctx); err != nil && ctx.Err() == nil {
			d.Log.Error("cannot check the budgets", "error", err)
		}
	}
}

// accountsNow returns the rules and accounts at one durable moment.
func (d *Service) accountsNow(ctx context.Context) (rules budget.Rules, b budget.Accounts, burn map[string]money.Rate,
	err error) {
	if no := d.Settled(ctx); no != nil {
		return rules, b, burn, no.Err
	}
	if rules = d.rulesNow(); len(rules.Limits) > 0 {
		var seq uint64
		b, burn, seq = d.booked()
		d.durable(seq)
	}
	return rules, b, burn, nil
}

// Poll checks the limits once. Submissions do not wait while it calls a webhook.
func (d *Service) Poll(ctx context.Context) error {
	_, b, _, err := d.accountsNow(ctx)
	if err != nil || len(b.Limits) == 0 {
		return err
	}
	v := warnings{d: d, b: b, now: d.Control.Now(), told: map[string]bool{}, still: map[string]bool{}}
	if text, ok, err := d.Meta.Meta(ctx, warnedMeta); err != nil {
		return err
	} else if ok && json.Unmarshal([]byte(text), &v.told) != nil {
		return errors.New("read the warnings of budgets")
	}
	for _, l := range b.Limits {
		v.shares(ctx, l)
		v.breach(ctx, l)
	}
	// drop the warnings of closed windows
	maps.DeleteFunc(d.owed, func(key string, _ owed) bool { _, due := v.still[key]; return !due })
	if !v.changed {
		return nil
	}
	text, err := json.Marshal(v.still)
	if err != nil {
		return err
	}
	return d.Meta.PutMeta(ctx, warnedMeta, string(text))
}

// warnings holds the state of one check.
type warnings struct {
	d        *Service
	b        budget.Accounts
	now      time.Time
	told     map[string]bool // sent before
	still    map[string]bool // still in force
	changed  bool
	outlooks map[string]budget.Outlook // nil: not computed yet
}

// key identifies a warning in the current window of its limit.
func (v *warnings) key(l budget.Limit, of string) string {
	return fmt.Sprintf("%s@%s %s", l.Name(), of, l.Window.Begin(v.now).Format(time.RFC3339))
}

// shares warns about the spent shares of a limit. At 100 % the core stops its jobs.
func (v *warnings) shares(ctx context.Context, l budget.Limit) {
	u := v.b.Use(l)
	for _, share := range l.Passed(u) {
		key := v.key(l, fmt.Sprintf("%g", share))
		v.still[key] = v.told[key] || v.d.warn(ctx, key, l, u, api.BudgetWarning{Share: share})
		v.changed = v.changed || v.still[key] && !v.told[key]
	}
}

// breach warns once per window that the forecast exceeds a limit.
func (v *warnings) breach(ctx context.Context, l budget.Limit) {
	u := v.b.Use(l)
	if l.Dollars == nil || l.Notify == "" || u.Spent.Cmp(*l.Dollars) >= 0 {
		return
	}
	key := v.key(l, "breach")
	if v.told[key] {
		v.still[key] = true
		return
	}
	if v.outlooks == nil {
		v.outlooks, _ = v.d.outlooks(v.b)
	}
	if o := v.outlooks[l.Name()]; o.Breach != nil {
		share := u.Spent.Float() / l.Dollars.Float()
		warning := api.BudgetWarning{Share: share, Breach: o.Breach, Chance: o.Chance,
			Jobs: convert.To[[]client.Spender](o.Jobs)}
		v.still[key] = v.d.warn(ctx, key, l, u, warning)
		v.changed = v.changed || v.still[key]
	}
}

// owed is a warning that its webhook has not accepted.
type owed struct {
	next time.Time // wall
	wait time.Duration
}

// warn tells the limit's webhook that a share of it is spent, or that the forecast exceeds it. If that fails, it
// returns false, and later calls retry after growing waits. The log has the warning once.
func (d *Service) warn(ctx context.Context, key string, l budget.Limit, u budget.Use, w api.BudgetWarning) bool {
	now, before := time.Now(), d.owed[key]
	switch {
	case before.wait == 0:
		d.Log.Warn("budget", "limit", l.Name(), "share", w.Share, "foreseen", w.Breach != nil, "spent", u.Spent.String(),
			"of", l.Dollars.String())
	case now.Before(before.next):
		return false
	}
	if l.Notify == "" {
		return true
	}
	w.Budget, w.Spent, w.Held, w.Dollars = l.Name(), u.Spent, u.Held, *l.Dollars
	body, err := json.Marshal(w)
	if err != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	asked, err := d.Hooks.Post(ctx, l.Notify, "", body)
	if err == nil || errors.Is(err, webhook.ErrRefused) {
		delete(d.owed, key)
		if err != nil {
			d.Log.Warn("cannot call the webhook of a budget", "limit", l.Name(), "host", webhook.Host(l.Notify), "error", err)
		}
		return true
	}
	wait := min(max(2*before.wait, webhook.Rule.First, asked), webhook.Rule.Longest)
	if d.owed == nil {
		d.owed = map[string]owed{}
	}
	d.owed[key] = owed{now.Add(wait), wait}
	d.Log.Warn("cannot reach the webhook of a budget yet", "limit", l.Name(), "host", webhook.Host(l.Notify),
		"again_in", wait, "error", err)
	return false
}

// Package review holds the command that reviews the spending of a month on one page.
package review

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/decide/measured"
	"scrimp/internal/lib/money"
	"scrimp/internal/view/convert"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	var text string
	cmd := &cobra.Command{Use: "review", Short: "Review the spending of a month on one page", Args: command.Takes(),
		GroupID: command.GroupMoney,
		Long: "Writes a page for a monthly meeting: spending against budgets and the forecast of the month's end, " +
			"estimates against what came out, the ten dearest jobs, anomalies, proposals and what they gave, what the " +
			"recommendations that you follow have saved, lost and idle time, how much of the spending has a " +
			"team, a project and the other tags, and at most three next actions, by the dollars that they are about." +
			"\n\nSpending is that of the ledger, and of machines that run up to now; fees are in scrimp chargeback. The " +
			"figures are those of the teams that you may see. Currencies are never added up. What is unknown is \"-\", and " +
			"null with --json. Anomalies are known for 90 days." + command.PlainExit,
		Example: "  scrimp review\n  scrimp review --month 2026-10 --json",
		PreRunE: func(*cobra.Command, []string) error { return checkMonth(text) },
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			v, err := fetch(ctx, c, text)
			if err != nil {
				return c.Said(ctx, err)
			}
			return a.Show(v, v.text(a.Place()))
		})}
	cmd.Flags().StringVar(&text, "month", "", "`month` in UTC, such as 2026-10 (default: this month)")
	return []*cobra.Command{cmd}
}

// checkMonth refuses the value of --month that is no month. The server refuses months that have not begun.
func checkMonth(text string) error {
	if _, err := time.Parse("2006-01", text); text != "" && err != nil {
		return fmt.Errorf("--month %.40q is not a month: write YYYY-MM, such as 2026-10", text)
	}
	return nil
}

// anomaliesMost is how far back the server finds anomalies.
const anomaliesMost = 90 * 24 * time.Hour

// fetch reads everything that the page has from the server.
func fetch(ctx context.Context, c *command.Client, text string) (*Review, error) {
	statements, err := c.Chargeback(ctx, text, "proportional", nil) // refuses what is no month
	if err != nil {
		return nil, err
	}
	r := &Review{Month: statements.Month, Since: statements.Since, Until: statements.Until, Over: statements.Over,
		Whole: statements.Whole, Sums: []*Sum{}}
	limits, err := c.Budgets(ctx)
	if err != nil {
		return nil, err
	}
	m := &month{tags: slices.Clone(tags), sums: map[money.Currency]*Sum{}}
	for _, tag := range slices.Sorted(maps.Keys(limits.Tags)) {
		if !slices.Contains(m.tags, tag) {
			m.tags = append(m.tags, tag)
		}
	}
	for _, l := range limits.Limits {
		m.scopes = append(m.scopes, l.Limit.Scope)
	}
	now, err := r.estimates(ctx, c, m)
	if err != nil {
		return nil, err
	}
	if err := r.costs(ctx, c, m); err != nil {
		return nil, err
	}
	r.Sums = m.finish()
	var past []api.Run
	if err := c.Do(ctx, http.MethodGet, "/v1/measured?expected=1&limit=1000", nil, &past); err != nil {
		return nil, err
	}
	r.accuracy(convert.To[[]measured.Run](past))
	r.lost(statements)
	r.budgets(limits)
	if back := now.Sub(r.Since); back <= anomaliesMost && back > 0 {
		all, err := c.Anomalies(ctx, "", spanOf(back))
		if err != nil {
			return nil, err
		}
		r.anomalies(all.Anomalies)
	}
	proposals, err := c.Proposals(ctx, "", "")
	if err != nil {
		return nil, err
	}
	r.proposals(proposals.Proposals)
	taken, err := c.TakenRecommendations(ctx, "")
	if err != nil {
		return nil, err
	}
	r.taken(taken)
	waste, err := c.Waste(ctx, "", "30d")
	if err != nil {
		return nil, err
	}
	r.actions(waste, limits.Currency)
	return r, nil
}

// costs reads the rows of the month. Without costs there is no file.
func (r *Review) costs(ctx context.Context, c *command.Client, m *month) error {
	of, err := c.Open(ctx, http.MethodGet, "/v1/export/focus?version=1.4&since="+r.Month+"&until="+
		r.Since.AddDate(0, 1, 0).Format("2006-01"), "", nil)
	if err != nil {
		if p, is := asProblem(err); is && p.Status == http.StatusNotFound {
			return nil
		}
		return err
	}
	defer func() { _ = of.Body.Close() }()
	return m.read(of.Body)
}

// estimates adds the estimated and the actual cost of the jobs that ended in the month: of those since its begin,
// less those since its end. It returns the server's time.
func (r *Review) estimates(ctx context.Context, c *command.Client, m *month) (now time.Time, err error) {
	status, err := c.Costs(ctx, "team", "1s") // for the time of the market
	if err != nil {
		return now, err
	}
	now = status.Until
	from, err := c.Costs(ctx, "team", spanOf(now.Sub(r.Since)))
	if err != nil {
		return now, err
	}
	m.foresee(from.Lines, false)
	if r.Over {
		after, err := c.Costs(ctx, "team", spanOf(now.Sub(r.Until)))
		if err != nil {
			return now, err
		}
		m.foresee(after.Lines, true)
	}
	return now, nil
}

// spanOf formats a span until now for the server, in whole seconds.
func spanOf(d time.Duration) string { return max(d, 0).Truncate(time.Second).String() }

// foresee adds the estimates of lines, or subtracts them.
func (m *month) foresee(lines []api.CostLine, less bool) {
	for _, l := range lines {
		if l.Foreseen == 0 || l.Estimated == nil || l.Actual == nil {
			continue
		}
		s := m.sum(l.Currency)
		n, estimated, actual := l.Foreseen, *l.Estimated, *l.Actual
		if less {
			n, estimated, actual = -n, estimated.Neg(), actual.Neg()
		}
		if s.Estimated == nil {
			s.Estimated, s.Actual = new(money.Amount), new(money.Amount)
		}
		s.Foreseen, *s.Estimated, *s.Actual = s.Foreseen+n, s.Estimated.Add(estimated), s.Actual.Add(actual)
		if s.Foreseen == 0 {
			s.Estimated, s.Actual = nil, nil
		}
	}
}

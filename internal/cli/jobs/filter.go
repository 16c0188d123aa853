package jobs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/core"
)

// filterFlags select and order jobs.
type filterFlags struct {
	status, tags                  []string
	user, team, name, since, sort string
	group, project, engine, by    string
	mine, attention               bool
}

func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.status, "status", nil, "in one of these `states`, as running,queued (default: in any)")
	flags.StringVar(&f.user, "user", "", "submitted by this `user` (default: by anybody)")
	flags.BoolVar(&f.mine, "mine", false, "submitted by you (default: by anybody)")
	flags.BoolVar(&f.attention, "attention", false, "that wait, are late, or meet their deadline with a chance below "+
		"90 % (default: all)")
	flags.StringVar(&f.team, "team", "", "of this `team` (default: of all that you see)")
	flags.StringArrayVar(&f.tags, "tag", nil, "with this tag, as `KEY` or KEY=VALUE (may be repeated; default: any)")
	flags.StringVar(&f.name, "name", "", "whose name or id matches this `pattern`, as 'sweep-*' (default: any)")
	flags.StringVar(&f.group, "group", "", "members of this `array` (default: of any, and of none)")
	flags.StringVar(&f.project, "project", "", "of this `project` (default: of any)")
	flags.StringVar(&f.engine, "engine", "", "whose newest machine is, or was, of this `engine` (default: of any)")
	flags.StringVar(&f.since, "since", "", "submitted in this `span` until now, as 24h or 7d, or since a time such as "+
		"2026-12-01T18:00:00Z (default: at any time)")
	flags.StringVar(&f.sort, "sort", "", "by this `key`: "+strings.Join(sortKeys(), ", ")+" (default: in order of "+
		"submission)")
	cmd.MarkFlagsMutuallyExclusive("user", "mine")
	var states []cobra.Completion
	for _, s := range core.States {
		states = append(states, string(s))
	}
	_ = cmd.RegisterFlagCompletionFunc("status", command.Words(states...))
	_ = cmd.RegisterFlagCompletionFunc("sort", command.Words(sortKeys()...))
	for _, name := range []string{"user", "team", "tag", "name", "since", "group", "project", "engine"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// query returns the filter as query parameters.
func (f *filterFlags) query(ctx context.Context, c *command.Client, now time.Time) (url.Values, error) {
	if _, ok := orders[f.sort]; !ok && f.sort != "" {
		return nil, fmt.Errorf("--sort %.40q: it is one of %s", f.sort, strings.Join(sortKeys(), ", "))
	}
	q := url.Values{}
	for _, s := range f.status {
		if !slices.Contains(core.States, core.State(s)) {
			return nil, fmt.Errorf("--status %.40q: a job is %s", s, statesText())
		}
	}
	if len(f.status) > 0 {
		q.Set("state", strings.Join(f.status, ","))
	}
	if f.attention {
		q.Set("attention", "1")
	}
	if f.mine {
		var me api.Me
		if err := c.Do(ctx, http.MethodGet, "/v1/me", nil, &me); err != nil {
			return nil, err
		}
		f.user = me.User
	}
	if f.since != "" {
		at, err := command.Moment(f.since, now)
		if err != nil {
			return nil, fmt.Errorf("--since %w", err)
		}
		q.Set("since", at.UTC().Format(time.RFC3339))
	}
	for name, value := range map[string]string{"user": f.user, "team": f.team, "name": f.name, "group": f.group,
		"project": f.project, "engine": f.engine} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(f.tags) > 0 {
		q["tag"] = f.tags
	}
	return q, nil
}

func statesText() string {
	var words []string
	for _, s := range core.States {
		words = append(words, string(s))
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// orders holds the sort orders of jobs. Missing values sort last.
var orders = map[string]func(a, b api.Job) int{
	"cost":      func(a, b api.Job) int { return b.Spent.Cmp(a.Spent) },
	"deadline":  func(a, b api.Job) int { return missingLast(a.Deadline, b.Deadline, time.Time.Compare) },
	"finished":  func(a, b api.Job) int { return missingLast(a.Finished, b.Finished, newestFirst) },
	"name":      func(a, b api.Job) int { return cmp.Compare(a.ID, b.ID) },
	"start":     func(a, b api.Job) int { return missingLast(startOf(a), startOf(b), cmp.Compare[float64]) },
	"started":   func(a, b api.Job) int { return missingLast(a.Started, b.Started, newestFirst) },
	"status":    func(a, b api.Job) int { return cmp.Compare(rankOf(a), rankOf(b)) },
	"submitted": func(a, b api.Job) int { return newestFirst(a.Submitted, b.Submitted) },
	"user":      func(a, b api.Job) int { return cmp.Compare(a.User, b.User) },
}

// startOf returns when a job is expected to start: before all others if it runs, nil if that is unknown.
func startOf(j api.Job) *float64 {
	if wall, ok := show.StartsIn(j); ok {
		return &wall[1]
	}
	if j.State == string(core.Running) {
		return new(float64(-1))
	}
	return nil
}

func sortKeys() []string { return slices.Sorted(maps.Keys(orders)) }

func newestFirst(a, b time.Time) int { return b.Compare(a) }

// rankOf returns the position of a job's state in a job's life.
func rankOf(j api.Job) int { return slices.Index(core.States, core.State(j.State)) }

func missingLast[T any](a, b *T, compare func(a, b T) int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return compare(*a, *b)
}

// sortJobs sorts jobs stably.
func sortJobs(list []api.Job, key string) { slices.SortStableFunc(list, orders[key]) }

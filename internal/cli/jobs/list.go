package jobs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
)

// shownJobs is the default number of jobs in a table: about a screen.
const shownJobs = 50

// jobsOfPage is the largest number of jobs per request.
const jobsOfPage = 1000

// listing selects the jobs of a list.
type listing struct {
	open   bool // queued and running jobs, oldest first; otherwise all, or the newest up to the limit
	queue  bool // in the order in which they are expected to start
	limit  int  // 0 for all
	filter url.Values
	sort   string // empty for the order of submission
}

// back reports whether to read pages from the newest job backwards.
func (l listing) back() bool { return !l.open && l.limit > 0 && l.sort == "" }

// most returns the number of jobs to request: a sorted list is read whole before it is cut, and the queue by as many
// jobs as fit in one request.
func (l listing) most() int {
	switch {
	case l.sort != "":
		return 0
	case l.queue:
		return max(l.limit, jobsOfPage)
	}
	return l.limit
}

// query returns the request for the next page, at a position and after a number of shown jobs.
func (l listing) query(shown int, at string) url.Values {
	size := jobsOfPage
	if most := l.most(); most > 0 {
		size = min(size, most-shown)
	}
	q := url.Values{"limit": {strconv.Itoa(size)}}
	maps.Copy(q, l.filter)
	if l.back() {
		q.Set("before", at)
	} else {
		q.Set("after", at)
	}
	if l.open {
		q.Set("live", "1")
	}
	return q
}

// list prints jobs page by page and reports how many it left out.
func (a *app) list(ctx context.Context, c *command.Client, l listing) error {
	a.Waiting(ctx, c)
	all, shown, more, err := a.readPages(ctx, c, l)
	if err != nil {
		return err
	}
	if l.sort != "" || l.queue {
		sortJobs(all, cmp.Or(l.sort, "start"))
		if l.limit > 0 && len(all) > l.limit {
			all, shown, more = all[:l.limit], l.limit, true
		}
	}
	if !a.JSON && len(all) == 0 && len(l.filter) > 0 {
		a.Printf("No job matches. scrimp jobs lists all.\n")
	} else if !a.JSON {
		a.Printf("%s", show.Jobs(all, a.Place()))
	} else if err := command.PrintEach(a.App, all); err != nil {
		return err
	}
	if more {
		a.leftOut(ctx, c, l, shown)
	}
	if l.open && !a.JSON {
		a.missed(ctx, c)
	}
	return nil
}

// missed prints how many jobs of each team missed their deadline, if teams share the queue. It is an extra: a server
// that does not answer has answered with the list already.
func (a *app) missed(ctx context.Context, c *command.Client) {
	var v api.QueueShares
	if c.Do(ctx, http.MethodGet, "/v1/queue/shares", nil, &v) == nil {
		a.Printf("%s", show.Missed(v, a.Place()))
	}
}

// readPages reads jobs up to the most that are listed. Shown is how many it read, and more says that it left some out.
// Of JSON in the order of submission it prints each page at once and keeps none, because a million jobs do not have to
// fit in memory.
func (a *app) readPages(ctx context.Context, c *command.Client, l listing) (all []api.Job, shown int, more bool,
	err error) {
	at := ""
	for more = true; more && (l.most() == 0 || shown < l.most()); {
		page, next, err := c.JobsPage(ctx, l.query(shown, at))
		if err != nil {
			return nil, shown, more, err
		}
		shown, at, more = shown+len(page), next, next != ""
		switch {
		case a.JSON && !l.back() && l.sort == "":
			if err := command.PrintEach(a.App, page); err != nil {
				return nil, shown, more, err
			}
		case l.back():
			all = append(page, all...)
		default:
			all = append(all, page...)
		}
	}
	return all, shown, more, nil
}

// leftOut reports how many jobs are not shown.
func (a *app) leftOut(ctx context.Context, c *command.Client, l listing, shown int) {
	if len(l.filter) > 0 || l.sort != "" {
		a.Notef("These are %d of the jobs that match; --all lists them all, --limit more or fewer.\n", shown)
		return
	}
	var s api.Server
	if err := c.Do(ctx, http.MethodGet, "/v1/server", nil, &s); err != nil { // the list is already printed
		a.Notef("There are more jobs; --all lists them.\n")
		return
	}
	which, of := "newest", draw.Count(s.Jobs, "job")
	if l.queue && s.Live <= l.most() {
		which, of = "first", draw.Count(s.Live, "job")+" that wait or run"
	} else if l.open {
		which, of = "oldest", draw.Count(s.Live, "job")+" that wait or run"
	}
	a.Notef("These are the %s %d of %s; --all lists them all, --limit more or fewer.\n", which, shown, of)
}

// listCmd adds the flags of a listing. With --json the default is all jobs.
func (a *app) listCmd(cmd *cobra.Command, open bool) *cobra.Command {
	limit, every := shownJobs, false
	var f filterFlags
	cmd.Flags().IntVar(&limit, "limit", limit, "how many jobs are listed at most, where --json does not list all")
	cmd.Flags().BoolVar(&every, "all", false, "list all of them (default: as --limit says)")
	cmd.MarkFlagsMutuallyExclusive("limit", "all")
	f.add(cmd)
	if !open {
		cmd.Flags().StringVar(&f.by, "by", "", "sum the jobs by this `property` instead: team, project, state, engine, "+
			"user or tag:KEY (default: list them)")
		for _, name := range []string{"limit", "all", "sort"} {
			cmd.MarkFlagsMutuallyExclusive("by", name)
		}
		_ = cmd.RegisterFlagCompletionFunc("by", command.Words("team", "project", "state", "engine", "user", "tag:"))
	}
	cmd.RunE = a.With(func(ctx context.Context, c *command.Client, _ []string) error {
		if every || a.JSON && !cmd.Flags().Changed("limit") {
			limit = 0
		} else if limit < 1 {
			return fmt.Errorf("list jobs: --limit is %d: write how many are listed, or --all", limit)
		}
		filter, err := f.query(ctx, c, a.Now())
		if err != nil {
			return err
		}
		if f.by != "" {
			return a.totals(ctx, c, f.by, filter)
		}
		return a.list(ctx, c, listing{open: open, limit: limit, filter: filter, sort: f.sort,
			queue: open && f.sort == "" && limit > 0})
	})
	return cmd
}

func (a *app) jobsCmd() *cobra.Command {
	return a.listCmd(&cobra.Command{Use: "jobs", Short: "List the newest jobs with what they have spent",
		Args:    command.Takes(),
		GroupID: command.GroupLook,
		Long: "Lists the newest jobs, those that are over too, and says how many it left out; --all lists them all. With " +
			"several filters, such as --team and --status, the list has the jobs that match all of them. --sort changes the " +
			"order: the most expensive first, those due soonest first, and so on.\n\n" +
			"STEP shows the current step and the number of all steps, if it is known. SPENT is the cost in the ledger, LEFT " +
			"the time to the deadline, and ON-TIME the chance to meet it.\n\n" +
			"--by groups the jobs and shows, for each group, how many jobs are in each state, what they have SPENT, what " +
			"their machines cost an hour NOW, and what the jobs that are not over WILL COST: the sums of the low (10 %) and " +
			"the high (90 %) ends of their forecasts. The group (none) has the jobs without that property; a filter takes " +
			"(none) as well, as in --team '(none)'." +
			command.PlainExit,
		Example: "  scrimp jobs\n  scrimp jobs --status running,queued --mine --sort deadline\n" +
			"  scrimp jobs --name 'sweep-*' --since 7d --sort cost --limit 10\n  scrimp jobs --tag ticket=42 --json\n" +
			"  scrimp jobs --by team --since 30d"}, false)
}

func (a *app) queueCmd() *cobra.Command {
	return a.listCmd(&cobra.Command{Use: "queue", Short: "List the jobs that wait or run", Args: command.Takes(),
		GroupID: command.GroupLook,
		Long: "Lists the jobs that run, then those that wait, in the order in which they are expected to start; STARTS is " +
			"the median of the simulated starts, and scrimp status JOB shows its range. Of more than 1000 jobs it sorts the " +
			"oldest 1000. It says how many it left out; --json lists all, the oldest first. If teams share the queue, a last " +
			"line has the share of jobs that missed their deadline, for each team." +
			command.PlainExit}, true)
}

package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/draw"
)

// shownJobs is how many jobs a table has where nobody says: about a screen.
const shownJobs = 50

// listing says which jobs are listed.
type listing struct {
	open  bool // those that wait or run, the oldest first; else all, and the newest where not all are shown
	limit int  // 0: all
}

// back reports whether pages are read from the newest job backwards.
func (l listing) back() bool { return !l.open && l.limit > 0 }

// query asks for the page at a place, after what was shown.
func (l listing) query(shown int, at string) url.Values {
	size := jobsOfPage
	if l.limit > 0 {
		size = min(size, l.limit-shown)
	}
	q := url.Values{"limit": {strconv.Itoa(size)}}
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

// list prints jobs, which are asked for a page at a time, and says how many it left out.
func (a *app) list(ctx context.Context, c *client, l listing) error {
	a.waiting(ctx, c)
	var all []api.Job
	shown, more, at := 0, true, ""
	for more && (l.limit == 0 || shown < l.limit) {
		page, next, err := c.page(ctx, l.query(shown, at))
		if err != nil {
			return err
		}
		shown, at, more = shown+len(page), next, next != ""
		switch {
		case a.json && !l.back(): // as they come: a million do not have to fit in memory
			if err := a.printJobs(page); err != nil {
				return err
			}
		case l.back():
			all = append(page, all...)
		default:
			all = append(all, page...)
		}
	}
	if !a.json {
		a.printf("%s", show.Jobs(all, a.place()))
	} else if err := a.printJobs(all); err != nil {
		return err
	}
	if more {
		a.leftOut(ctx, c, l, shown)
	}
	return nil
}

// printJobs prints each job as an object.
func (a *app) printJobs(list []api.Job) error {
	for _, j := range list {
		if err := a.print(j); err != nil {
			return err
		}
	}
	return nil
}

// page is one page of jobs, and where the next one begins; "": there is none.
func (c *client) page(ctx context.Context, q url.Values) (list []api.Job, next string, err error) {
	list, next, err = c.JobsPage(ctx, q)
	return list, next, c.said(ctx, err)
}

// leftOut says how many jobs are not shown.
func (a *app) leftOut(ctx context.Context, c *client, l listing, shown int) {
	var s api.Server
	if err := c.do(ctx, http.MethodGet, "/v1/server", nil, &s); err != nil { // the list is there all the same
		a.notef("There are more jobs; --all lists them.\n")
		return
	}
	which, of := "newest", draw.Count(s.Jobs, "job")
	if l.open {
		which, of = "oldest", draw.Count(s.Live, "job")+" that wait or run"
	}
	a.notef("These are the %s %d of %s; --all lists them all, --limit more or fewer.\n", which, shown, of)
}

// listCmd gives a listing its flags. A program gets all, where it does not say.
func (a *app) listCmd(cmd *cobra.Command, open bool) *cobra.Command {
	limit, every := shownJobs, false
	cmd.Flags().IntVar(&limit, "limit", limit, "how many jobs are listed at most, where --json does not list all")
	cmd.Flags().BoolVar(&every, "all", false, "list all of them (default: as --limit says)")
	cmd.MarkFlagsMutuallyExclusive("limit", "all")
	cmd.RunE = a.with(func(ctx context.Context, c *client, _ []string) error {
		if every || a.json && !cmd.Flags().Changed("limit") {
			limit = 0
		} else if limit < 1 {
			return fmt.Errorf("list jobs: --limit is %d: write how many are listed, or --all", limit)
		}
		return a.list(ctx, c, listing{open: open, limit: limit})
	})
	return cmd
}

func (a *app) jobsCmd() *cobra.Command {
	return a.listCmd(&cobra.Command{Use: "jobs", Short: "List the newest jobs with what they have spent", Args: takes(),
		GroupID: groupLook,
		Long: "Lists the newest jobs, those that are over too, and says how many it left out; --all lists them all. STEP " +
			"is of all steps, where they are known; SPENT is what the ledger holds; LEFT is the time to the deadline and " +
			"ON-TIME the chance to meet it." + plainExit}, false)
}

func (a *app) queueCmd() *cobra.Command {
	return a.listCmd(&cobra.Command{Use: "queue", Short: "List the jobs that wait or run", Args: takes(),
		GroupID: groupLook,
		Long: "Lists the jobs that wait or run, the oldest first, as scrimp jobs lists all; it says how many it left out." +
			plainExit}, true)
}

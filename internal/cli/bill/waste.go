package bill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/content/billfile"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/advice"
	"scrimp/internal/work/reconcile"
	"scrimp/internal/work/waste"
)

// wasteJSON is the output of scrimp waste --json.
type wasteJSON struct {
	api.Waste
	Clouds      *[]advice.Recommendation `json:"recommendations,omitempty"`       // nil without --with
	CloudTotals *[]advice.Total          `json:"recommendation_totals,omitempty"` // nil without --with
	Survey      *api.Survey              `json:"survey,omitempty"`                // nil without --engines
}

// wasteFields names the flags of the fields that the server may refuse.
var wasteFields = map[string]string{"since": "--since", "team": "--team"}

const sinceUse = "`span` until now, up to 90d"

func (a *app) wasteCmd() *cobra.Command {
	var team, since string
	var bills, with []string
	var engines bool
	cmd := &cobra.Command{Use: "waste", Short: "List spending that buys nothing, and what to do", Args: command.Takes(),
		GroupID: command.GroupMoney,
		Long: "Lists what costs money for nothing, each with its cost, evidence, one action (keep, shrink, schedule, stop " +
			"or delete) and the command that does it:\n\n" +
			"unused machine: no task for 45 minutes, and twice as long as the team's idle times usually last, beyond its " +
			"minimum charge. " +
			"idle time: machines between jobs, 1 hour and 10 % of a team's machine time, beyond minimum charges. " +
			"silent machine: no word from its agent for 10 minutes (real time) while a job is on it. " +
			"unknown machine: no job of this server requested it. " +
			"orphan volume: a volume or address that costs money 30 minutes after its machine is gone. " +
			"oversized job: a recurring job, over 3 measured runs and 1 hour, whose GPUs were used less than 50 %, or, on " +
			"a machine without GPUs, whose memory peak and processors were below 50 %; a smaller machine has 1.25 times the " +
			"peaks of host and GPU memory, and leaves 20 % of GPUs and processors free. " +
			"unused reservation: 20 % unused (schedule) or 50 % (shrink). " +
			"failing schedule: its last 3 runs failed. " +
			"untagged: no team or no project; with --bill, a resource whose row has no tags in a bill that has them. " +
			"bill line: with --bill, a line that has no partner in the ledger; this needs the role viewer of all teams.\n\n" +
			"--with lists a cloud's own recommendations below, with a command that changes nothing and the one that does it: " +
			advice.Formats + ". Their savings are the cloud's estimates, and no part of the totals above. With --bill too, " +
			"BILLED is what that bill has for the resource, so a month later it shows what a change gave.\n\n" +
			"--engines asks the engines for machines and volumes of their accounts, whoever made them, that lack a tag, and " +
			"for volumes of stopped machines or of none; it needs the role viewer of all teams. Engines on AWS can tell. " +
			"A price that scrimp does not know is \"-\"; no total above has these resources.\n\n" +
			"Each dollar is in one finding. COST is all that it concerns, WASTED what bought nothing. Dollars a month are " +
			"those since it was first seen, scaled to 30 days; \"-\" is unknown, seen for less than a day (an hour for " +
			"machines, volumes, reservations and schedules that go on), or does not recur." + command.PlainExit,
		Example: "  scrimp waste\n  scrimp waste --team vision --since 14d --json\n" +
			"  scrimp waste --bill october.csv\n  scrimp waste --with compute-optimizer.csv",
		PreRunE: func(*cobra.Command, []string) error {
			return cmp.Or(areFiles("--bill", bills), areFiles("--with", with), narrows(team, bills))
		},
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			clouds, err := readAdvice(ctx, with, bills)
			if err != nil {
				return err
			}
			v, err := c.Waste(ctx, team, since)
			if err != nil {
				return c.Said(ctx, command.InFlags(err, wasteFields))
			}
			unread, err := a.addBills(ctx, c, &v, bills)
			if err != nil {
				return c.Said(ctx, err)
			}
			if err := known(ctx, c, clouds, v); err != nil {
				return c.Said(ctx, err)
			}
			var survey *api.Survey
			if engines {
				seen, err := c.SurveyWaste(ctx)
				if err != nil {
					return c.Said(ctx, err)
				}
				survey = &seen
			}
			all := wasteJSON{Waste: v, Survey: survey}
			if len(with) > 0 {
				all.Clouds, all.CloudTotals = &clouds, new(advice.Totals(clouds))
			}
			return a.whole(a.printWaste(&all), unread)
		})}
	cmd.Flags().StringVar(&team, "team", "", "findings of this `team`, or of no team with '(none)' (default: of all that "+
		"you may see)")
	cmd.Flags().StringVar(&since, "since", "30d", sinceUse)
	cmd.Flags().StringArrayVar(&bills, "bill", nil, "compare this bill `file` too; may be repeated (default: none)")
	cmd.Flags().StringArrayVar(&with, "with", nil, "list the recommendations of this cloud's `file` too; may be repeated "+
		"(default: none)")
	cmd.Flags().BoolVar(&engines, "engines", false, "list what the engines' accounts have without tags or without use "+
		"(default: only what the ledger has)")
	_ = cmd.MarkFlagFilename("bill", "csv", "gz", "json", "jsonl", "parquet")
	_ = cmd.MarkFlagFilename("with", "csv", "json")
	cmd.AddCommand(a.applyCmd(), a.historyCmd())
	return cmd
}

// printWaste prints the findings, and what --with and --engines add.
func (a *app) printWaste(all *wasteJSON) error {
	if a.JSON {
		return a.Print(all)
	}
	text := spending.Waste(all.Waste, a.Place())
	if all.Clouds != nil {
		text += "\n" + spending.Clouds(*all.Clouds, a.Place())
	}
	if all.Survey != nil {
		text += "\n" + spending.Survey(all.Survey, a.Place())
	}
	_, err := io.WriteString(a.Out, text)
	return err
}

// areFiles refuses folders as the values of a flag.
func areFiles(flag string, names []string) error {
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return fmt.Errorf("%s %s: it is a folder, not a file: name a file in it", flag, name)
		}
	}
	return nil
}

// narrows returns an error if --team cannot select findings. A bill's line without a partner is the cost of no team.
func narrows(team string, bills []string) error {
	if team != "" && team != api.NoTeam && len(bills) > 0 {
		return fmt.Errorf("--team %.60s and --bill: the lines of a bill that --bill adds belong to no team: leave one of "+
			"the two out, or write --team '%s'", team, api.NoTeam)
	}
	return nil
}

func (a *app) applyCmd() *cobra.Command {
	var yes bool
	var since string
	cmd := &cobra.Command{Use: "apply ID", Short: "Do what a finding advises, or say what would happen",
		Args: command.Takes("ID"),
		Long: "Says what the action of a finding does. With --yes it does it, where scrimp can: it terminates an unused " +
			"machine, or ends a failing schedule. That takes an operator of the team (an admin of all teams where the cost " +
			"has no team). The audit trail records it, and scrimp waste history compares the saving with the promise." +
			command.PlainExit,
		Example: "  scrimp waste apply w-0123456789\n  scrimp waste apply w-0123456789 --yes",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if yes {
				f, err := c.ApplyWaste(ctx, args[0], since)
				if err != nil {
					return c.Said(ctx, command.InFlags(err, wasteFields))
				}
				return a.applied(f, true)
			}
			v, err := c.Waste(ctx, "", since)
			if err != nil {
				return c.Said(ctx, command.InFlags(err, wasteFields))
			}
			at := slices.IndexFunc(v.Findings, func(f api.WasteFinding) bool { return f.ID == args[0] })
			if at < 0 {
				return gone(ctx, c, args[0])
			}
			return a.applied(v.Findings[at], false)
		})}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it (default: only say what would happen)")
	cmd.Flags().StringVar(&since, "since", "30d", sinceUse)
	return cmd
}

// gone says why there is no finding with the ID, as the server does for --yes.
func gone(ctx context.Context, c *command.Client, id string) error {
	list, err := c.WasteHistory(ctx)
	if err != nil {
		return c.Said(ctx, err)
	}
	for _, d := range slices.Backward(list) {
		if d.ID == id {
			return fmt.Errorf("%s is already applied, at %s UTC by %s: scrimp waste history says what it has saved", id,
				d.At.UTC().Format("2006-01-02 15:04"), d.Who)
		}
	}
	return fmt.Errorf("there is no finding %.40q: scrimp waste lists the findings: this one has ended, or you listed it "+
		"with another --since; a bill line of --bill is advice, which you carry out yourself", id)
}

// applied says what a finding's action does, or has done.
func (a *app) applied(f api.WasteFinding, done bool) error {
	if a.JSON {
		return a.Print(struct {
			Applied bool             `json:"applied"`
			Finding api.WasteFinding `json:"finding"`
		}{done, f})
	}
	if f.Effect == "" {
		a.Printf("scrimp cannot do this for you. %s: %s\n", f.Action, f.Command)
		return nil
	}
	saves := "an unknown amount"
	if f.Saving != nil {
		saves = money.Short(*f.Saving, f.Currency)
	}
	a.Printf("%s It costs %s in this span; the action saves %s in the coming month.\n", f.Effect,
		money.Short(f.Cost, f.Currency), saves)
	if !done {
		a.Printf("Nothing was done: add --yes to do it.\n")
		return nil
	}
	a.Printf("Done. scrimp waste history compares the saving with the promise.\n")
	return nil
}

func (a *app) historyCmd() *cobra.Command {
	return &cobra.Command{Use: "history", Short: "Compare promised savings with measured ones", Args: command.Takes(),
		Long: "Lists the findings that were applied in the last 400 days: the promised saving for the days since then, and " +
			"the one measured from the ledger, which is what the same thing would have cost at its earlier pace less what it " +
			"did cost. Both cover at most 30 days; unknown is \"-\"." + command.PlainExit,
		Example: "  scrimp waste history --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			list, err := c.WasteHistory(ctx)
			if err != nil {
				return c.Said(ctx, err)
			}
			return command.ShowEach(a.App, list, spending.WasteHistory(list, a.Place()))
		})}
}

// addBills adds the lines of the bills that have no partner in the ledger of the span, and sums all findings again.
func (a *app) addBills(ctx context.Context, c *command.Client, v *api.Waste, files []string) (unread int, err error) {
	if len(files) == 0 {
		return 0, nil
	}
	if err := seesAll(ctx, c); err != nil {
		return 0, fmt.Errorf("--bill: %w", err)
	}
	since, until := v.Since.UTC().Truncate(time.Hour), v.Until.UTC().Truncate(time.Hour).Add(time.Hour)
	b := reconcile.New(since, until)
	lines := resources{at: map[string]int{}}
	b.Stranger = lines.add
	loose := untagged{since: since, until: until, by: map[resourceIn]*untaggedCost{}}
	q := url.Values{"since": {since.Format(time.RFC3339)}, "until": {until.Format(time.RFC3339)}}
	r, err := c.Request(ctx, http.MethodGet, "/v1/export/costs?"+q.Encode())
	switch p, is := errors.AsType[*api.Problem](err); {
	case is && p.Status == http.StatusNotFound: // nothing was spent, and a bill may say something else
	case err != nil:
		return 0, err
	default:
		defer func() { _ = r.Body.Close() }()
		if err := owned(r.Body, b.Own); err != nil {
			return 0, fmt.Errorf("read the costs: %w", err)
		}
	}
	seen := billfile.Seen()
	for _, file := range files {
		n, err := readInto(ctx, file, seen, b, loose.add)
		if unread += n; err != nil {
			return unread, fmt.Errorf("--bill: %w", err)
		}
	}
	b.Finish()
	list, err := lines.findings()
	if err != nil {
		return unread, err
	}
	more, err := loose.findings(&lines)
	if err != nil {
		return unread, err
	}
	list = append(list, more...)
	for _, f := range v.Findings {
		list = append(list, waste.Finding{ID: f.ID, Kind: waste.Kind(f.Kind), Team: f.Team, About: f.About,
			Currency: f.Currency, Cost: f.Cost, Waste: f.Waste, Monthly: f.Monthly, Saving: f.Saving, Evidence: f.Evidence,
			Action: waste.Action(f.Action), Command: f.Command, Effect: f.Effect, Jobs: f.Jobs})
	}
	waste.Sort(list)
	v.Findings, v.Totals = []api.WasteFinding{}, []api.WasteTotal{}
	for _, f := range list {
		v.Findings = append(v.Findings, api.WasteFinding{ID: f.ID, Kind: string(f.Kind), Team: f.Team, About: f.About,
			Currency: f.Currency, Cost: f.Cost, Waste: f.Waste, Monthly: f.Monthly, Saving: f.Saving, Evidence: f.Evidence,
			Action: string(f.Action), Command: f.Command, Effect: f.Effect, Jobs: f.Jobs})
	}
	for _, t := range waste.Sum(list) {
		v.Totals = append(v.Totals, api.WasteTotal(t))
	}
	return unread, nil
}

// resources sums the lines of a bill that have no machine by resource, so that a long bill takes little memory.
type resources struct {
	list []waste.Finding
	at   map[string]int // by ID
	err  error
}

// add adds a line. A line is kept if scrimp cannot tell whose machine it is. A bill does not say whether a line
// recurs, so a finding has no figure of a month.
func (s *resources) add(l reconcile.Alone) {
	amount, ok := l.Amount.Amount()
	if !ok {
		s.err = cmp.Or(s.err, fmt.Errorf("line %d of the bill: the amount %s is too precise or too large", l.Line, l.Amount))
		return
	}
	f := waste.Finding{Kind: waste.BillLine, About: l.Resource, Currency: l.Currency, Cost: amount, Jobs: []string{},
		Action: waste.Stop, Command: "look " + l.Resource + " up at the provider, and end it if nobody needs it",
		Evidence: fmt.Sprintf("line %d of the bill: %s", l.Line, l.Why)}
	if l.Unclear() {
		f.Action, f.Command = waste.Keep, "scrimp reconcile, which lists the line"
	}
	f.ID = waste.ID(f.Kind, "", f.About, f.Currency)
	if i, known := s.at[f.ID]; known {
		s.list[i].Cost = s.list[i].Cost.Add(amount)
		return
	}
	s.at[f.ID] = len(s.list)
	s.list = append(s.list, f)
}

// findings returns a finding for each resource with a cost.
func (s *resources) findings() ([]waste.Finding, error) {
	if s.err != nil {
		return nil, s.err
	}
	list := slices.DeleteFunc(s.list, func(f waste.Finding) bool { return f.Cost.Sign() <= 0 })
	for i := range list {
		if f := &list[i]; f.Action != waste.Keep {
			f.Waste = &f.Cost
		}
	}
	return list, nil
}

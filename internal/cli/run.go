package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/api"
	"scrimp/internal/draw"
	"scrimp/internal/money"
	"scrimp/internal/sim"
	"scrimp/internal/spec"
)

// jobFlags are what run and plan share.
type jobFlags struct {
	env    []string
	market string
}

func (f *jobFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.env, "env", nil, "set `NAME=VALUE` in the program's environment (may be repeated)")
	cmd.Flags().StringVar(&f.market, "market", "", "market `file`, or calm or stormy, for a data folder that has none yet (default calm)")
}

// load reads the job file, or makes a job of the command after --.
func (a *app) load(args []string, dash int, f jobFlags, now time.Time) (j spec.Job, folder string, err error) {
	var notes []spec.Note
	switch {
	case dash >= 0:
		folder = "."
		j = spec.FromCommand(filepath.Base(args[0]), args)
	default:
		text, err := os.ReadFile(args[0])
		if err != nil {
			return j, "", fmt.Errorf("read the job file: %w: scrimp init writes one", err)
		}
		folder, err = filepath.Abs(filepath.Dir(args[0]))
		if err != nil {
			return j, "", err
		}
		if j, notes, err = spec.Parse(args[0], text, filepath.Base(folder), now); err != nil {
			return j, "", err
		}
		if j.Workdir != "" && !filepath.IsAbs(j.Workdir) {
			folder = filepath.Join(folder, j.Workdir)
		} else if j.Workdir != "" {
			folder = j.Workdir
		}
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return j, "", err
	}
	if j, err = j.WithEnv(f.env); err != nil {
		return j, "", err
	}
	if steps, ok := j.Env["STEPS"]; ok && j.Work.Steps > 0 { // the work is what the program is told
		if j.Work.Steps, err = strconv.ParseInt(steps, 10, 64); err != nil || j.Work.Steps <= 0 {
			return j, "", fmt.Errorf("set STEPS in the environment: %q is not a number of steps", steps)
		}
	}
	for _, n := range notes {
		a.notef("note: `%s` %s\n", n.Field, n.Text)
	}
	return j, folder, nil
}

func (a *app) runCmd() *cobra.Command {
	var f jobFlags
	var yes, detach bool
	cmd := &cobra.Command{
		Use:   "run job.yaml | run -- COMMAND [ARG ...]",
		Short: "Run a job to its deadline for the least money",
		Long:  "Runs the job of a job file, or a command as it is, and shows its progress. Ctrl-C detaches; the job goes on.\n\nExit status: 0 succeeded, 1 error, 3 the job failed or was stopped.",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd.Context(), args, cmd.ArgsLenAtDash(), f, yes, detach)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask before money is spent")
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "submit and return")
	return cmd
}

func (a *app) run(ctx context.Context, args []string, dash int, f jobFlags, yes, detach bool) error {
	if _, _, err := a.load(args, dash, f, a.now()); err != nil { // before a server is started for it
		return err
	}
	c, err := a.ensure(ctx, f.market)
	if err != nil {
		return err
	}
	v, err := c.server(ctx)
	if err != nil {
		return err
	}
	j, folder, err := a.load(args, dash, f, v.Market.Now)
	if err != nil {
		return err
	}
	p, err := a.predict(ctx, c, j, v.Market)
	if err != nil {
		return err
	}
	if !a.json {
		p.show(a)
	}
	if _, isTerminal := terminal(a.out); isTerminal && !yes && !a.json {
		a.printf("Run it? [Y/n] ")
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		if s := strings.ToLower(strings.TrimSpace(line)); s != "" && s != "y" && s != "yes" {
			return errors.New("not run")
		}
	}
	s := api.Submission{Key: key(), Folder: folder, Secrets: map[string]string{}}
	if s.Spec, err = j.Encode(); err != nil {
		return err
	}
	for _, name := range j.Secrets {
		value, ok := os.LookupEnv(name)
		if !ok {
			return fmt.Errorf("secret %s is not in the environment: export it first", name)
		}
		s.Secrets[name] = value
	}
	var job api.Job
	if err := c.do(ctx, http.MethodPost, "/v1/jobs", s, &job); err != nil {
		return err
	}
	if detach {
		if a.json {
			return a.print(job)
		}
		a.printf("%s is queued.\n\n", job.ID)
		a.next(job.ID)
		return nil
	}
	return a.follow(ctx, c, job.ID)
}

func key() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// next names the commands that are useful now.
func (a *app) next(id string) {
	a.printf("  scrimp attach %s    progress\n  scrimp logs -f %s   output\n  scrimp explain %s   decisions\n  scrimp stop %s      save and end\n", id, id, id, id)
}

// follow shows a job's progress until it is closed, and then its receipt.
func (a *app) follow(ctx context.Context, c *client, id string) error {
	_, isTerminal := terminal(a.out)
	shown, last := "", time.Time{}
	final, err := a.watch(ctx, c, id, func(j api.Job) {
		if a.json {
			_ = a.print(j)
			return
		}
		line := progress(j)
		state := j.State + j.Machine + j.Phase
		if isTerminal {
			width, _ := terminal(a.out)
			a.printf("\r%s\x1b[K", draw.Cut(line, width-1))
			if state != shown {
				a.printf("\n")
			}
		} else if state != shown || a.now().Sub(last) >= 3*time.Second {
			a.printf("%s\n", line)
			last = a.now()
		}
		shown = state
	})
	if isTerminal && !a.json {
		a.printf("\n")
	}
	if err != nil {
		if ctx.Err() != nil {
			a.notef("\nDetached: %s goes on. scrimp attach %s comes back to it, scrimp stop %s ends it.\n", id, id, id)
			return nil
		}
		return err
	}
	if !a.json {
		r, err := a.receipt(ctx, c, id)
		if err != nil {
			return err
		}
		width, _ := terminal(a.out)
		a.printf("%s", r.Text(width))
	}
	if final.State != "succeeded" {
		return exitCode(exitJobFailed)
	}
	return nil
}

// watch calls show with the job at each change until it is closed. A server
// that goes away is waited for: another takes over.
func (a *app) watch(ctx context.Context, c *client, id string, show func(api.Job)) (api.Job, error) {
	var j api.Job
	for failed := 0; ; {
		r, err := c.request(ctx, http.MethodGet, "/v1/jobs/"+id+"/watch", nil)
		if err == nil {
			lines := bufio.NewScanner(r.Body)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				if json.Unmarshal(lines.Bytes(), &j) == nil {
					failed = 0
					show(j)
				}
			}
			_ = r.Body.Close()
			if j.Closed {
				return j, nil
			}
		} else if strings.Contains(err.Error(), "is not known") {
			return j, err
		}
		if ctx.Err() != nil {
			return j, context.Cause(ctx)
		}
		if failed++; failed == 4 {
			a.notef("\nThe server does not answer: starting another. The job goes on meanwhile.\n")
			if c, err = a.ensure(ctx, ""); err != nil {
				return j, err
			}
		}
		if failed > 20 {
			return j, fmt.Errorf("follow %s: %w", id, err)
		}
		if err := pause(ctx, 300*time.Millisecond); err != nil {
			return j, err
		}
	}
}

// progress is the job in one line.
func progress(j api.Job) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s", j.ID, j.State)
	if j.Phase != "" && j.Phase != "working" {
		fmt.Fprintf(&b, " (%s)", j.Phase)
	} else if j.State == "queued" {
		fmt.Fprintf(&b, " (%s)", strings.ReplaceAll(j.Why, "_", " "))
	}
	if j.Total != nil {
		fmt.Fprintf(&b, "  step %d/%d", j.Step, *j.Total)
	} else if j.Step > 0 {
		fmt.Fprintf(&b, "  step %d", j.Step)
	}
	if loss, ok := j.Metrics["loss"]; ok {
		fmt.Fprintf(&b, "  loss %.3f", loss)
	}
	fmt.Fprintf(&b, "  %s", money.Format(j.Spent, j.Currency, 3))
	if j.Budget != nil {
		fmt.Fprintf(&b, " of %s", money.Format(*j.Budget, j.Currency, 2))
	}
	if j.Offer != "" {
		fmt.Fprintf(&b, "  %s %s", j.Machine, j.Offer)
	}
	if j.TimeLeft != nil {
		fmt.Fprintf(&b, "  %s left", draw.Span(time.Duration(*j.TimeLeft*float64(time.Second))))
	}
	if j.Odds != nil {
		fmt.Fprintf(&b, "  odds %.0f %%", *j.Odds*100)
	}
	if j.Interruptions > 0 {
		fmt.Fprintf(&b, "  %d interruptions", j.Interruptions)
	}
	return b.String()
}

// prediction is a plan: the job played forward through the core.
type prediction struct {
	Name        string      `json:"name"`
	Feasible    bool        `json:"feasible"`
	Known       bool        `json:"known"` // whether the work is known
	Market      string      `json:"market"`
	Speed       float64     `json:"market_speed"`
	Take        string      `json:"take"`
	Why         string      `json:"why"`
	Rejected    []rejected  `json:"rejected"`
	CostUSD     *[3]float64 `json:"cost_usd"`      // 10 %, median, 90 %
	FinishS     *[3]float64 `json:"finish_s"`      // the same, market seconds
	InTime      *float64    `json:"odds"`          // of the deadline
	Interrupts  *float64    `json:"interruptions"` // expected
	OnDemandUSD *float64    `json:"on_demand_usd"`
	Reasons     []string    `json:"reasons"`
}

type rejected struct {
	Offer string `json:"offer"`
	Why   string `json:"why"`
}

// assumedPace stands in for the pace of a job whose time is unknown: the plan
// then says what an hour costs and promises nothing.
const forecastRuns = 200

func (a *app) predict(ctx context.Context, c *client, j spec.Job, clock api.MarketClock) (prediction, error) {
	var m api.Market
	if err := c.do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
		return prediction{}, err
	}
	for begun := a.now(); len(m.Offers) == 0 && a.now().Sub(begun) < 5*time.Second; { // a server that has just begun
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return prediction{}, err
		}
		if err := c.do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
			return prediction{}, err
		}
	}
	return foresee(j, m, clock), nil
}

func (p prediction) show(a *app) {
	a.printf("%s on market %s", p.Name, p.Market)
	if p.Speed != 1 {
		a.printf(" at speed %g: a second on the wall is %s of market time", p.Speed, draw.Span(time.Duration(p.Speed*float64(time.Second))))
	}
	a.printf("\n")
	if p.Known {
		a.printf("  cost      $%.2f to $%.2f, most likely $%.2f", p.CostUSD[0], p.CostUSD[2], p.CostUSD[1])
		if p.OnDemandUSD != nil {
			a.printf(" (on-demand $%.2f)", *p.OnDemandUSD)
		}
		span := func(s float64) string { return draw.Span(time.Duration(s * float64(time.Second))) }
		a.printf("\n  finish    in %s to %s\n", span(p.FinishS[0]), span(p.FinishS[2]))
		if p.InTime != nil {
			a.printf("  deadline  met in %.0f %% of %d simulated runs\n", *p.InTime*100, forecastRuns)
		}
		a.printf("  expected  %.1f interruptions\n", *p.Interrupts)
	} else {
		a.printf("  cost      unknown until the first steps: give work.time, or work.steps and progress, to plan it\n")
	}
	if p.Take != "" {
		a.printf("  begins    on %s (%s)\n", p.Take, strings.ReplaceAll(p.Why, "_", " "))
	} else {
		a.printf("  begins    when it can: %s\n", strings.ReplaceAll(p.Why, "_", " "))
	}
	for _, r := range p.Rejected {
		a.printf("            not %s: %s\n", r.Offer, strings.ReplaceAll(r.Why, "_", " "))
	}
	for _, r := range p.Reasons {
		a.printf("  note      %s\n", r)
	}
}

func (a *app) planCmd() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "plan job.yaml",
		Short: "Say what a job would cost, when it would be done, and why, without acting",
		Long:  "Plays the job forward through the code that would run it, on markets drawn from what is known of the offers.\n\nExit status: 0 feasible, 2 not feasible, 1 error.",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, err := a.ensure(ctx, f.market)
			if err != nil {
				return err
			}
			v, err := c.server(ctx)
			if err != nil {
				return err
			}
			j, _, err := a.load(args, cmd.ArgsLenAtDash(), f, v.Market.Now)
			if err != nil {
				return err
			}
			p, err := a.predict(ctx, c, j, v.Market)
			if err != nil {
				return err
			}
			if a.json {
				err = a.print(p)
			} else {
				p.show(a)
			}
			if err == nil && !p.Feasible {
				return exitCode(exitInfeasible)
			}
			return err
		},
	}
	f.add(cmd)
	return cmd
}

// foresee plays the job forward on the market.
func foresee(j spec.Job, m api.Market, clock api.MarketClock) prediction {
	stretch := func(d time.Duration) time.Duration { return time.Duration(float64(d) * clock.Speed) }
	q := sim.Question{Terms: terms(j, clock.Now, stretch), Now: clock.Now, Restart: stretch(2 * time.Second), Save: stretch(500 * time.Millisecond), Runs: forecastRuns, Hazards: hazards(m)}
	for _, l := range m.Offers {
		q.Offers, q.Quotes = append(q.Offers, l.Offer), append(q.Quotes, l.Quote)
	}
	p := prediction{Name: j.Name, Market: m.Clock.Name, Speed: clock.Speed, Feasible: true, Reasons: []string{}, Rejected: []rejected{}}
	p.Known = q.Terms.Work > 0
	if q.Terms.Steps == 0 {
		q.Terms.Steps = 1000
	}
	if p.Known {
		q.Pace = float64(q.Terms.Steps) / q.Terms.Work.Hours()
	} else {
		q.Terms.Deadline, q.Runs = time.Time{}, 1
		q.Pace = float64(q.Terms.Steps) // an hour stands in: only the first decision is shown
	}
	f := sim.Ask(q)
	p.Take, p.Why = string(f.First.Take), string(f.First.Why)
	for _, r := range f.First.Rejected {
		p.Rejected = append(p.Rejected, rejected{string(r.Offer), string(r.Why)})
	}
	if f.First.Take == "" && f.First.Why == "no_offer" {
		p.Feasible = false
		p.Reasons = append(p.Reasons, "nothing on this market fits: scrimp market shows what is for sale")
	}
	if !p.Known {
		return p
	}
	p.CostUSD, p.Interrupts = &f.Cost, &f.Interruptions
	p.FinishS = &[3]float64{f.Finish[0].Seconds(), f.Finish[1].Seconds(), f.Finish[2].Seconds()}
	if f.OnDemand > 0 {
		p.OnDemandUSD = &f.OnDemand
	}
	if !q.Terms.Deadline.IsZero() {
		p.InTime = &f.InTime
	}
	if f.Done < 0.5 || p.InTime != nil && *p.InTime < 0.5 {
		p.Feasible = false
		p.Reasons = append(p.Reasons, fmt.Sprintf("done within budget in %.0f %% of the runs: the work needs about %s", f.Done*100, draw.Span(q.Terms.Work)))
	}
	return p
}

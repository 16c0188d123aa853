// Package serving is the command that says what it costs to serve a model.
package serving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/offers"
	"scrimp/internal/cli/pastruns"
	"scrimp/internal/cli/show/inference"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/work/serving"
	"scrimp/internal/work/serving/load"
)

// app is the shared state of all commands, with the methods of this package.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.serveCmd()}
}

func (a *app) serveCmd() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "serve-plan --trace FILE --latency TARGET", GroupID: command.GroupMoney,
		Short: "Cost of serving a model for a trace of requests",
		Long: `Plays a trace of requests, event by event, on the on-demand machines of the catalogue under rules: fixed
machines, dynamic batches, autoscaling, scale to zero, a warm pool in some hours. It prints latency, idle share
and cost of each, and the cheapest rule that meets the target first. A rule that meets it only in the middle of an
estimate is uncertain and comes later.

The trace is CSV with the columns time (seconds, or dates as in RFC 3339; UTC without a zone) and, where you
have them, input_tokens, output_tokens, bytes_out and count. The time of a batch is what you measured
(--measured: CSV with accelerator, batch and seconds), or else an estimate from the model and the accelerator,
marked with its range: give --measured, --model or both. Each offer serves the model in the widest of the
formats that its memory holds.
See docs/serving.md.

--serverless names a YAML file of functions with your prices. --manifest writes the rule that comes first as an
HPA or a KEDA ScaledObject to the file of --output.

With --json: one object for each rule on each offer, and for each offer that is skipped.

Exit status: 0 done, 1 a file or a flag cannot be used, 2 no rule meets the target or no machine holds the model.`,
		Example: `  scrimp serve-plan --trace r.csv --model llama-3-8b --latency 'p99<=2s' --gpu L4
  scrimp serve-plan --trace r.csv --measured m.csv --latency 'p50<=50ms,p99<=1s'
  scrimp serve-plan --trace r.csv --model gpt2 --latency 'p99<=1s' --manifest keda \
    --output keda.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, f) },
	}
	f.add(cmd)
	return cmd
}

func (a *app) serve(cmd *cobra.Command, f flags) error {
	ask, err := f.ask(cmd)
	if err != nil {
		return err
	}
	want, err := f.filter()
	if err != nil {
		return err
	}
	if err := f.manifestFlags(cmd); err != nil {
		return err
	}
	if ask.Trace, err = readTrace(f.trace); err != nil {
		return err
	}
	notes, err := f.warm(&ask)
	if err != nil {
		return err
	}
	c, _, err := offers.LoadCatalog(a.App)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(c.Match(want), func(l catalog.Listing) bool { return l.Offer.Currency != money.USD })
	if len(list) == 0 && len(ask.Functions) == 0 {
		return fmt.Errorf("no on-demand offer in dollars matches %s: scrimp offers lists them", f.wishes())
	}
	p, err := serving.NewPlan(c, list, ask)
	if err != nil {
		return orInfeasible(err)
	}
	if err := a.play(cmd.Context(), p); err != nil {
		return err
	}
	v, best, ok := inference.AnswerOf(p, f.head())
	if !ok {
		return &command.Verdict{Exit: command.Infeasible, Err: errors.New("no rule that was tried answers the whole trace: " +
			"allow more machines (--max-machines), or other rules and batches (--rule, --batch)")}
	}
	v.Notes = notes
	for _, n := range p.Notes {
		a.Notef("note: %s\n", n)
	}
	if err := a.show(v); err != nil {
		return err
	}
	if !best.Met {
		worst := best.Outcome.Miss(ask.Options.Targets)
		return &command.Verdict{Exit: command.Infeasible, Err: fmt.Errorf("no rule meets %s: the nearest is %s on %s, with "+
			"a latency of %s times its limit: allow more, other offers, or more machines (--max-machines)",
			f.latency, best.Outcome.Rule, best.Name(), times(worst))}
	}
	return a.manifest(f, best)
}

// times writes a multiple with three digits, and large ones whole.
func times(v float64) string {
	if v >= 100 {
		return draw.Short(int64(v + 0.5))
	}
	return fmt.Sprintf("%.3g", v)
}

// orInfeasible ends the program as infeasible if the error says that no offer serves the model.
func orInfeasible(err error) error {
	if nothing, is := errors.AsType[*serving.NothingError](err); is {
		return &command.Verdict{Exit: command.Infeasible, Err: nothing}
	}
	return err
}

// play plays the trace on each engine.
func (a *app) play(ctx context.Context, p *serving.Plan) error {
	count := a.Counter()
	for i := range p.Runs() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		count("simulating", i, p.Runs())
		p.Play(i)
	}
	count("simulating", p.Runs(), p.Runs())
	return nil
}

func (a *app) show(v inference.Answer) error {
	if !a.JSON {
		a.Printf("%s", v.Text(a.Place()))
		return nil
	}
	if err := command.PrintEach(a, v.Choices); err != nil {
		return err
	}
	return command.PrintEach(a, v.Skipped)
}

func readTrace(file string) (load.Trace, error) {
	in, err := os.Open(file)
	if err != nil {
		return load.Trace{}, fmt.Errorf("read --trace: %w", err)
	}
	defer func() { _ = in.Close() }()
	return load.ReadTrace(filepath.Base(file), in)
}

// maxFile is the most bytes that are read of a file of prices or measurements.
const maxFile = 1<<20 + 1

// files reads the files that are not the trace.
func (f *flags) files(ask *serving.Ask) error {
	if f.model != "" {
		m, err := pastruns.ModelOf(f.model)
		if err != nil {
			return err
		}
		ask.Model = &m
	}
	if f.measured != "" {
		in, err := os.Open(f.measured)
		if err != nil {
			return fmt.Errorf("read --measured: %w", err)
		}
		defer func() { _ = in.Close() }()
		ask.Measured, err = load.ReadMeasured(filepath.Base(f.measured), io.LimitReader(in, maxFile))
		if err != nil {
			return err
		}
	}
	if f.serverless != "" {
		in, err := os.Open(f.serverless)
		if err != nil {
			return fmt.Errorf("read --serverless: %w", err)
		}
		defer func() { _ = in.Close() }()
		text, err := io.ReadAll(io.LimitReader(in, maxFile))
		if err != nil {
			return fmt.Errorf("read --serverless: %w", err)
		}
		if ask.Functions, err = serving.ReadFunctions(f.serverless, text); err != nil {
			return err
		}
	}
	return nil
}

// head returns the name of the model, or of the file of its measurements.
func (f *flags) head() string {
	if f.model != "" {
		return f.model
	}
	return filepath.Base(f.measured)
}

// filter returns the offers that the plan takes: on-demand machines, since a spot machine may stop while it answers.
func (f *flags) filter() (catalog.Filter, error) {
	want := catalog.Filter{Regions: f.regions, Providers: f.providers, Machines: f.machines,
		Capacity: []market.Capacity{market.OnDemand}, Terms: []string{catalog.NoTerm}, Platforms: []string{catalog.Raw}}
	if f.gpu != "" {
		if err := want.ParseAccelerator(f.gpu); err != nil {
			return want, fmt.Errorf("--gpu %w", err)
		}
	}
	return want, want.Check()
}

// wishes returns the flags that select offers, as the user gave them.
func (f *flags) wishes() string {
	var parts []string
	for _, w := range []struct {
		name string
		list []string
	}{{"--gpu", []string{f.gpu}}, {"--provider", f.providers}, {"--region", f.regions}, {"--machine", f.machines}} {
		if text := strings.Join(w.list, ","); text != "" {
			parts = append(parts, w.name+" "+text)
		}
	}
	return strings.Join(parts, " ")
}

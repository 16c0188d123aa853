// Package compress is the command that makes ONNX models smaller and measures the result.
package compress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/offers"
	"scrimp/internal/cli/show/compression"
	"scrimp/internal/lib/money"
	"scrimp/internal/market/catalog"
	"scrimp/internal/work/compress"
	"scrimp/internal/work/compress/judge"
)

// app gives the command its shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.compressCmd()}
}

// latencyPattern finds lines such as latency_ms=3.2.
const latencyPattern = `latency_ms[=: ]+([-+0-9.eE]+)`

// maxRepeat bounds the rounds of the latency command.
const maxRepeat = 100

// flags holds the values of the flags.
type flags struct {
	method, output, eval, metric  string
	calibration                   string
	latency, latencyMetric, price string
	runtime, machine              string
	offers                        []catalog.Listing // of --machine
	batch, threads                int
	timer                         *inRuntime // nil without --runtime
	sparsity, tolerance           float64
	lower                         bool
	repeat                        int
	quality, milliseconds         judge.Pattern
	rate                          money.Rate
	options                       compress.Options
}

func (a *app) compressCmd() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "compress MODEL --method METHOD --output FILE", GroupID: command.GroupMoney,
		Short: "Make an ONNX model smaller, and measure what it loses",
		Long: `Writes a smaller copy of an ONNX model. It needs no Python and no ONNX Runtime for that. It prints size,
quality, latency and cost of both models, and how far the weights of each layer moved.

int8-dynamic stores the weights of MatMul and Gemm as int8 with a scale for each column; the model quantises its
activations while it runs (opset 11). int4-weights stores them in 4 bits with a scale for each block of 32, as
MatMulNBits of com.microsoft, which ONNX Runtime has (opset 17). prune-unstructured sets the smallest weights to
zero; dense hardware gets no faster by that. int8-static also rounds the inputs of MatMul, Gemm and Conv to uint8, by
their ranges on the batches in --calibration (opset 13). prune-structured removes the output channels with the smallest
weights, and shrinks the layers that read them. External data moves into the copy.

scrimp recommends a copy only if your command measures its quality: --eval runs once on each model, on the original
before scrimp writes the copy, and the last number that --metric finds in its output is the quality. --latency runs
several times on each, in turns; each number that --latency-metric finds is the latency of one prediction in
milliseconds. {model} stands for the file. --runtime times both models in ONNX Runtime instead, on the batches of
--calibration or on random ones, and compares their outputs: it names the library, and needs python3 without packages.
Without either, scrimp claims no speed. With --price, or --machine and the catalogue's prices, it computes the cost of
predictions that run one after another.
See docs/compress.md.

Exit status: 0 done, 1 error, 2 the copy is written and not recommended: it is slower, not smaller, or its quality
falls by more than the tolerance.`,
		Example: `  scrimp compress model.onnx --method int8-dynamic -o small.onnx
  scrimp compress model.onnx --method int8-dynamic -o small.onnx \
    --eval 'python eval.py {model}' --metric 'accuracy=([0-9.]+)' --tolerance 0.005
  scrimp compress model.onnx --method int4-weights -o small.onnx \
    --latency './bench {model}' --price 0.526
  scrimp compress model.onnx --method int8-static --calibration batches -o small.onnx \
    --runtime /usr/lib/libonnxruntime.so --price 0.526`,
		Args: command.Takes("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return a.compress(cmd.Context(), args[0], f)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *flags) add(cmd *cobra.Command) {
	var names []string
	for _, m := range compress.Methods {
		names = append(names, string(m))
	}
	s := cmd.Flags()
	s.StringVar(&f.method, "method", "", "`method`: "+strings.Join(names, ", "))
	s.StringVarP(&f.output, "output", "o", "", "`file` of the copy, which must not exist")
	s.Float64Var(&f.sparsity, "sparsity", 0.5, "`share` of the weights that prune-unstructured sets to zero, or of "+
		"the channels that prune-structured removes")
	s.StringVar(&f.calibration, "calibration", "", "`folder` of .npy files, batches of the input for the ranges of "+
		"int8-static and for --runtime (default: none)")
	s.StringVar(&f.eval, "eval", "", "`command` that prints the quality of {model} (default: no quality is measured)")
	s.StringVar(&f.metric, "metric", "", "`pattern` with one group, the number that --eval prints; --eval "+
		"needs it (default: none)")
	s.Float64Var(&f.tolerance, "tolerance", 0.005, "`amount` by which the metric may get worse, in its own unit")
	s.BoolVar(&f.lower, "lower-is-better", false, "the metric is a loss or an error (default: higher is better)")
	s.StringVar(&f.latency, "latency", "", "`command` that prints the latency of {model} (default: none is measured)")
	s.StringVar(&f.latencyMetric, "latency-metric", latencyPattern, "`pattern` with one group, the milliseconds of one "+
		"prediction")
	s.StringVar(&f.runtime, "runtime", "", "`file` of the library of ONNX Runtime, which measures latency and outputs "+
		"(default: neither is measured)")
	s.IntVar(&f.batch, "batch", 1, "`examples` in a run of --runtime without --calibration, 1 to 4096")
	s.IntVar(&f.threads, "threads", 0, "`threads` of --runtime, up to 1024 (0: one for each processor core)")
	s.IntVar(&f.repeat, "repeat", 5, "`times` that --latency or --runtime runs on each model, 2 to 100")
	s.StringVar(&f.price, "price", "", "`dollars` an hour of the machine that is measured, this one (default: no cost)")
	s.StringVar(&f.machine, "machine", "", "`pattern` of the type of this machine in the catalogue, whose offers are "+
		"priced, such as c7i.large (default: none)")
	_ = cmd.MarkFlagRequired("method")
	_ = cmd.MarkFlagRequired("output")
}

// unused refuses flags that have no effect without another one.
func (f *flags) unused(given func(flag string) bool) error {
	for _, need := range []struct {
		with  string
		has   bool
		flags []string
	}{{"--eval", f.eval != "", []string{"metric", "tolerance", "lower-is-better"}},
		{"--latency", f.latency != "", []string{"latency-metric"}},
		{"--latency or --runtime", f.timed(), []string{"repeat", "price", "machine"}},
		{"--runtime", f.runtime != "", []string{"batch", "threads"}},
		{"--method prune-structured or prune-unstructured", f.options.Method.Prunes(), []string{"sparsity"}},
		{"--method int8-static or --runtime", f.options.Method == compress.Int8Static || f.runtime != "",
			[]string{"calibration"}}} {
		if i := slices.IndexFunc(need.flags, given); i >= 0 && !need.has {
			return fmt.Errorf("--%s has no effect without %s", need.flags[i], need.with)
		}
	}
	switch {
	case f.latency != "" && f.runtime != "":
		return errors.New("--latency and --runtime both measure the latency: give one")
	case f.calibration != "" && given("batch"):
		return errors.New("--batch has no effect with --calibration, whose files are the batches")
	}
	return nil
}

// timed reports whether latencies are measured.
func (f *flags) timed() bool { return f.latency != "" || f.runtime != "" }

// check reads the flags and refuses those that have no effect.
func (f *flags) check(cmd *cobra.Command) (err error) {
	if f.options.Method, err = compress.ParseMethod(f.method); err != nil {
		return fmt.Errorf("--method: %w", err)
	}
	if err := f.unused(cmd.Flags().Changed); err != nil {
		return err
	}
	if f.options.Method == compress.Int8Static && f.calibration == "" {
		return errors.New("--method int8-static needs --calibration, a folder of .npy files with batches of the input: it " +
			"takes the ranges of the activations from them")
	}
	for name, line := range map[string]string{"eval": f.eval, "latency": f.latency} {
		if line != "" && !strings.Contains(line, place) {
			return fmt.Errorf("--%s %q does not contain %s, which stands for the file of the model", name, line, place)
		}
	}
	if !(f.tolerance >= 0) || math.IsInf(f.tolerance, 0) {
		return fmt.Errorf("--tolerance %g is not a finite number of at least 0", f.tolerance)
	}
	if f.options.Sparsity = f.sparsity; !(f.sparsity > 0 && f.sparsity < 1) {
		return fmt.Errorf("--sparsity %g is not above 0 and below 1", f.sparsity)
	}
	for _, n := range []struct {
		flag               string
		value, least, most int
	}{{"repeat", f.repeat, 2, maxRepeat}, {"batch", f.batch, 1, maxRuntimeBatch},
		{"threads", f.threads, 0, maxRuntimeThreads}} {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("--%s %d is not between %d and %d", n.flag, n.value, n.least, n.most)
		}
	}
	return f.patterns()
}

func (f *flags) patterns() (err error) {
	if f.eval != "" {
		if f.metric == "" {
			return errors.New("--eval needs --metric, such as 'accuracy=([0-9.]+)', to find the number in its output")
		}
		if f.quality, err = judge.ParsePattern(f.metric); err != nil {
			return fmt.Errorf("--metric: %w", err)
		}
	}
	if f.milliseconds, err = judge.ParsePattern(f.latencyMetric); err != nil {
		return fmt.Errorf("--latency-metric: %w", err)
	}
	if f.price != "" {
		if f.rate, err = money.ParseRate(strings.TrimPrefix(f.price, "$")); err != nil {
			return fmt.Errorf("--price: %w", err)
		}
		if f.rate <= 0 {
			return fmt.Errorf("--price %s is not above 0", f.price)
		}
	}
	return nil
}

func (a *app) compress(ctx context.Context, model string, f flags) error {
	calibration := f.calibration
	if f.options.Method != compress.Int8Static {
		calibration = "" // only --runtime reads it
	}
	if f.machine != "" {
		var err error
		if f.offers, err = a.pricedOffers(f.machine); err != nil {
			return err
		}
	}
	p, err := prepare(ctx, model, f.output, calibration, f.options)
	if err != nil {
		return err
	}
	defer p.folder.close()
	if f.runtime != "" {
		if f.timer, err = newRuntime(f); err != nil {
			return err
		}
		defer f.timer.close()
	}
	found, err := a.original(ctx, model, f)
	if err != nil {
		return fmt.Errorf("%w; nothing is written", err)
	}
	c, err := p.write(ctx, f.output)
	if err != nil {
		return err
	}
	if err := a.compare(ctx, model, f, &found); err != nil {
		return fmt.Errorf("%w; %s is written", err, f.output)
	}
	r, err := result(model, f, c, &found)
	if err != nil {
		return err
	}
	if a.JSON {
		if err := a.Print(r); err != nil {
			return err
		}
	} else {
		a.Printf("%s", r.Text(a.Place()))
	}
	if len(r.Why) > 0 {
		return &command.Verdict{Exit: command.Infeasible, Err: fmt.Errorf("%s is written and not recommended: %s", f.output,
			strings.Join(r.Why, "; "))}
	}
	return nil
}

// result puts together what was measured.
func result(model string, f flags, c copied, found *measured) (compression.Result, error) {
	m := judge.Measures{Size: c.size, Quality: found.quality}
	if f.timed() {
		m.P50, m.Speed = new(found.quantile(0.5)), new(judge.Compare(found.before, found.after))
	}
	r := compression.Of(c.plan, m)
	r.Model, r.Output, r.Parameters = model, f.output, c.parameters
	if m.P50 == nil {
		return r, nil
	}
	each := 1 // predictions of one run
	if t := f.timer; t != nil {
		if t.predictions < 1 {
			return r, errors.New("--runtime: the run named no batch")
		}
		each, r.Runtime, r.Batch = t.predictions, t.version, t.predictions
		var err error
		if r.Outputs, err = t.difference(model, f.output); err != nil {
			return r, err
		}
	}
	r.P50, r.P99 = compression.Seconds(*m.P50), compression.Seconds(found.quantile(0.99))
	r.Throughput = &compression.Numbers{Before: judge.Rate(slices.Concat(found.before...), each),
		After: judge.Rate(slices.Concat(found.after...), each)}
	million := func(rate money.Rate) compression.Costs {
		cost := func(span time.Duration) money.Amount { return rate.Until(1e6 * span / time.Duration(each)) }
		return compression.Costs{Before: cost(m.P50.Before), After: cost(m.P50.After)}
	}
	if f.price != "" {
		r.PerMillion = new(million(f.rate))
	}
	for _, l := range f.offers {
		o := l.Offer
		r.Offers = append(r.Offers, compression.Offer{Provider: o.Provider, Region: o.Region, Machine: o.Machine,
			Capacity: o.Capacity, Hourly: l.Quote.Rate, PerMillion: million(l.Quote.Rate)})
	}
	return r, nil
}

// pricedOffers returns the offers of a type of machine that have a price in dollars, the cheapest first.
func (a *app) pricedOffers(machine string) ([]catalog.Listing, error) {
	want := catalog.Filter{Machines: []string{machine}, Terms: []string{catalog.NoTerm}, Platforms: []string{catalog.Raw}}
	if err := want.Check(); err != nil {
		return nil, fmt.Errorf("--machine %w", err)
	}
	c, _, err := offers.LoadCatalog(a.App)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(c.Match(want), func(l catalog.Listing) bool {
		return l.Offer.Currency != money.USD || !l.Quote.Priced
	})
	if len(list) == 0 {
		return nil, fmt.Errorf("--machine %s: no offer in dollars has that type: scrimp offers lists them; prices.csv in "+
			"the data folder takes your own", machine)
	}
	slices.SortStableFunc(list, func(a, b catalog.Listing) int { return cmp.Compare(a.Quote.Rate, b.Quote.Rate) })
	return list, nil
}

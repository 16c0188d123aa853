package serving

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/work/serving"
	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

// flags holds the values of the flags of scrimp serve-plan.
type flags struct {
	trace, model, measured, serverless, latency, formats string
	gpu                                                  string
	providers, regions, machines, rules                  []string
	batch, exactly, most                                 int
	wait, cold, keep, poll, hours                        string
	form, output                                         string
	deployment, metric, prometheus                       string
}

func (f *flags) add(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.trace, "trace", "", "CSV `file` of the requests")
	s.StringVar(&f.latency, "latency", "", "`target`, such as 'p99<=300ms'; several separated by commas; p50, p90, p95, "+
		"p99, p99.9")
	s.StringVar(&f.model, "model", "", "`model` as scrimp estimate takes it: a name, a config.json, an ONNX file, a "+
		"shape (default: --measured has all times)")
	s.StringVar(&f.measured, "measured", "", "CSV `file` of accelerator,batch,seconds from your own benchmark; an "+
		"accelerator, a machine type or a function (default: all times are estimates)")
	s.StringVar(&f.serverless, "serverless", "", "YAML `file` of functions and their prices (default: machines only)")
	s.StringVar(&f.formats, "format", "fp16,int8,int4", "`formats` that the weights may have, the widest that fits first")
	s.StringVar(&f.gpu, "gpu", "", "`kind` and count: L4, A100:1..8; none for machines without (default: all)")
	s.StringSliceVar(&f.providers, "provider", nil, "`pattern` of providers: aws, gcp (default: all; may be repeated)")
	s.StringSliceVar(&f.regions, "region", nil, "`pattern` of regions: us-* (default: all; may be repeated)")
	s.StringSliceVar(&f.machines, "machine", nil, "`pattern` of machine types: g6.* (default: all; may be repeated)")
	s.StringSliceVar(&f.rules, "rule", nil, "`kind` of rule to try: "+kindNames()+" (default: all; may be repeated)")
	s.IntVar(&f.batch, "batch", 0, "`requests` of a batch at most (default: 1, 2, 4 ... 64 are tried)")
	s.StringVar(&f.wait, "wait", "", "`span` that a batch waits for more requests (default: several are tried)")
	s.IntVar(&f.exactly, "machines", 0, "`number` of machines; for elastic rules the largest number (default: as few "+
		"as meet the target)")
	s.IntVar(&f.most, "max-machines", 64, "`number` of machines at most, 1 to 1000")
	s.StringVar(&f.cold, "cold-start", "90s", "`span` from the start of a machine to its first answer")
	s.StringVar(&f.keep, "keep-alive", "5m", "`span` that a machine without requests is kept")
	s.StringVar(&f.poll, "poll", "15s", "`span` between two decisions to start machines")
	s.StringVar(&f.hours, "warm", "", "`hours` in UTC with a warm pool: 8-18 (default: the hours that hold 90% of the "+
		"requests)")
	s.StringVar(&f.form, "manifest", "", "`form` of a manifest to write: hpa or keda (default: none)")
	s.StringVarP(&f.output, "output", "o", "", "`file` of the manifest, which must not exist (default: none)")
	s.StringVar(&f.deployment, "deployment", "model-server", "`name` of the deployment that the manifest scales")
	s.StringVar(&f.metric, "metric", "requests_in_flight", "`name` of the metric of requests that a pod has")
	s.StringVar(&f.prometheus, "prometheus", "http://prometheus-server.monitoring", "`address` of the Prometheus server "+
		"that KEDA queries")
	_ = cmd.MarkFlagRequired("trace")
	_ = cmd.MarkFlagRequired("latency")
	_ = cmd.MarkFlagFilename("trace", "csv")
	_ = cmd.MarkFlagFilename("measured", "csv")
	_ = cmd.MarkFlagFilename("serverless", "yaml", "yml")
}

func kindNames() string {
	var names []string
	for _, k := range simulation.Kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// ask reads all flags but those of offers and of the manifest.
func (f *flags) ask(cmd *cobra.Command) (ask serving.Ask, err error) {
	if f.model == "" && f.measured == "" {
		return ask, errors.New("say how long the model takes: --model MODEL for an estimate, or --measured FILE")
	}
	if ask.Options.Targets, err = simulation.ParseTargets(f.latency); err != nil {
		return ask, fmt.Errorf("--latency: %w", err)
	}
	if ask.Formats, err = load.ParseFormats(f.formats); err != nil {
		return ask, fmt.Errorf("--format %w", err)
	}
	if f.model == "" && cmd.Flags().Changed("format") {
		return ask, errors.New("--format needs --model: without it scrimp does not know the size of the weights")
	}
	if err := f.options(cmd, &ask.Options); err != nil {
		return ask, err
	}
	err = f.files(&ask)
	return ask, err
}

// options reads the flags that say which rules are tried.
func (f *flags) options(cmd *cobra.Command, o *serving.Options) (err error) {
	given := cmd.Flags().Changed
	if o.Kinds, err = f.kinds(given); err != nil {
		return err
	}
	if err := f.counts(given, o); err != nil {
		return err
	}
	if err := f.apart(given, o.Kinds); err != nil {
		return err
	}
	if err := f.spans(given, o); err != nil {
		return err
	}
	if given("warm") {
		if o.Warm, err = load.ParseHours(f.hours); err != nil {
			return fmt.Errorf("--warm %w", err)
		}
	}
	return nil
}

// kinds returns the kinds of rule that are tried: all, unless --rule names some.
func (f *flags) kinds(given func(string) bool) (list []simulation.Kind, err error) {
	if !given("rule") {
		return simulation.Kinds, nil
	}
	for _, name := range f.rules {
		k := simulation.Kind(name)
		if !slices.Contains(simulation.Kinds, k) {
			return nil, fmt.Errorf("--rule %q is none of %s", name, kindNames())
		}
		if !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list, nil
}

// counts reads the flags that are whole numbers.
func (f *flags) counts(given func(string) bool, o *serving.Options) error {
	for _, n := range []struct {
		flag        string
		value, most int
	}{{"batch", f.batch, load.MaxBatch}, {"machines", f.exactly, 1000}, {"max-machines", f.most, 1000}} {
		if given(n.flag) && (n.value < 1 || n.value > n.most) {
			return fmt.Errorf("--%s %d: give 1 to %d", n.flag, n.value, n.most)
		}
	}
	if given("batch") {
		o.Batches = []int{f.batch}
	}
	o.Machines, o.Exactly = f.most, given("machines")
	if o.Exactly && given("max-machines") {
		return errors.New("--machines and --max-machines do not go together: the first is exact")
	}
	if o.Exactly {
		o.Machines = f.exactly
	}
	return nil
}

// spans reads the flags that are spans of time.
func (f *flags) spans(given func(string) bool, o *serving.Options) (err error) {
	for _, d := range []struct {
		flag, text string
		to         *time.Duration
	}{{"cold-start", f.cold, &o.Cold}, {"keep-alive", f.keep, &o.Keep}, {"poll", f.poll, &o.Poll}} {
		if *d.to, err = span(d.flag, d.text); err != nil {
			return err
		}
	}
	if given("wait") {
		w, err := span("wait", f.wait)
		if err != nil {
			return err
		}
		o.Waits = []time.Duration{w}
	}
	return nil
}

// apart refuses flags that no rule of those that are tried would use.
func (f *flags) apart(given func(string) bool, kinds []simulation.Kind) error {
	only := func(list ...simulation.Kind) bool {
		return !slices.ContainsFunc(kinds, func(k simulation.Kind) bool { return !slices.Contains(list, k) })
	}
	switch {
	case given("warm") && !slices.Contains(kinds, simulation.WarmHours):
		return errors.New("--warm is for warm-hours, which --rule leaves out: add --rule warm-hours, or leave --warm out")
	case given("wait") && (f.batch == 1 || only(simulation.Fixed)):
		return errors.New("--wait is for batches, and a batch of one request does not wait: leave --wait out")
	case given("batch") && (f.batch == 1 && only(simulation.Batched) || f.batch > 1 && only(simulation.Fixed)):
		return errors.New("--batch and --rule do not go together: fixed answers one request at a time, batched several")
	}
	for _, name := range []string{"cold-start", "keep-alive", "poll"} {
		if given(name) && only(simulation.Fixed, simulation.Batched) {
			return fmt.Errorf("--%s is for rules that start machines, which --rule leaves out: leave it out", name)
		}
	}
	return nil
}

func span(flag, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 24*time.Hour {
		return 0, fmt.Errorf("--%s %q is not a span from 0 to 24h, such as 90s", flag, text)
	}
	return d, nil
}

// warm chooses the hours of a warm pool where none are given. It notes the hours, or why there are none, and refuses
// hours of the day for a trace that has no dates.
func (f *flags) warm(ask *serving.Ask) (notes []string, err error) {
	kinds := ask.Options.Kinds
	only := slices.Equal(kinds, []simulation.Kind{simulation.WarmHours})
	switch {
	case !slices.Contains(kinds, simulation.WarmHours):
		return nil, nil
	case !ask.Trace.Dated && (f.hours != "" || only):
		return nil, errors.New("the trace counts seconds from its own start, so that its hours of the day are unknown: " +
			"write dates such as 2026-03-02T08:00:00Z or Unix time, or leave --warm and --rule warm-hours out")
	case f.hours != "" || !ask.Trace.Dated:
		return nil, nil
	}
	h, ok := ask.Trace.Busiest()
	if !ok {
		return []string{"no warm pool is tried: the trace is shorter than a day, or 90 % of its requests need all hours " +
			"(--warm 8-18 tries one)"}, nil
	}
	ask.Options.Warm = h
	return []string{fmt.Sprintf("the hours %s hold 90 %% of the requests: warm-hours keeps machines in them (--warm)",
		h)}, nil
}

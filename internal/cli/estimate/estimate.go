package estimate

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/offers"
	"scrimp/internal/cli/pastruns"
	"scrimp/internal/cli/show/sizing"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
)

// formats are the precisions that --precision takes.
var formats = []string{"fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "bf16-true", "fp16-true", "mxfp8", "nvfp4", "amp"}

// estimateFlags describe a run.
type estimateFlags struct {
	model, gpu, precision, checkpointing, resize, program string
	tokens, rows                                          string
	seq, micro, global, gather, epochs, trees, depth      float64
	tp, pp, price, features                               float64
	decoded, models                                       bool
	zero                                                  int
	kinds                                                 []string // the forms of --gpu, if there are several
	counted                                               bool     // --gpu has a count
	lora, qlora                                           bool

	batch     string
	calibrate []string
	accuracy  bool
	measured  bool
	runs      float64
	per       string
	most      int
}

func (f *estimateFlags) add(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.model, "model", "", "`what` is trained: a published name, a config.json, an ONNX file, a shape, or "+
		"\"measured: 120 samples/s on L4\" (default: none, --batch or --accuracy is given)")
	s.StringVar(&f.gpu, "gpu", "", "`kind` and count: H100-SXM-80GB:8; H100 is all forms that it is sold in (default: "+
		"every kind with a price)")
	s.StringVar(&f.precision, "precision", "bf16", "`format` of the matrix products: fp32, tf32, fp16, bf16, fp8, "+
		"fp4; fp16 where an accelerator has no bf16; bf16-true keeps weights and optimiser in it too")
	s.Float64Var(&f.seq, "seq", 0, "`tokens` a sample (default 2048 for a transformer, or the most that its file says "+
		"it takes)")
	s.Float64Var(&f.micro, "micro", 0, "`samples` an accelerator takes in at a time (default: the largest power of "+
		"two that fits)")
	s.Float64Var(&f.global, "global", 0, "`samples` a step over all accelerators (default: micro × accumulate × replicas)")
	s.Float64Var(&f.gather, "accumulate", 1, "micro-batches whose gradients are summed to a step")
	s.StringVar(&f.checkpointing, "checkpointing", "", "activation checkpointing: none, selective, full "+
		"(default: none; full with --qlora, as PEFT does)")
	s.IntVar(&f.zero, "zero", 0, "ZeRO `stage`: 1 shares out the optimiser, 2 gradients too, 3 weights too (as FSDP does)")
	s.BoolVar(&f.lora, "lora", false, "train small matrices beside frozen 16 bit weights (default: train all of them)")
	s.BoolVar(&f.qlora, "qlora", false, "train small matrices beside frozen 4 bit weights (default: train all of them)")
	s.Float64Var(&f.tp, "tp", 1, "tensor parallel degree")
	s.Float64Var(&f.pp, "pp", 1, "pipeline stages")
	s.StringVar(&f.tokens, "tokens", "", "`count` of tokens to train on: 2B, 350M (default: none, and so no time)")
	s.Float64Var(&f.epochs, "epochs", 0, "times that --rows are passed through (default: once)")
	s.StringVar(&f.rows, "rows", "", "`count` of samples, or of a table's rows (default: none)")
	s.Float64Var(&f.trees, "trees", 0, "boosted trees: how many")
	s.Float64Var(&f.depth, "depth", 0, "boosted trees: how deep")
	s.Float64Var(&f.features, "features", 0, "boosted trees: columns of the table (default 12, and the answer says so)")
	s.BoolVar(&f.decoded, "decoded", false, "images come decoded, or the accelerator decodes them (default: the host's "+
		"processors do)")
	s.StringVar(&f.resize, "resize", "", "progressive resizing as `pixels:share,…`: 128:0.5,224:0.5; one size without "+
		"a share (default: 224 throughout)")
	s.StringVar(&f.program, "program", "", "`source` of the calibration's runs that your program is the same as "+
		"(default: one that nothing is known of)")
	s.Float64Var(&f.price, "price", 0, "`dollars` an hour for all accelerators (default: the lowest list price on "+
		"demand of machines that carry them)")
	s.BoolVar(&f.models, "models", false, "list the published models with their names at huggingface.co (default: "+
		"estimate)")
	s.StringVar(&f.batch, "batch", "", "CSV `file` of runs in the form of the published measurements: one JSON object "+
		"is written for each (default: none)")
	s.StringSliceVar(&f.calibrate, "calibrate", nil, "CSV `file` of measured runs to learn from, besides "+
		pastruns.TableName+" in the data folder (may be repeated; default: none)")
	s.BoolVar(&f.accuracy, "accuracy", false, "show past errors by kind: of your runs what was expected beside what "+
		"came out, of tables each run as if it had not been measured (default: estimate)")
	s.BoolVar(&f.measured, "measured", false, "list the measured runs of yours that estimates learn from, newest "+
		"first (default: estimate)")
	s.Float64Var(&f.runs, "runs", 0, "`number` of such runs in a programme of experiments")
	s.StringVar(&f.per, "per", "week", "in which `span` the runs are: day, week, month, year")
	s.IntVar(&f.most, "limit", 15, "how many accelerators to show; 0 is all; --json has all")
}

func (a *app) estimateCmd() *cobra.Command {
	var f estimateFlags
	cmd := &cobra.Command{
		Use:   "estimate --model WHAT",
		Short: "Estimate memory, time and dollars of a training run", GroupID: command.GroupMoney,
		Long: `Estimates memory by component, throughput, time and dollars of a training run, each with a range that
holds four of five measured runs, and a sentence that names the source.

N accelerators are those of one machine where one is sold that carries them, and else of several, with the
network between them; its processors decode images. The answer names the machine.

A model is a published name (llama-3-8b, meta-llama/Llama-3.1-8B-Instruct, resnet-50; --models lists them), a
config.json in the form of Hugging Face, an ONNX file, a shape ("transformer layers=32 dim=4096 heads=32
vocab=32000", "cnn gmacs=4.1 activations=11.1 params=25.6M", "trees features=28"), or a measurement
("measured: 120 samples/s on L4").

It learns from measured runs: those of the data folder's jobs that name their model and ran on an
accelerator (--measured lists them), measured.csv in the data folder, and --calibrate, tables in the form of
the published measurements (docs/estimate.md). Without any it is arithmetic alone, and says so.

Exit status: 0 done, 1 error.`,
		Example: "  scrimp estimate --model llama-3-8b --tokens 2B --precision bf16 --gpu H100-SXM-80GB:8 --zero 3\n" +
			"  scrimp estimate --model mistral-7b --qlora --tokens 10M\n" +
			"  scrimp estimate --model config.json --lora --seq 4096 --epochs 3 --rows 50k\n" +
			"  scrimp estimate --model trees --rows 10M --trees 500 --depth 8 --features 28 --gpu T4\n" +
			"  scrimp estimate --model resnet-50 --rows 1.28M --epochs 90 --resize 128:0.5,224:0.5 --runs 40 --per week\n" +
			"  scrimp estimate --batch rows.csv --calibrate calib.csv --json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.estimate(cmd.Context(), f)
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) estimate(ctx context.Context, f estimateFlags) error {
	c, _, err := offers.LoadCatalog(a.App)
	if err != nil {
		return err
	}
	if f.most < 0 {
		return fmt.Errorf("--limit %d: must be a whole number from 0 up; 0 shows all", f.most)
	}
	if f.models {
		return a.models()
	}
	if f.accuracy || f.measured {
		return a.past(ctx, f)
	}
	learned, err := pastruns.Rows(ctx, a.App, f.calibrate)
	if err != nil {
		return err
	}
	chips, prices := hardware.Catalogued(), hardware.NewListed(c)
	switch {
	case f.batch != "":
		return a.batch(f.batch, estimate.New(chips, prices, learned))
	case f.model == "":
		return errors.New("nothing to estimate: give --model, --batch or --accuracy; scrimp estimate --help shows examples")
	}
	q, own, err := f.ask(chips)
	if err != nil {
		return err
	}
	if q.Program == "" {
		q.Program = runhistory.Own // the stack of the user's own runs, if there are any
	}
	e := estimate.New(chips, prices, append(learned, own...))
	runs, err := f.weekly()
	if err != nil {
		return err
	}
	f.counted = q.Count > 0
	dates := prices.Dates()
	if q.Price > 0 {
		dates = ""
	}
	return a.answer(e, q, f, runs, dates)
}

// batch prints an estimate for each row of a table.
func (a *app) batch(file string, e *estimate.Estimator) error {
	rows, err := pastruns.ReadTable(file)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := a.Print(e.Estimate(r.Question())); err != nil {
			return err
		}
	}
	return nil
}

// answer prints one estimate, or the table of all accelerators.
func (a *app) answer(e *estimate.Estimator, q estimate.Request, f estimateFlags, runs float64, dates string) error {
	whole := func(o estimate.Option) sizing.Page {
		v := sizing.Page{Model: q.Model.Name, Option: o}
		if runs > 0 {
			p := o.Programme(runs)
			v.Programme = &p
		}
		return v
	}
	if q.Chip != "" {
		return a.one(e, q, f, whole)
	}
	list, err := options(e, q, f.kinds)
	if err != nil {
		return fmt.Errorf("estimate %s: %w", q.Model.Name, err)
	}
	if !a.JSON {
		a.Printf("%s", sizing.Options(list, f.most, dates, a.Place()))
		switch {
		case len(list) == 0:
			a.Printf("%s", sizing.NoOption(q.Model.Name, f.gpu, a.Place()))
			a.help(e, q, f)
		case list[0].Cost != nil:
			a.Printf("%s", sizing.Knobs(f.knobs(e, q, list[0].Cost.Value), a.Place()))
		}
		if runs > 0 && len(list) > 0 {
			a.Printf("\n%s", sizing.Text(whole(list[0]), a.Place()))
		}
		return nil
	}
	if len(list) == 0 {
		a.Notef("%s", sizing.NoOption(q.Model.Name, f.gpu, a.Place()))
	}
	for _, o := range list {
		if err := a.Print(whole(o)); err != nil {
			return err
		}
	}
	return nil
}

// one prints the estimate for one accelerator, and what would help where the work does not fit on it.
func (a *app) one(e *estimate.Estimator, q estimate.Request, f estimateFlags,
	whole func(estimate.Option) sizing.Page) error {
	o, err := e.Answer(q)
	if err != nil {
		return fmt.Errorf("estimate %s: %w", q.Model.Name, err)
	}
	if a.JSON {
		return a.Print(whole(o))
	}
	a.Printf("%s", sizing.Text(whole(o), a.Place()))
	if o.Fits != nil && !*o.Fits {
		a.help(e, q, f)
	}
	return nil
}

// help prints the flags that would make a run fit.
func (a *app) help(e *estimate.Estimator, q estimate.Request, f estimateFlags) {
	list := f.knobs(e, q, 0)
	if len(list) == 0 && q.Model.Text() {
		a.Printf("%s", sizing.Unheld(f.counted, a.Place()))
		return
	}
	a.Printf("%s", sizing.Knobs(list, a.Place()))
}

// models lists the published models.
func (a *app) models() error {
	list := sizing.PublishedModels()
	return command.ShowEach(a.App, list, sizing.ModelTable(list, a.Place()))
}

package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

type options struct {
	steps      int64
	calibrate  time.Duration
	rate       float64 // the highest learning rate
	warmup     float64 // number of steps to it
	checkpoint string
	saveEvery  time.Duration
	out        string
	seed       uint64
	corpus     string
	sample     bool
	logEvery   int64
}

func main() {
	o, err := parse(os.Args[1:], os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chargpt:", err)
		os.Exit(2)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	code, err := run(o, stop, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chargpt:", err)
	}
	os.Exit(code)
}

// parse reads the flags, with defaults from the environment.
func parse(args []string, env func(string) string) (options, error) {
	o := options{saveEvery: 10 * time.Second, checkpoint: "checkpoints"}
	if err := o.environment(env); err != nil {
		return o, err
	}
	f := flag.NewFlagSet("chargpt", flag.ContinueOnError)
	f.Int64Var(&o.steps, "steps", 0, "`steps` to train in all; 0: from the environment variable STEPS")
	f.DurationVar(&o.calibrate, "calibrate", 0, "measure for about 2s, print how many steps take this `long` on this "+
		"machine, and exit")
	f.StringVar(&o.checkpoint, "checkpoint", o.checkpoint, "`folder` of the checkpoints")
	f.DurationVar(&o.saveEvery, "save-every", o.saveEvery, "real time between two checkpoints; 0: after every step")
	f.StringVar(&o.out, "out", "weights.bin", "`file` for the final weights")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the first weights and of the order of the text")
	f.Float64Var(&o.rate, "lr", peakRate, "highest learning rate")
	f.Float64Var(&o.warmup, "warmup", warmup, "`steps` until the learning rate is at its highest")
	f.StringVar(&o.corpus, "corpus", "", "Go installation or `folder` of text to learn from (default: GOROOT, then go "+
		"env GOROOT)")
	f.BoolVar(&o.sample, "sample", false, "print text that the model writes, at the end")
	f.Int64Var(&o.logEvery, "log-every", 50, "`steps` between two progress lines")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	if s := env("STEPS"); o.steps == 0 && s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return o, fmt.Errorf("STEPS is %q, not a number of steps", s)
		}
		o.steps = n
	}
	switch {
	case o.steps < 1 && o.calibrate == 0:
		return o, errors.New("how many steps? give --steps N, or set STEPS; --calibrate 1m prints how many take a " +
			"minute here")
	case !(o.rate > 0 && o.rate < 1e3 && o.warmup >= 1 && o.warmup < 1e9):
		return o, errors.New("--lr wants more than 0 and less than 1000, --warmup 1 or more")
	case o.logEvery < 1 || o.saveEvery < 0 || o.calibrate < 0:
		return o, errors.New("--log-every wants 1 or more, --save-every and --calibrate no negative time")
	}
	return o, nil
}

// environment reads the defaults that scrimp sets.
func (o *options) environment(env func(string) string) error {
	if dir := env("SCRIMP_CHECKPOINT_DIR"); dir != "" {
		o.checkpoint = dir
	}
	s := env("SCRIMP_CHECKPOINT_INTERVAL_S")
	if s == "" {
		return nil
	}
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil || !(seconds >= 0 && seconds < 1e9) {
		return fmt.Errorf("SCRIMP_CHECKPOINT_INTERVAL_S is %q, not a number of seconds", s)
	}
	if seconds > 0 {
		o.saveEvery = time.Duration(seconds * float64(time.Second))
	}
	return nil
}

// run trains and returns the exit status. A signal on stop requests a save and an end.
func run(o options, stop <-chan os.Signal, say io.Writer) (int, error) {
	root, err := findCorpus(o.corpus)
	if err != nil {
		return 1, err
	}
	text, err := readCorpus(root)
	if err != nil {
		return 1, err
	}
	t := newTrainer(text, o.seed)
	t.adam.peak, t.adam.warmup = o.rate, o.warmup
	if o.calibrate > 0 {
		fmt.Fprintln(say, t.calibrate(o.calibrate, o.logEvery))
		return 0, nil
	}
	fmt.Fprintf(say, "corpus %s: %d files of %s, %d characters; %d weights\n",
		text.hash, text.files, text.from, len(text.train)+len(text.val), len(t.model.params.flat))
	if err := os.MkdirAll(o.checkpoint, 0o755); err != nil {
		return 1, fmt.Errorf("make the checkpoint folder: %w", err)
	}
	resumed, err := t.resume(o.checkpoint, say)
	if err != nil {
		return 1, err
	}
	if resumed {
		fmt.Fprintf(say, "resumed from step %d\n", t.step)
	}
	if t.step > o.steps {
		return 1, fmt.Errorf("the checkpoint in %s is at step %d, past the %d asked for: ask for more steps, or use "+
			"another --checkpoint folder", o.checkpoint, t.step, o.steps)
	}
	if code, err := t.train(o, resumed, stop, say); code != 0 || err != nil {
		return code, err
	}
	weights := appendFloats([]byte(fmt.Sprintf("chargpt weights 1 step %d corpus %s\n", t.step, text.hash)),
		t.model.params.flat)
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return 1, fmt.Errorf("make the folder of the weights: %w", err)
	}
	if err := writeAtomic(o.out, weights); err != nil {
		return 1, fmt.Errorf("write the weights: %w", err)
	}
	if o.sample {
		fmt.Fprintf(say, "sample:\n%s\n", t.sample("func ", 400))
	}
	fmt.Fprintf(say, "done: %d steps, loss %.4f, val %.4f, losses %x, weights %x in %s\n",
		t.step, t.mean, t.validate(), t.digest[:8], sha256.Sum256(weights), o.out)
	return 0, nil
}

// train steps to the end or until a signal on stop, and finally saves in either case. onDisk means that the current
// step is already saved. A status other than 0 means that the run is not complete.
func (t *trainer) train(o options, onDisk bool, stop <-chan os.Signal, say io.Writer) (int, error) {
	save := func() error {
		if err := t.save(o.checkpoint); err != nil {
			return err
		}
		fmt.Fprintf(say, "saved step %d\n", t.step)
		return nil
	}
	lastSave, lastLine, lastStep := time.Now(), time.Now(), t.step
	for t.step < o.steps {
		select {
		case s := <-stop:
			if onDisk {
				fmt.Fprintf(say, "saved step %d\n", t.step)
			} else if err := save(); err != nil {
				return 1, err
			}
			code := 130
			if s == syscall.SIGTERM {
				code = 143
			}
			return code, nil
		default:
		}
		t.advance()
		onDisk = false
		if math.IsNaN(t.mean) || math.IsInf(t.mean, 0) {
			return 1, fmt.Errorf("step %d: the loss is %v: the checkpoint before it is kept", t.step, t.mean)
		}
		if t.step%o.logEvery == 0 || t.step == 1 || t.step == o.steps {
			val := t.validate()
			seconds := max(time.Since(lastLine).Seconds(), 1e-6)
			speed := float64((t.step-lastStep)*int64(len(t.tokens))) / seconds
			fmt.Fprintf(say, "step %d/%d loss %.4f val %.4f tokens/s %.0f\n", t.step, o.steps, t.mean, val, speed)
			lastLine, lastStep = time.Now(), t.step
		}
		if time.Since(lastSave) >= o.saveEvery || t.step == o.steps {
			if err := save(); err != nil {
				return 1, err
			}
			lastSave, onDisk = time.Now(), true
		}
	}
	return 0, nil
}

// calibrate returns how many steps take about d of wall time here, including their progress lines, rounded to two
// digits. It measures for about 2 s.
func (t *trainer) calibrate(d time.Duration, logEvery int64) int64 {
	for range 10 {
		t.advance() // fills caches and runs the first collections
	}
	begin, n := time.Now(), int64(0)
	for time.Since(begin) < 2*time.Second {
		t.advance()
		if n++; n%logEvery == 0 {
			t.validate()
		}
	}
	steps := int64(float64(n) * d.Seconds() / time.Since(begin).Seconds())
	unit := int64(1)
	for steps/unit >= 100 {
		unit *= 10
	}
	return max(1, (steps+unit/2)/unit*unit)
}

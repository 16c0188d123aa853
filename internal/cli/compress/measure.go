package compress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/work/compress/judge"
)

// place stands for the file of the model in a command.
const place = "{model}"

// maxOutput bounds the output of a command that is searched, in bytes.
const maxOutput = 4 << 20

// limited keeps the first maxOutput bytes.
type limited struct {
	bytes.Buffer
	over bool
}

func (l *limited) Write(b []byte) (int, error) {
	keep := b[:min(len(b), maxOutput-l.Len())]
	l.over = l.over || len(keep) < len(b)
	l.Buffer.Write(keep)
	return len(b), nil
}

// run runs a command of the user in a shell for one model and returns what it prints.
func (a *app) run(ctx context.Context, flag, line, model string) (string, error) {
	file, err := filepath.Abs(model)
	if err != nil {
		return "", err
	}
	quoted := "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	return a.output(ctx, flag, model, exec.CommandContext(ctx, "/bin/sh", "-c", strings.ReplaceAll(line, place, quoted)))
}

// output runs a command for one model and returns what it prints.
func (a *app) output(ctx context.Context, flag, model string, cmd *exec.Cmd) (string, error) {
	var out limited
	cmd.Stdout, cmd.Stderr = &out, io.Writer(a.Err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("--%s: the command fails for %s: %w", flag, model, err)
	case out.over:
		return "", fmt.Errorf("--%s: the command prints more than %d bytes for %s", flag, maxOutput, model)
	}
	return out.String(), nil
}

// numbers runs a command and finds its numbers.
func (a *app) numbers(ctx context.Context, flag, line, pattern, model string, p judge.Pattern) ([]float64, error) {
	text, err := a.run(ctx, flag, line, model)
	if err != nil {
		return nil, err
	}
	list, err := p.Numbers(text)
	if err != nil {
		return nil, fmt.Errorf("--%s: the command of --%s for %s: %w", pattern, flag, model, err)
	}
	return list, nil
}

// measured holds what the commands of the user print for the original and for the copy.
type measured struct {
	quality       *judge.Quality
	before, after [][]time.Duration // latencies of each turn
}

// evaluate reads the quality of a model from the last number that --eval prints for it.
func (a *app) evaluate(ctx context.Context, model string, f flags) (float64, error) {
	list, err := a.numbers(ctx, "eval", f.eval, "metric", model, f.quality)
	if err != nil {
		return 0, err
	}
	return list[len(list)-1], nil
}

// inRuntime returns the latencies of a model in ONNX Runtime, in milliseconds.
func (a *app) inRuntime(ctx context.Context, model string, f flags) ([]float64, error) {
	text, err := a.output(ctx, "runtime", model, f.timer.command(ctx, model))
	if err != nil {
		return nil, err
	}
	f.timer.see(text)
	return f.milliseconds.Numbers(text)
}

// time returns the latencies of one run of --latency or --runtime.
func (a *app) time(ctx context.Context, model string, f flags) ([]time.Duration, error) {
	flag := "latency"
	var found []float64
	var err error
	if f.timer != nil {
		flag = "runtime"
		found, err = a.inRuntime(ctx, model, f)
	} else {
		found, err = a.numbers(ctx, flag, f.latency, "latency-metric", model, f.milliseconds)
	}
	if err != nil {
		return nil, err
	}
	if len(found) > maxLatencies/f.repeat {
		return nil, errors.New("--latency: the command prints too many latencies; let it print fewer")
	}
	list, err := judge.Latencies(found)
	if err != nil {
		return nil, fmt.Errorf("--%s: the command for %s: %w", flag, model, err)
	}
	return list, nil
}

// maxLatencies bounds the latencies of a model.
const maxLatencies = 1 << 22

// original runs each command once on the original, before scrimp compresses it: a command or a pattern that is wrong
// fails here and costs no copy.
func (a *app) original(ctx context.Context, model string, f flags) (m measured, err error) {
	if f.eval != "" {
		m.quality = &judge.Quality{Tolerance: f.tolerance, LowerIsBetter: f.lower}
		if m.quality.Before, err = a.evaluate(ctx, model, f); err != nil {
			return m, err
		}
	}
	if f.timed() { // it warms the machine up, and does not count
		_, err = a.time(ctx, model, f)
	}
	return m, err
}

// compare runs the commands on the copy. It times both models in pairs of turns, so that a slow minute of the machine
// meets both, and each model begins every second pair.
func (a *app) compare(ctx context.Context, model string, f flags, m *measured) (err error) {
	if f.eval != "" {
		if m.quality.After, err = a.evaluate(ctx, f.output, f); err != nil {
			return err
		}
	}
	if !f.timed() {
		return nil
	}
	for turn := range 2 * f.repeat {
		file, to := model, &m.before
		if turn%4 == 1 || turn%4 == 2 { // original, copy, copy, original
			file, to = f.output, &m.after
		}
		list, err := a.time(ctx, file, f)
		if err != nil {
			return err
		}
		*to = append(*to, list)
	}
	return nil
}

// quantile returns a quantile of the latencies of both models.
func (m *measured) quantile(q float64) judge.Pair[time.Duration] {
	return judge.Pair[time.Duration]{Before: judge.Quantile(slices.Concat(m.before...), q),
		After: judge.Quantile(slices.Concat(m.after...), q)}
}

package compress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/work/compress"
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
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", strings.ReplaceAll(line, place, quoted))
	var out limited
	cmd.Stdout, cmd.Stderr = &out, io.Writer(a.Err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
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
func (a *app) numbers(ctx context.Context, flag, line, model string, p compress.Pattern) ([]float64, error) {
	text, err := a.run(ctx, flag, line, model)
	if err != nil {
		return nil, err
	}
	list, err := p.Numbers(text)
	if err != nil {
		return nil, fmt.Errorf("--%s: the command for %s: %w", flag, model, err)
	}
	return list, nil
}

func (a *app) evaluate(ctx context.Context, model string, f flags) (*compress.Quality, error) {
	q := &compress.Quality{Tolerance: f.tolerance, LowerIsBetter: f.lower}
	for _, one := range []struct {
		model string
		to    *float64
	}{{model, &q.Before}, {f.output, &q.After}} {
		list, err := a.numbers(ctx, "eval", f.eval, one.model, f.quality)
		if err != nil {
			return nil, err
		}
		*one.to = list[len(list)-1]
	}
	return q, nil
}

// time measures both models in turns, so that a slow minute of the machine meets both.
func (a *app) time(ctx context.Context, model string, f flags) (p50, p99 compress.Pair[time.Duration], err error) {
	var before, after []time.Duration
	for range f.repeat {
		for _, one := range []struct {
			model string
			to    *[]time.Duration
		}{{model, &before}, {f.output, &after}} {
			list, err := a.numbers(ctx, "latency", f.latency, one.model, f.milliseconds)
			if err != nil {
				return p50, p99, err
			}
			spans, err := compress.Latencies(list)
			if err != nil {
				return p50, p99, fmt.Errorf("--latency: the command for %s: %w", one.model, err)
			}
			if *one.to = append(*one.to, spans...); len(*one.to) > 1<<22 {
				return p50, p99, errors.New("--latency: the command prints too many latencies; let it print fewer")
			}
		}
	}
	pair := func(q float64) compress.Pair[time.Duration] {
		return compress.Pair[time.Duration]{Before: compress.Quantile(before, q), After: compress.Quantile(after, q)}
	}
	return pair(0.5), pair(0.99), nil
}

package jobfile

import (
	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/job/spec"
)

// Terms holds the fields of a job file that flags can set.
type Terms struct {
	name, image, deadline, budget, gpu, priority, retry string
	anyGPU, spot, onDemand                              bool
}

// AddTerms adds the flags that set fields of the job.
func (f *Flags) AddTerms(cmd *cobra.Command) {
	t, flags := &f.Terms, cmd.Flags()
	const asFile = " (default: as the job file says)"
	flags.StringVar(&t.name, "name", "", "call the job by this `name`"+asFile)
	flags.StringVar(&t.deadline, "deadline", "", "be done by this `time`, as 6h or \"2026-12-01 18:00\", or none"+
		asFile)
	flags.StringVar(&t.budget, "budget", "", "cost at most this `amount`, as '$25.00', or none"+asFile)
	flags.StringVar(&t.gpu, "gpu", "", "`kind` and count of accelerators, as H100, A100:8 or any:2"+asFile)
	flags.BoolVar(&t.anyGPU, "any-gpu", false, "take GPUs of any kind, as many as the job file says, else one"+
		asFile)
	flags.BoolVar(&t.spot, "spot", false, "run on spot machines only"+asFile)
	flags.BoolVar(&t.onDemand, "on-demand", false, "run on on-demand machines only"+asFile)
	flags.StringVar(&t.image, "image", "", "run in this container image, where machines are containers: a `reference` "+
		"as docker pull takes it, or none"+asFile)
	flags.StringVar(&t.priority, "priority", "", "critical, normal or low `priority`"+asFile)
	flags.StringVar(&t.retry, "retry", "", "try a program again that failed at most `N` times"+asFile)
	cmd.MarkFlagsMutuallyExclusive("gpu", "any-gpu")
	cmd.MarkFlagsMutuallyExclusive("spot", "on-demand")
	_ = cmd.RegisterFlagCompletionFunc("priority", command.Words("critical", "normal", "low"))
	_ = cmd.RegisterFlagCompletionFunc("gpu", command.CompleteAccelerator)
	for _, name := range []string{"name", "image", "deadline", "budget", "retry"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// settings returns the fields that flags set.
func (t Terms) settings() (list []spec.Setting) {
	add := func(flag, field, text string) {
		if text != "" {
			list = append(list, spec.Setting{Flag: "--" + flag, Field: field, Text: text})
		}
	}
	add("name", "name", t.name)
	add("deadline", "deadline", t.deadline)
	add("budget", "budget.dollars", t.budget)
	add("gpu", "resources.accelerator", t.gpu)
	if t.anyGPU {
		add("any-gpu", "resources.accelerator", spec.AnyAccelerator)
	}
	if t.spot {
		add("spot", "resources.capacity", "spot")
	}
	if t.onDemand {
		add("on-demand", "resources.capacity", "on-demand")
	}
	add("image", "image", t.image)
	add("priority", "priority", t.priority)
	add("retry", "retry.max", t.retry)
	return list
}

// Given reports whether a flag sets a field.
func (t Terms) Given() bool { return t != Terms{} }

package rest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/engine/slurm/scheduler"
)

// restOptions are the sbatch options that slurmrestd supports, with their names there.
var restOptions = map[string]struct {
	name, older string // older: in v0.0.38; empty: the same
	form        form
}{
	"nice": {name: "nice", form: aNumber}, "core-spec": {name: "core_specification", form: aNumber},
	"thread-spec":      {name: "thread_specification", form: aNumber},
	"threads-per-core": {name: "threads_per_core", form: aNumber},
	"reservation":      {name: "reservation"}, "licenses": {name: "licenses"}, "prefer": {name: "prefer"},
	"cpu-freq": {name: "cpu_frequency"}, "mail-user": {name: "mail_user"},
	"mail-type": {name: "mail_type", form: aList},
	"exclude":   {name: "excluded_nodes", older: "exclude_nodes", form: aList},
	"nodelist":  {name: "required_nodes", older: "nodelist", form: aList},
}

// form is the encoding of an option's value.
type form int

const (
	aText form = iota
	aNumber
	aList // since v0.0.39; a text before
)

// CheckOption returns an error if an option cannot be sent to slurmrestd.
func CheckOption(name, value string) error {
	o, ok := restOptions[name]
	if !ok {
		return fmt.Errorf("slurmrestd has no option --%s: remove it, or remove rest", name)
	}
	if _, err := strconv.Atoi(value); o.form == aNumber && err != nil {
		return fmt.Errorf("option --%s is %q: slurmrestd takes a number", name, value)
	}
	return nil
}

// describe returns a job in slurmrestd's form: v0.0.38 uses the names of sbatch's options, later versions those of
// the controller.
func describe(o *scheduler.Order, version string) map[string]any {
	old := version == "v0.0.38"
	job := map[string]any{"name": o.Name, "comment": o.Comment, "partition": o.Partition, "tasks": o.Nodes,
		"tasks_per_node": 1, "cpus_per_task": o.CPUs, "dependency": "singleton", "standard_input": "/dev/null",
		"requeue": false}
	if o.Folder != "" {
		job["current_working_directory"], job["standard_output"] = o.Folder, o.Console()
	}
	for name, value := range map[string]string{"account": o.Account, "qos": o.QOS, "wckey": o.WCKey,
		"constraints": o.Constraint} {
		if value != "" {
			job[name] = value
		}
	}
	if old {
		older(o, job)
	} else {
		newer(o, job, version)
	}
	for _, option := range o.Options {
		name, value, _ := strings.Cut(strings.TrimPrefix(option, "--"), "=")
		r := restOptions[name]
		n, _ := strconv.Atoi(value) // already checked
		switch {
		case r.form == aNumber:
			job[r.name] = n
		case old && r.older != "":
			job[r.older] = value
		case r.form == aList && !old:
			job[r.name] = strings.Split(value, ",")
		default:
			job[r.name] = value
		}
	}
	return job
}

// older adds what v0.0.38 encodes differently.
func older(o *scheduler.Order, job map[string]any) {
	delete(job, "requeue") // 22.05 does not accept false
	job["no_requeue"] = true
	// v0.0.38 cannot signal only scripts: the listening step gets the signal and tells the script.
	job["signal"] = fmt.Sprintf("TERM@%d", int(o.Lead.Seconds()))
	job["nodes"] = []int{o.Nodes, o.Nodes}
	job["memory_per_node"] = int64(o.Memory >> 20)
	job["open_mode"] = "append"
	if o.Exclusive {
		job["exclusive"] = "exclusive"
	}
	if gres := o.GRES(); gres != "" {
		job["gres"] = gres
	}
	if o.Limit > 0 {
		job["time_limit"] = scheduler.Minutes(o.Limit)
	} else if o.Unlimited {
		job["time_limit"] = "UNLIMITED"
	}
	env := map[string]string{}
	for _, v := range scheduler.Environ() {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	job["environment"] = env
}

// later encodes the earliest start of a job.
func later(version string, at time.Time) any {
	switch version {
	case "v0.0.38":
		return at.Format("2006-01-02T15:04:05") // by slurmrestd's clock: a day more or less does not matter
	case "v0.0.39":
		return at.Unix()
	}
	return counted{Set: true, Number: at.Unix()}
}

// counted is a number since v0.0.39.
type counted struct {
	Set      bool  `json:"set"`
	Infinite bool  `json:"infinite"`
	Number   int64 `json:"number"`
}

// newer adds what v0.0.39 and later encode differently.
func newer(o *scheduler.Order, job map[string]any, version string) {
	job["kill_warning_signal"] = "TERM"
	job["kill_warning_delay"] = counted{Set: true, Number: int64(o.Lead / time.Second)}
	job["minimum_nodes"], job["maximum_nodes"] = o.Nodes, o.Nodes
	job["memory_per_node"] = counted{Set: true, Number: int64(o.Memory >> 20)}
	job["open_mode"] = []string{"APPEND"}
	if o.Exclusive {
		job["shared"] = []string{"none"}
	}
	if gres := o.GRES(); gres != "" {
		job["tres_per_node"] = "gres/" + gres
		if version == "v0.0.39" { // of 23.02, which does not accept the accounts' name for it
			job["tres_per_node"] = "gres:" + gres
		}
	}
	if o.Limit > 0 {
		job["time_limit"] = counted{Set: true, Number: int64(scheduler.Minutes(o.Limit))}
	} else if o.Unlimited {
		job["time_limit"] = counted{Set: true, Infinite: true}
	}
	job["environment"] = slices.Sorted(slices.Values(scheduler.Environ()))
}

package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/child"

	"scrimp/internal/engine"
)

// commands asks Slurm by its commands.
type commands struct {
	run    runner
	folder string // of the commands; "": PATH
	conf   string // SLURM_CONF; "": the server's own, or Slurm's default
}

// trialName is the job that is tried and not run.
const trialName = namePrefix + "examine"

func (c *commands) cluster(ctx context.Context, partitions []string) (*cluster, error) {
	all := &cluster{at: time.Now(), partitions: map[string]partition{}}
	list, err := c.run(ctx, "scontrol", "--oneliner", "show", "partition")
	if err != nil {
		return nil, err
	}
	config, err := c.run(ctx, "scontrol", "show", "config")
	if err != nil {
		return nil, err
	}
	all.config(config)
	for l := range strings.Lines(list) {
		f := fields(l)
		name := f["PartitionName"]
		if name == "" {
			continue
		}
		p := partition{state: f["State"], limit: limit(f["MaxTime"])}
		if n, err := strconv.Atoi(f["MaxNodes"]); err == nil { // and not UNLIMITED
			p.nodes = n
		}
		p.defaults = f["DefaultTime"] != "NONE" && f["DefaultTime"] != f["MaxTime"]
		mode := f["PreemptMode"]
		p.preempted = mode != "" && mode != "OFF" && mode != "WITHIN"
		if s, err := strconv.Atoi(f["GraceTime"]); err == nil && p.preempted {
			p.grace = time.Duration(s) * time.Second
		}
		all.partitions[name] = p
	}
	nodes, err := c.run(ctx, "sinfo", "--noheader", "--Node", "--partition="+strings.Join(partitions, ","),
		"--format=%N|%P|%c|%m|%G|%T|%f|%o|%n")
	if err != nil {
		return nil, err
	}
	for l := range strings.Lines(nodes) {
		if n, ok := readNode(strings.TrimSpace(l)); ok {
			all.nodes = append(all.nodes, n)
		}
	}
	return all, nil
}

func (c *commands) jobs(ctx context.Context) (all []*job, err error) {
	out, err := c.run(ctx, "squeue", "--noheader", "--all", "--states=all", "--user="+strconv.Itoa(os.Getuid()),
		"--format=%i|%T|%r|%S|%e|%N|%j|%k")
	if err != nil {
		return nil, err
	}
	for l := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(l, "\n"), "|", 8)
		if len(f) == 8 {
			all = append(all, &job{id: f[0], state: f[1], reason: f[2], start: moment(f[3]), end: moment(f[4]), nodes: f[5],
				name: f[6], comment: f[7]})
		}
	}
	return all, nil
}

// errNoAccounts says that the cluster keeps no accounts.
var errNoAccounts = errors.New("the cluster keeps no accounts")

func (c *commands) accounts(ctx context.Context, ids []string) (map[string]*job, error) {
	out, err := c.run(ctx, "sacct", "--noheader", "--allocations", "--parsable2", "--jobs="+strings.Join(ids, ","),
		"--format=JobIDRaw,State,Start,End,NodeList")
	if no, ok := errors.AsType[*commandError](err); ok && strings.Contains(no.text, "accounting storage is disabled") {
		return nil, errNoAccounts
	}
	if err != nil {
		return nil, err
	}
	jobs := map[string]*job{}
	for l := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(l), "|")
		if len(f) != 5 {
			continue
		}
		state, _, _ := strings.Cut(f[1], " ") // CANCELLED by 1000
		j := &job{id: f[0], state: state, start: moment(f[2]), end: moment(f[3]), nodes: f[4]}
		if strings.Contains(j.nodes, "None") {
			j.nodes = ""
		}
		jobs[j.id] = j
	}
	return jobs, nil
}

// arguments are those of sbatch.
func (o *order) arguments() []string {
	n := strconv.Itoa(o.nodes)
	args := []string{"--parsable", "--job-name=" + o.name, "--comment=" + o.comment, "--partition=" + o.partition,
		"--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--cpus-per-task=" + strconv.Itoa(o.cpus), "--no-requeue",
		"--dependency=singleton", fmt.Sprintf("--signal=B:TERM@%d", int(o.lead.Seconds())), "--export=ALL",
		"--input=/dev/null", "--open-mode=append", fmt.Sprintf("--mem=%dM", o.memory>>20)}
	if o.folder != "" {
		args = append(args, "--chdir="+o.folder, "--output="+o.console())
	}
	if o.exclusive {
		args = append(args, "--exclusive")
	}
	if gres := o.gres(); gres != "" {
		args = append(args, "--gres="+gres)
	}
	switch {
	case o.limit > 0:
		args = append(args, "--time="+strconv.Itoa(minutes(o.limit)))
	case o.unlimited:
		args = append(args, "--time=UNLIMITED")
	}
	for _, f := range [][2]string{{"account", o.account}, {"qos", o.qos}, {"wckey", o.wckey},
		{"constraint", o.constraint}} {
		if f[1] != "" {
			args = append(args, "--"+f[0]+"="+f[1])
		}
	}
	return append(args, o.options...)
}

func (c *commands) submit(ctx context.Context, o *order) (job string, err error) {
	out, err := c.run(ctx, "sbatch", append(o.arguments(), o.script())...)
	if err != nil {
		return "", refusal(err)
	}
	job, _, _ = strings.Cut(strings.TrimSpace(out), ";")
	if _, err := strconv.ParseUint(job, 10, 64); err != nil {
		return "", fmt.Errorf("sbatch answers %q, and no job", out)
	}
	return job, nil
}

func (c *commands) try(ctx context.Context, o *order) error {
	_, err := c.run(ctx, "sbatch", append(append([]string{"--test-only"}, o.arguments()...), "--wrap=true")...)
	if err != nil {
		return refusal(err)
	}
	return nil
}

func (c *commands) cancelPending(ctx context.Context, job string) error {
	_, err := c.run(ctx, "scancel", "--state=PENDING", job)
	return err
}

func (c *commands) cancel(ctx context.Context, job string) error {
	_, err := c.run(ctx, "scancel", job)
	return err
}

func (c *commands) endRanks(ctx context.Context, job, _ string, ranks []int) error {
	out, err := c.run(ctx, "squeue", "--noheader", "--steps", "--jobs="+job, "--format=%i|%j")
	if err != nil {
		return err
	}
	steps := map[string]string{}
	for l := range strings.Lines(out) {
		step, name, _ := strings.Cut(strings.TrimSpace(l), "|")
		steps[name] = step
	}
	for _, k := range ranks {
		asks := [][]string{{"--batch", "--signal=USR2", job}}
		if k > 0 {
			step := steps[fmt.Sprintf("rank-%d", k)]
			if step == "" {
				continue
			}
			asks = [][]string{{"--signal=KILL", step}, {step}} // srun waits for ever for one that is killed as it begins
		}
		for _, args := range asks {
			if _, no := c.run(ctx, "scancel", args...); !isUnknown(no) {
				err = errors.Join(err, no)
			}
		}
	}
	return err
}

func (c *commands) ready(context.Context) engine.Finding {
	var missing []string
	for _, name := range []string{"sbatch", "squeue", "scancel", "sinfo", "scontrol"} {
		path := name
		if c.folder != "" {
			path = filepath.Join(c.folder, name)
		}
		if _, err := exec.LookPath(path); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return engine.Finding{Name: "commands", Text: strings.Join(missing, ", ") + " missing: apt-get " +
			"install slurm-client, " +
			"run the server on a login node, or name their folder with commands in engines.yaml"}
	}
	return engine.Finding{Name: "commands", OK: true, Text: "sbatch, squeue, scancel, sinfo and scontrol are there"}
}

// advice looks for credentials that the controller does not take.
func (c *commands) advice(ctx context.Context, err error) (about, text string) {
	text = err.Error()
	if strings.Contains(strings.ToLower(text), "munge") || strings.Contains(text, "authentication") ||
		strings.Contains(text, "redential") || !c.vouched(ctx) { // without munge the commands hang and say nothing
		return "credentials", text + ": munge does not vouch for us: systemctl restart munge here; its key and the clock " +
			"must be those of the cluster (munge -n | unmunge)"
	}
	return "controller", text + ": scontrol ping says which controller is asked; set conf in engines.yaml where it is " +
		"another"
}

// vouched reports whether munge makes a credential for us, where it is there to be asked.
func (c *commands) vouched(ctx context.Context) bool {
	if _, err := exec.LookPath("munge"); err != nil {
		return true // nobody knows
	}
	args := []string{"--no-input", "--output=/dev/null"}
	conf := cmp.Or(c.conf, os.Getenv("SLURM_CONF"), "/etc/slurm/slurm.conf")
	text, _ := os.ReadFile(conf) // where it cannot be read munge has its usual socket
	if m := ofMunge.FindSubmatch(text); m != nil {
		args = append(args, "--socket="+string(m[1]))
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return child.Command(ctx, "munge", args...).Run() == nil
}

var ofMunge = regexp.MustCompile(`(?m)^AuthInfo=(?:.*,)?socket=([^,\s]+)`)

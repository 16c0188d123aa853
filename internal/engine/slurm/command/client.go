package command

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

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/lib/child"
	"scrimp/internal/lib/size"
)

// Client uses Slurm's commands.
type Client struct {
	Run    runner
	folder string // with the commands; empty: PATH
	conf   string // SLURM_CONF; empty: the server's own, or Slurm's default
}

var _ scheduler.Scheduler = (*Client)(nil)

// New returns a client for the commands in a folder, or in PATH if it is empty, with the given SLURM_CONF.
func New(folder, conf string) *Client {
	return &Client{Run: runnerOf(folder, conf), folder: folder, conf: conf}
}

// Cluster implements scheduler.Scheduler.
func (c *Client) Cluster(ctx context.Context, partitions []string) (*scheduler.Cluster, error) {
	all := &scheduler.Cluster{At: time.Now(), Partitions: map[string]scheduler.Partition{}}
	list, err := c.Run(ctx, "scontrol", "--oneliner", "show", "partition")
	if err != nil {
		return nil, err
	}
	config, err := c.Run(ctx, "scontrol", "show", "config")
	if err != nil {
		return nil, err
	}
	all.KillWait = killWait(config)
	for l := range strings.Lines(list) {
		f := fields(l)
		name := f["PartitionName"]
		if name == "" {
			continue
		}
		p := scheduler.Partition{State: f["State"], Limit: limit(f["MaxTime"])}
		if n, err := strconv.Atoi(f["MaxNodes"]); err == nil { // not UNLIMITED
			p.Nodes = n
		}
		p.Defaults = f["DefaultTime"] != "NONE" && f["DefaultTime"] != f["MaxTime"]
		mode := f["PreemptMode"]
		p.Preempted = mode != "" && mode != "OFF" && mode != "WITHIN"
		if s, err := strconv.Atoi(f["GraceTime"]); err == nil && p.Preempted {
			p.Grace = time.Duration(s) * time.Second
		}
		all.Partitions[name] = p
	}
	nodes, err := c.Run(ctx, "sinfo", "--noheader", "--Node", "--partition="+strings.Join(partitions, ","),
		"--format=%N|%P|%c|%m|%G|%T|%f|%o|%n")
	if err != nil {
		return nil, err
	}
	for l := range strings.Lines(nodes) {
		if n, ok := readNode(strings.TrimSpace(l)); ok {
			all.Nodes = append(all.Nodes, n)
		}
	}
	return all, nil
}

// Jobs implements scheduler.Scheduler.
func (c *Client) Jobs(ctx context.Context) (all []*scheduler.Job, err error) {
	out, err := c.Run(ctx, "squeue", "--noheader", "--all", "--states=all", "--user="+strconv.Itoa(os.Getuid()),
		"--format=%i|%T|%r|%S|%e|%N|%j|%k")
	if err != nil {
		return nil, err
	}
	for l := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(l, "\n"), "|", 8)
		if len(f) == 8 {
			all = append(all, &scheduler.Job{ID: f[0], State: f[1], Reason: f[2], Start: scheduler.Moment(f[3]),
				End: scheduler.Moment(f[4]), Nodes: f[5],
				Name: f[6], Comment: f[7]})
		}
	}
	return all, nil
}

// Accounts implements scheduler.Scheduler.
func (c *Client) Accounts(ctx context.Context, ids []string) (map[string]*scheduler.Job, error) {
	out, err := c.Run(ctx, "sacct", "--noheader", "--allocations", "--parsable2", "--jobs="+strings.Join(ids, ","),
		"--format=JobIDRaw,State,Start,End,NodeList")
	if no, ok := errors.AsType[*scheduler.Error](err); ok && strings.Contains(no.Text, "accounting storage is disabled") {
		return nil, scheduler.ErrNoAccounts
	}
	if err != nil {
		return nil, err
	}
	jobs := map[string]*scheduler.Job{}
	for l := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(l), "|")
		if len(f) != 5 {
			continue
		}
		state, _, _ := strings.Cut(f[1], " ") // CANCELLED by 1000
		j := &scheduler.Job{ID: f[0], State: state, Start: scheduler.Moment(f[2]), End: scheduler.Moment(f[3]), Nodes: f[4]}
		if strings.Contains(j.Nodes, "None") {
			j.Nodes = ""
		}
		jobs[j.ID] = j
	}
	return jobs, nil
}

// arguments returns the arguments of sbatch.
func arguments(o *scheduler.Order) []string {
	n := strconv.Itoa(o.Nodes)
	args := []string{"--parsable", "--job-name=" + o.Name, "--comment=" + o.Comment, "--partition=" + o.Partition,
		"--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--cpus-per-task=" + strconv.Itoa(o.CPUs), "--no-requeue",
		"--dependency=singleton", fmt.Sprintf("--signal=B:TERM@%d", int(o.Lead.Seconds())), "--export=ALL",
		"--input=/dev/null", "--open-mode=append", fmt.Sprintf("--mem=%dM", o.Memory>>20)}
	if o.Folder != "" {
		args = append(args, "--chdir="+o.Folder, "--output="+o.Console())
	}
	if o.Exclusive {
		args = append(args, "--exclusive")
	}
	if gres := o.GRES(); gres != "" {
		args = append(args, "--gres="+gres)
	}
	switch {
	case o.Limit > 0:
		args = append(args, "--time="+strconv.Itoa(scheduler.Minutes(o.Limit)))
	case o.Unlimited:
		args = append(args, "--time=UNLIMITED")
	}
	for _, f := range [][2]string{{"account", o.Account}, {"qos", o.QOS}, {"wckey", o.WCKey},
		{"constraint", o.Constraint}} {
		if f[1] != "" {
			args = append(args, "--"+f[0]+"="+f[1])
		}
	}
	return append(args, o.Options...)
}

// Submit implements scheduler.Scheduler.
func (c *Client) Submit(ctx context.Context, o *scheduler.Order) (job string, err error) {
	out, err := c.Run(ctx, "sbatch", append(arguments(o), o.Script())...)
	if err != nil {
		return "", scheduler.Refusal(err)
	}
	job, _, _ = strings.Cut(strings.TrimSpace(out), ";")
	if _, err := strconv.ParseUint(job, 10, 64); err != nil {
		return "", fmt.Errorf("sbatch printed %q, and no job id", out)
	}
	return job, nil
}

// Try implements scheduler.Scheduler.
func (c *Client) Try(ctx context.Context, o *scheduler.Order) error {
	_, err := c.Run(ctx, "sbatch", append(append([]string{"--test-only"}, arguments(o)...), "--wrap=true")...)
	if err != nil {
		return scheduler.Refusal(err)
	}
	return nil
}

// CancelPending implements scheduler.Scheduler.
func (c *Client) CancelPending(ctx context.Context, job string) error {
	_, err := c.Run(ctx, "scancel", "--state=PENDING", job)
	return err
}

// Cancel implements scheduler.Scheduler.
func (c *Client) Cancel(ctx context.Context, job string) error {
	_, err := c.Run(ctx, "scancel", job)
	return err
}

// EndRanks implements scheduler.Scheduler.
func (c *Client) EndRanks(ctx context.Context, job, _ string, ranks []int) error {
	out, err := c.Run(ctx, "squeue", "--noheader", "--steps", "--jobs="+job, "--format=%i|%j")
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
			asks = [][]string{{"--signal=KILL", step}, {step}} // srun waits for ever for a step that is killed at its start
		}
		for _, args := range asks {
			if _, no := c.Run(ctx, "scancel", args...); !scheduler.IsUnknown(no) {
				err = errors.Join(err, no)
			}
		}
	}
	return err
}

// Ready implements scheduler.Scheduler.
func (c *Client) Ready(context.Context) engine.Finding {
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
	return engine.Finding{Name: "commands", OK: true, Text: "found sbatch, squeue, scancel, sinfo and scontrol"}
}

// Advice recognises credentials that the controller does not accept.
func (c *Client) Advice(ctx context.Context, err error) (about, text string) {
	text = err.Error()
	if strings.Contains(strings.ToLower(text), "munge") || strings.Contains(text, "authentication") ||
		strings.Contains(text, "redential") || !c.vouched(ctx) { // without munge the commands hang silently
		return "credentials", text + ": munge issues no credential: systemctl restart munge here; its key and the clock " +
			"must be those of the cluster (munge -n | unmunge)"
	}
	return "controller", text + ": scontrol ping shows the controller's address; set conf in engines.yaml if it is " +
		"another"
}

// vouched reports whether munge issues us a credential, if munge is installed.
func (c *Client) vouched(ctx context.Context) bool {
	if _, err := exec.LookPath("munge"); err != nil {
		return true // unknown
	}
	args := []string{"--no-input", "--output=/dev/null"}
	conf := cmp.Or(c.conf, os.Getenv("SLURM_CONF"), "/etc/slurm/slurm.conf")
	text, _ := os.ReadFile(conf) // if it cannot be read, munge uses its default socket
	if m := ofMunge.FindSubmatch(text); m != nil {
		args = append(args, "--socket="+string(m[1]))
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return child.Command(ctx, "munge", args...).Run() == nil
}

var ofMunge = regexp.MustCompile(`(?m)^AuthInfo=(?:.*,)?socket=([^,\s]+)`)

// killWait parses KillWait in the output of scontrol show config.
func killWait(text string) (wait time.Duration) {
	wait = scheduler.UsualKillWait
	for l := range strings.Lines(text) {
		name, value, _ := strings.Cut(l, "=")
		if strings.TrimSpace(name) != "KillWait" {
			continue
		}
		if s, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " sec")); err == nil {
			wait = time.Duration(s) * time.Second
		}
	}
	return wait
}

// fields parses the NAME=VALUE pairs of a line.
func fields(line string) map[string]string {
	f := map[string]string{}
	for w := range strings.FieldsSeq(line) {
		if name, value, ok := strings.Cut(w, "="); ok {
			f[name] = value
		}
	}
	return f
}

// limit parses [DAYS-]HOURS:MINUTES:SECONDS; 0 means no limit.
func limit(s string) time.Duration {
	days, rest, ok := strings.Cut(s, "-")
	if !ok {
		days, rest = "0", s
	}
	d, err := strconv.Atoi(days)
	parts := strings.Split(rest, ":")
	if err != nil || len(parts) > 3 {
		return 0
	}
	for len(parts) < 3 {
		parts = append([]string{"0"}, parts...)
	}
	sum := time.Duration(d) * 24 * time.Hour
	for n, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		v, err := strconv.Atoi(parts[n])
		if err != nil {
			return 0 // UNLIMITED
		}
		sum += time.Duration(v) * unit
	}
	return sum
}

func readNode(line string) (n scheduler.Node, ok bool) {
	f := strings.Split(line, "|")
	if len(f) != 9 {
		return n, false
	}
	cpus, err := strconv.Atoi(strings.TrimSuffix(f[2], "+"))
	memory, err2 := strconv.ParseInt(strings.TrimSuffix(f[3], "+"), 10, 64)
	if err != nil || err2 != nil || cpus <= 0 {
		return n, false
	}
	n = scheduler.Node{Name: f[0], Partition: strings.TrimSuffix(f[1], "*"), CPUs: cpus, Memory: size.Bytes(memory << 20),
		Address: f[7], Host: f[8], Usable: scheduler.Usable(f[5]), Features: strings.Split(f[6], ",")}
	n.Accelerator, n.Accelerators = scheduler.GPUs(f[4])
	return n, true
}

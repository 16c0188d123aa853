package phase

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/job/check/fact"
	"scrimp/internal/lib/draw"
)

// answered is an item that only the user can settle.
func answered(name, unknown, fix string) func(*Subject) (Verdict, string, string) {
	return func(c *Subject) (Verdict, string, string) {
		switch yes, ok := c.said(name); {
		case !ok:
			return Unknown, unknown, fact.Supply(name)
		case !yes:
			return Warn, "you say no", fix
		}
		return Pass, "you say so", ""
	}
}

// repeatedFor is how long the result of an earlier run counts as recent.
const repeatedFor = 7 * 24 * time.Hour

func repeated(c *Subject) (Verdict, string, string) {
	for _, r := range c.Runs {
		if r.State != "succeeded" || r.Profile || r.Finished.IsZero() || c.Now.Sub(r.Finished) > repeatedFor {
			continue
		}
		if r.Steps > 0 && r.Steps == c.Job.Work.Steps {
			return Warn, fmt.Sprintf("%s has done the same %d steps, and ended on %s", r.Job, r.Steps,
				r.Finished.Format(time.DateOnly)), "reuse its outputs (scrimp get), unless program or data have changed"
		}
	}
	if len(c.Runs) == 0 {
		return Unknown, "it never ran", "after its first run scrimp compares the steps"
	}
	return Pass, "no run of the last 7 days has done the same steps", ""
}

func failing(c *Subject) (Verdict, string, string) {
	failed := 0
	for failed < len(c.Runs) && c.Runs[failed].State == "failed" {
		failed++
	}
	switch {
	case failed >= 3:
		return Fail, fmt.Sprintf("the last %d runs failed", failed), "find the cause first: scrimp logs " + c.Runs[0].Job
	case failed > 0:
		return Warn, c.Runs[0].Job + ", the last run, failed", "find the cause first: scrimp logs " + c.Runs[0].Job
	case len(c.Runs) == 0:
		return Unknown, "it never ran", "run a short part first: scrimp profile"
	}
	return Pass, fmt.Sprintf("the last run ended as %s", c.Runs[0].State), ""
}

func timeLimit(c *Subject) (Verdict, string, string) {
	if limit := time.Duration(c.Job.Budget.WallClock); limit > 0 {
		return Pass, draw.Span(limit), ""
	}
	return Warn, "a program that hangs costs money until the budget is used up", "set budget.wall_clock"
}

// secretForm matches names of variables that hold secrets.
var secretForm = regexp.MustCompile(`(?i)(^|_)(secret(_access)?(_key)?|token|password|passwd|api_?key|credentials?)$`)

func secrets(c *Subject) (Verdict, string, string) {
	for _, name := range slices.Sorted(maps.Keys(c.Job.Env)) {
		if v := c.Job.Env[name]; secretForm.MatchString(name) && len(v) >= 8 && !strings.HasPrefix(v, "$") {
			return Warn, "env has a value for " + name + ", which everyone who may see the job can read",
				"list the name under secrets: its value then comes from the shell that submits"
		}
	}
	return Pass, "no variable of env looks like a secret", ""
}

func notified(c *Subject) (Verdict, string, string) {
	if !c.Job.Notify.IsZero() {
		return Pass, "notify is set", ""
	}
	return Warn, "nobody hears when it ends or fails", "set notify: a webhook or e-mail addresses"
}

func dataVersioned(c *Subject) (Verdict, string, string) {
	if v := c.Job.Tags["data_version"]; v != "" {
		return Pass, "the tag data_version is " + v, ""
	}
	v, evidence, fix := answered("data_versioned", "nothing names the version of the data", "tag the job: data_version")(c)
	if v == Unknown {
		fix = "tag the job with data_version, or " + fix
	}
	return v, evidence, fix
}

func dataSize(c *Subject) (Verdict, string, string) {
	for _, d := range c.Job.Data {
		if strings.Contains(d.Path, "://") && d.Size == 0 {
			return Warn, d.Path + " has no size, so plans leave its transfer out", "give data.size"
		}
	}
	if len(c.Job.Data) == 0 {
		return Unknown, "the job names no data", "name inputs under data with size and region"
	}
	return Pass, draw.Count(len(c.Job.Data), "input") + " with sizes, or from the work folder", ""
}

// Names that programs use for their data, and for what makes runs comparable.
var (
	slowForm = regexp.MustCompile(
		`\b(read_csv|read_excel|csv\.(reader|DictReader)|genfromtxt|loadtxt|ImageFolder|Image\.open|imread)\(`)
	shardForm = regexp.MustCompile(`(?i)(webdataset|\bwds\.|parquet|tfrecord|memmap|\bmmap|np\.load\(|load_from_disk|` +
		`StreamingDataset|h5py|lmdb|\.arrow\b)`)
	loaderForm  = regexp.MustCompile(`\bDataLoader\(`)
	workersForm = regexp.MustCompile(`(?i)(num[-_]workers|AUTOTUNE)`)
	seedForm    = regexp.MustCompile(`(?i)(manual_seed|set_seed|seed_everything|random\.seed|\bseed=|--seed\b|` +
		`random_state|default_rng\(\w)`)
	heldForm = regexp.MustCompile(`(?i)(^|[_./-])(val(id(ation)?)?|eval|test|dev|heldout)([_./-]|$)`)
)

func dataFormat(c *Subject) (Verdict, string, string) {
	if m, ok := c.Find(shardForm); ok {
		return Pass, m.Where, ""
	}
	if m, ok := c.Find(slowForm); ok && c.Trains {
		return Warn, m.Where + " reads a text or picture each time", "convert the data once (Parquet, WebDataset, arrays), " +
			"and keep the result: scrimp diagnose shows what loading costs"
	}
	return Unknown, "neither the command nor the program names a format", "see what loading costs with scrimp diagnose"
}

func loaderWorkers(c *Subject) (Verdict, string, string) {
	m, ok := c.Find(workersForm)
	loader, loads := c.Find(loaderForm)
	const fix = "num_workers=<cores - 1>, persistent_workers=True"
	switch {
	case ok && m.Off:
		return Warn, "switched off: " + m.Where, fix
	case ok && !m.Only:
		return Pass, m.Where, ""
	case loads:
		return Warn, loader.Where + " without num_workers: the main process loads the data", fix
	}
	return Unknown, "no loader was found in the programs", "see what loading costs with scrimp diagnose"
}

func seeded(c *Subject) (Verdict, string, string) {
	if !c.Trains {
		return Pass, "the job does not train", ""
	}
	if m, ok := c.Find(seedForm); ok && !m.Only {
		return Pass, m.Where, ""
	}
	if !c.HasPrograms {
		return Unknown, "there is no program to read", "pass a seed, so that two runs can be compared"
	}
	return Warn, "no seed was found: two runs cannot be compared", "set one, such as torch.manual_seed"
}

// installForm matches an installation and what it names.
var installForm = regexp.MustCompile(`\b(?:pip3?|conda|mamba|uv pip|uv add) install ([^\n;&|]+)`)

func pinned(c *Subject) (Verdict, string, string) {
	const fix = "name versions (==), a file of them (-r), or an image by its digest"
	if _, tag, ok := strings.Cut(c.Job.Image[strings.LastIndexByte(c.Job.Image, '/')+1:], ":"); c.Job.Image != "" &&
		(!ok || tag == "latest") && !strings.Contains(c.Job.Image, "@") {
		return Warn, c.Job.Image + " is another image tomorrow", fix
	}
	for _, m := range installForm.FindAllStringSubmatch(c.Job.Setup, -1) {
		words := strings.Fields(m[1])
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-r") || w == "-e" || w == "." }) {
			continue
		}
		for _, w := range words {
			if !strings.HasPrefix(w, "-") && !strings.ContainsAny(w, "=@/<>~") {
				return Warn, "setup installs " + w + " without a version", fix
			}
		}
	}
	if c.Job.Setup == "" && c.Job.Image == "" {
		return Unknown, "neither setup nor image says what the program gets", fix
	}
	return Pass, "nothing is installed without a version", ""
}

// Limits of what earlier runs show.
const (
	oftenInterrupted = 3  // interruptions a run
	oftenSaved       = 30 // checkpoints an hour
)

func interrupted(c *Subject) (Verdict, string, string) {
	if len(c.Runs) == 0 {
		return Unknown, "it never ran", "scrimp plan says how often machines are interrupted"
	}
	sum := 0
	for _, r := range c.Runs {
		sum += r.Interruptions
	}
	text := fmt.Sprintf("%d interruptions in %s", sum, draw.Count(len(c.Runs), "run"))
	if sum >= oftenInterrupted*len(c.Runs) && c.OnSpot {
		return Warn, text, "compare on-demand, other zones and other machines: scrimp plan --catalog"
	}
	return Pass, text, ""
}

func saveRate(c *Subject) (Verdict, string, string) {
	for _, r := range c.Runs {
		if r.Worked < 10*time.Minute || r.Checkpoints == 0 {
			continue
		}
		rate := float64(r.Checkpoints) / r.Worked.Hours()
		text := fmt.Sprintf("%s saved %.0f times an hour", r.Job, rate)
		if rate > oftenSaved {
			return Warn, text, "checkpoint.interval: auto follows what a save costs and how often machines are interrupted"
		}
		return Pass, text, ""
	}
	return Unknown, "no earlier run of ten minutes has saved", "let one run: its receipt has the cost of a save"
}

func idleStop(c *Subject) (Verdict, string, string) {
	if c.Job.Idle > 0 {
		return Pass, "it ends after " + draw.Span(time.Duration(c.Job.Idle)) + " without use", ""
	}
	return Warn, "a program that waits or does not exit keeps its machine", "set idle: 15m"
}

func outputs(c *Subject) (Verdict, string, string) {
	switch {
	case len(c.Job.Outputs) > 0:
		return Pass, strings.Join(c.Job.Outputs[:min(3, len(c.Job.Outputs))], ", "), ""
	case c.Job.Checkpoint.Dir != "":
		return Pass, "the checkpoints in " + c.Job.Checkpoint.Dir, ""
	}
	return Warn, "what it writes goes with its machine", "name its results under outputs"
}

// mostKept is the number of kept checkpoints above which their storage costs more than they help.
const mostKept = 10

func kept(c *Subject) (Verdict, string, string) {
	switch n := c.Job.Checkpoint.Keep; {
	case c.Job.Checkpoint.Dir == "":
		return Unknown, "it keeps no checkpoints", "name checkpoint.dir"
	case n > mostKept:
		return Warn, fmt.Sprintf("it keeps %d checkpoints", n), "checkpoint.keep: 3, with best for the one to deploy"
	case n > 0:
		return Pass, fmt.Sprintf("the newest %d", n), ""
	}
	return Pass, "the newest 3, by default", ""
}

func heldOut(c *Subject) (Verdict, string, string) {
	if name := c.Job.Metric.Name; heldForm.MatchString(name) {
		return Pass, "the metric is " + name, ""
	}
	return answered("held_out", "nothing says on which data quality is measured", "keep a part of the data out of "+
		"training")(c)
}

func severalSeeds(c *Subject) (Verdict, string, string) {
	n, err := strconv.ParseFloat(c.Facts["seeds"], 64)
	switch {
	case err != nil:
		return Unknown, "nothing says how many runs are behind the quality", fact.Supply("seeds")
	case n < 3:
		return Warn, fmt.Sprintf("you say %g: chance may look like progress", n), "scrimp ab --seeds 3 compares with " +
			"that spread"
	}
	return Pass, fmt.Sprintf("you say %g", n), ""
}

func modelNamed(c *Subject) (Verdict, string, string) {
	if v := c.Job.ModelVersion; v != "" {
		return Pass, v, ""
	}
	return Warn, "no cost and no output names the version of the model", "name model_version in the job file"
}

func latency(c *Subject) (Verdict, string, string) {
	is, err := time.ParseDuration(c.Facts["latency"])
	goal, noGoal := time.ParseDuration(c.Facts["latency_goal"])
	switch {
	case err != nil:
		return Unknown, c.live("nobody has measured it under load"), fact.Supply("latency")
	case noGoal != nil:
		return Unknown, fmt.Sprintf("you say %s, and no goal", is), fact.Supply("latency_goal")
	case is > goal:
		return Fail, fmt.Sprintf("you say %s, and %s is the goal", is, goal), "scrimp serve-plan finds machines that keep it"
	}
	return Pass, fmt.Sprintf("you say %s, and %s is the goal", is, goal), ""
}

// slowStart is the time of a cold start from which on users notice it.
const slowStart = 30 * time.Second

func coldStart(c *Subject) (Verdict, string, string) {
	d, err := time.ParseDuration(c.Facts["cold_start"])
	switch {
	case err != nil:
		return Unknown, c.live("its cold start is unknown"), fact.Supply("cold_start")
	case d > slowStart:
		return Warn, fmt.Sprintf("you say %s", d), "one warm replica in business hours, and none at night"
	}
	return Pass, fmt.Sprintf("you say %s", d), ""
}

package spec

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/hours"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/lib/size"
)

// MaxGrace bounds how long a program that ignores its signal is paid for.
const MaxGrace = Duration(time.Hour)

// MaxName is the maximum length of a job name. It leaves room for the number that distinguishes jobs with the same
// name.
const MaxName = 40

var (
	labelForm  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	signalForm = regexp.MustCompile(`^(?:SIG)?(?:TERM|INT|USR1|USR2|HUP)(?:@([0-9.]+(?:ms|s|m|h)))?$`)
	gpuForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(?::([0-9+.]+))?$`)
	engineForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}(/[A-Za-z0-9_.-]+)?$`)
	envForm    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	urlForm    = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://\S+$`)
	inputForm  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	hookForm   = regexp.MustCompile(`^https?://[^\s/]+\S*$`)
)

// checker collects the problems of a job.
type checker struct {
	j        Job
	problems Problems
}

func (c *checker) wrong(bad bool, field, cause, fix string) {
	if bad {
		c.problems = append(c.problems, Problem{Field: field, Cause: cause, Fix: fix})
	}
}

// check verifies rules that involve several fields, and everything that may be wrong in a job that came as JSON.
func check(j Job, now time.Time) Problems {
	c := checker{j: j}
	if c.bounds(); len(c.problems) > 0 { // other messages would quote the long values
		return c.problems
	}
	c.labels()
	c.values()
	c.program()
	c.limits(now)
	c.alternatives()
	c.saving()
	c.divided()
	return c.problems
}

// values checks the rules common to all fields of a kind.
func (c *checker) values() {
	visit(reflect.ValueOf(&c.j).Elem(), "", "", func(field string, v reflect.Value, tag reflect.StructTag) {
		switch v.Kind() {
		case reflect.String:
			text := v.String()
			words := tag.Get("enum")
			if words != "" && text != "" && !slices.Contains(strings.Split(words, ","), text) {
				c.wrong(true, field, fmt.Sprintf("is %q", text), "it is one of "+strings.ReplaceAll(words, ",", ", "))
			}
			c.wrong(strings.ContainsRune(text, 0), field, "holds a zero byte", "leave it out")
		case reflect.Int, reflect.Int64:
			c.wrong(v.Int() < 0, field, "is below zero", "leave it out, or give more than zero")
		case reflect.Float64:
			f := v.Float()
			c.wrong(f-f != 0, field, "is not a finite number", such(tag))
			c.wrong(f < 0 && field != "metric.target", field, "is below zero", "leave it out, or give more than zero")
		}
		c.number(field, v, tag)
		switch x := v.Interface().(type) {
		case Range:
			c.wrong(noRange(x.Min, x.Max), field, "is no range", such(tag))
		case Sizes:
			c.wrong(noRange(x.Min, x.Max), field, "is no range", such(tag))
		}
	})
}

// noRange reports whether two ends form no range; 0 as high means no upper end.
func noRange[N int | size.Bytes](low, high N) bool {
	return low < 0 || high < 0 || high > 0 && high < low
}

func (c *checker) program() {
	j := c.j
	c.wrong(strings.TrimSpace(j.Command) == "" && len(j.Args) == 0 && j.Session == "", "command", "is missing",
		"write what to run, such as command: python train.py")
	c.session()
	c.wrong(j.Command != "" && len(j.Args) > 0, "args", "stands beside command", "keep one of the two")
	c.wrong(len(j.Args) > 0 && j.Args[0] == "", "args", "names no program", "begin with the program")
	c.wrong(!labelForm.MatchString(j.Name) || len(j.Name) > MaxName, "name", fmt.Sprintf("is %q", j.Name),
		fmt.Sprintf("use small letters, digits and dashes, at most %d, such as %s", MaxName, Label(j.Name)))
	c.image("image", j.Image)
	c.environment("env", j.Env)
	for i, name := range j.Secrets {
		field := fmt.Sprintf("secrets[%d]", i)
		_, both := j.Env[name]
		c.variable(field, name)
		c.wrong(both, field, fmt.Sprintf("names %s, which env sets too", name), "keep it under secrets only")
		c.wrong(slices.Contains(j.Secrets[:i], name), field, fmt.Sprintf("names %s twice", name), "keep one")
	}
	for i, name := range j.Inherit {
		field := fmt.Sprintf("inherit[%d]", i)
		_, set := j.Env[name]
		c.variable(field, name)
		c.wrong(set, field, fmt.Sprintf("names %s, which env sets too", name), "keep one of the two")
		c.wrong(slices.Contains(j.Secrets, name), field, fmt.Sprintf("names %s, which is a secret too", name),
			"keep it under secrets only")
		c.wrong(slices.Contains(j.Inherit[:i], name), field, fmt.Sprintf("names %s twice", name), "keep one")
	}
	c.pattern("progress.pattern", j.Progress.Pattern, true)
	c.pattern("progress.saved", j.Progress.Saved, false)
	c.signal()
	c.notify()
}

// session checks the rules of a session: scrimp starts its program, and saves the whole work folder.
func (c *checker) session() {
	j := c.j
	if j.Session == "" {
		return
	}
	c.wrong(j.Command != "", "command", "stands beside session", "keep one of the two")
	c.wrong(len(j.Args) > 0, "args", "stands beside session", "keep one of the two")
	c.wrong(j.Checkpoint.Dir == "" || path.Clean(j.Checkpoint.Dir) != ".", "checkpoint.dir",
		fmt.Sprintf("is %q, and a session saves its whole work folder", j.Checkpoint.Dir), `write checkpoint: {dir: "."}`)
	c.wrong(j.MostNodes() > 1, "nodes", "is above 1, and a session has one machine", "leave it out")
	for i, v := range j.AnyOf {
		c.wrong(len(v.Args) > 0, fmt.Sprintf("any_of[%d].args", i), "has no program to go to: scrimp starts that of a "+
			"session", "leave it out")
	}
}

// pattern checks a regular expression. finds: it has to name what it finds.
func (c *checker) pattern(field, text string, finds bool) {
	if text == "" {
		return
	}
	re, err := regexp.Compile(text)
	if err != nil {
		c.wrong(true, field, "is not a regular expression ("+
			strings.TrimPrefix(err.Error(), "error parsing regexp: ")+")", "scrimp uses Go's form, RE2")
		return
	}
	named := slices.ContainsFunc(re.SubexpNames(), func(s string) bool { return s != "" })
	c.wrong(finds && !named, field, "has no named group", "name what is found, such as step (?P<step>\\d+)")
}

// signal checks the signal before the end, and how long before the end it comes.
func (c *checker) signal() {
	text := c.j.Signal
	m := signalForm.FindStringSubmatch(text)
	c.wrong(text != "" && m == nil, "signal", fmt.Sprintf("is %q", text),
		"write TERM, INT, HUP, USR1 or USR2, with @90s for how long before the end")
	if m != nil && m[1] != "" {
		d, err := time.ParseDuration(m[1])
		c.wrong(err != nil || d <= 0, "signal", fmt.Sprintf("is %q", text), "write the time before the end as @90s")
		c.wrong(d > quantity.Decade, "signal", "is more than ten years before the end",
			"write the time before the end as @90s")
	}
}

func (c *checker) environment(field string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		c.variable(field+"."+name, name)
	}
}

func (c *checker) variable(field, name string) {
	c.wrong(!envForm.MatchString(name), field, "is not the name of a variable", "use letters, digits and _")
	c.wrong(reserved(name), field, "is set by scrimp itself", "use another name")
}

func (c *checker) limits(now time.Time) {
	j := c.j
	if !j.Deadline.IsZero() {
		c.deadline(j.Deadline, now)
	}
	if m := j.Checkpoint.MoveCost; m != nil {
		c.wrong(m.Sign() < 0, "checkpoint.move_cost", "is below zero", "leave it out where a move costs nothing")
	}
	c.wrong((j.Checkpoint.MoveCost != nil || j.Checkpoint.MoveTime > 0) && j.Checkpoint.Dir == "",
		"checkpoint.move_time", "needs a folder: without one nothing is moved", "add checkpoint.dir, or leave it out")
	if b := j.Budget.Dollars; b != nil {
		field := "budget.dollars"
		c.wrong(b.Sign() <= 0, field, "is not above zero", "give at least what one step costs")
	}
	c.wrong(j.Promise >= 1, "promise", "is not a share below 1", "give a number between 0 and 1, such as 0.99")
	c.window(now)
	for i, code := range j.Retry.Codes {
		c.wrong(code < 1 || code > 255, fmt.Sprintf("retry.codes[%d]", i), fmt.Sprintf("is %d", code),
			"an exit status is 1 to 255")
	}
	m := j.Metric
	c.wrong(m.Name == "" && (m.Target != nil || m.Patience > 0 || j.Checkpoint.Best), "metric.name", "is missing",
		"name the metric that the program reports")
}

// window checks the hours in which the job may run. A job that saves nothing must be able to finish within them.
func (c *checker) window(now time.Time) {
	j := c.j
	if j.Window == "" {
		return
	}
	w, err := hours.Parse(j.Window)
	if err != nil {
		part := strings.TrimSuffix(err.Error(), ": "+hours.ErrForm.Error())
		c.wrong(errors.Is(err, hours.ErrForm), "window", fmt.Sprintf("is %q: %s", j.Window, part), hours.ErrForm.Error())
		c.wrong(errors.Is(err, hours.ErrEmpty), "window", "ends when it begins", "leave it out to run at any hour")
		return
	}
	work := time.Duration(j.Work.Time)
	c.wrong(j.Checkpoint.Dir == "" && work == 0, "window", "ends the job each day, and the job saves nothing",
		"add checkpoint.dir, or work.time so that it starts only where it can finish")
	c.wrong(j.Checkpoint.Dir == "" && work > w.Length(), "window",
		fmt.Sprintf("is open for %v, the work takes %v, and the job saves nothing", w.Length(), work), "add checkpoint.dir")
	if d := j.Deadline; !d.IsZero() {
		open, _ := w.Between(now, d.Resolve(now))
		c.wrong(open == 0 && d.Resolve(now).After(now), "window", "never opens before the deadline",
			"give a later deadline, or other hours")
	}
}

// deadline checks when the job must be done.
func (c *checker) deadline(d Deadline, now time.Time) {
	if d.Zoneless {
		c.wrong(true, "deadline", "names no time zone",
			"end it with Z for UTC, or with the zone as +01:00, such as 2026-12-01T18:00Z")
		return
	}
	at := d.Resolve(now).UTC()
	c.wrong(!at.After(now), "deadline", "has passed already ("+at.Format(time.RFC3339)+")",
		"give a later one, or a span such as in 6h")
	c.wrong(!quantity.AllowsTime(at, now), "deadline", "is more than ten years away", "give an earlier one")
}

func (c *checker) alternatives() {
	c.resources("resources", c.j.Resources)
	var seen []string
	for i, v := range c.j.AnyOf {
		field := fmt.Sprintf("any_of[%d]", i)
		c.resources(field+".resources", v.Resources)
		c.environment(field+".env", v.Env)
		c.wrong(v.Name != "" && !labelForm.MatchString(v.Name), field+".name", fmt.Sprintf("is %q", v.Name),
			"use small letters, digits and dashes")
		c.wrong(v.Name != "" && slices.Contains(seen, v.Name), field+".name",
			fmt.Sprintf("is %q, as another's is", v.Name), "give each another")
		c.wrong(v.Engine != "" && !engineForm.MatchString(v.Engine), field+".engine", fmt.Sprintf("is %q", v.Engine),
			"write an engine, or a part of one, such as lab or slurm/gpu")
		twice := func(w Variant) bool { return v.Place() && w.Place() && w.Engine == v.Engine }
		c.wrong(slices.ContainsFunc(c.j.AnyOf[:i], twice),
			field+".engine", fmt.Sprintf("is %q, as another's is", v.Engine), "keep one")
		c.image(field+".image", v.Image)
		same := v.Engine == "" && v.Image == "" && reflect.ValueOf(v.Resources).IsZero()
		c.wrong(same && len(v.Env) == 0 && len(v.Args) == 0, field,
			"changes nothing", "give it an engine, an image, other resources, env or args")
		seen = append(seen, v.Name)
	}
	for i, rung := range c.j.Ladder {
		field := fmt.Sprintf("ladder[%d]", i)
		c.wrong(reflect.ValueOf(rung).IsZero(), field, "says nothing", "give it a capacity, zones or an alternative")
		c.wrong(rung.Failures < 0, field+".failures", fmt.Sprintf("is %d", rung.Failures),
			"give a number above 0, or leave it out")
		c.wrong(rung.Use != "" && !slices.Contains(seen, rung.Use), field+".use",
			fmt.Sprintf("is %q, which any_of does not name", rung.Use), "name an alternative there")
	}
}

func (c *checker) resources(field string, r Resources) {
	if r.Accelerator == "" {
		return
	}
	m := gpuForm.FindStringSubmatch(r.Accelerator)
	var count Range
	bad := m == nil || m[1] != "" && (count.UnmarshalText([]byte(m[1])) != nil || count.Min < 1)
	c.wrong(bad, field+".accelerator", fmt.Sprintf("is %q", r.Accelerator),
		"write a kind and a count, such as H100:8 or H100:1..8")
}

// GPUs returns the requested accelerator and count, or "" and zero. A kind without a count means one.
func (r Resources) GPUs() (kind string, count Range) {
	kind, n, _ := strings.Cut(r.Accelerator, ":")
	if kind == "" {
		return "", Range{}
	}
	if n == "" || count.UnmarshalText([]byte(n)) != nil || count.Min < 1 {
		return kind, Range{1, 1}
	}
	return kind, count
}

// mostNodes bounds the machines of a job.
var mostNodes = int(quantity.Nodes.Most)

func (c *checker) nodes() {
	n := c.j.Nodes
	c.wrong(n.Min > 0 && n.Max == 0, "nodes", "has no upper end",
		fmt.Sprintf("write %d, or %d..%d", n.Min, n.Min, 2*n.Min))
	c.wrong(n.Max > 0 && n.Min == 0, "nodes", "begins at zero", fmt.Sprintf("write %d, or 1..%d", n.Max, n.Max))
	c.wrong(n.Max > mostNodes || n.Min > mostNodes, "nodes", fmt.Sprintf("is above %d", mostNodes), "ask for fewer")
}

// IsStore reports whether an address has the form of a checkpoint store. It does not contact the store.
func IsStore(address string) bool {
	scheme, _, _ := strings.Cut(address, "://")
	return urlForm.MatchString(address) && slices.Contains(storeSchemes, scheme)
}

func (c *checker) saving() {
	s := c.j.Checkpoint
	c.wrong(c.j.Grace > MaxGrace, "grace", "is above 1h", "give 1h or less, and save at intervals what takes longer")
	if i := s.Interval; i != "" && i != "auto" {
		d, err := ParseDuration(i)
		c.wrong(err != nil || d <= 0, "checkpoint.interval", fmt.Sprintf("is %q", i), "write auto or a span such as 10m")
		c.wrong(d > quantity.Decade, "checkpoint.interval", "is above ten years", "write auto or a span such as 10m")
	}
	c.wrong(s.Store != "" && !IsStore(s.Store), "checkpoint.store", fmt.Sprintf("is %q", s.Store),
		"write file:///…, s3://…, gs://… or azblob://…")
	c.nodes()
	c.wrong(s.AllRanks() && c.j.MostNodes() == 1, "checkpoint.ranks", "is all, and the job runs on one machine",
		"give nodes above 1, or leave it out")
	c.wrong(s.AllRanks() && c.j.MostNodes() != c.j.FewestNodes(), "checkpoint.ranks",
		"is all, and the number of machines may change: the parts of one number are no checkpoint for another",
		"give nodes one number, or leave it out")
	c.wrong(s.AllRanks() && s.Dir == "", "checkpoint.ranks", "needs a folder: without one nothing is saved",
		"add checkpoint.dir, or leave it out")
	c.wrong(!below(s.Dir), "checkpoint.dir", fmt.Sprintf("is %q, outside the work folder", s.Dir),
		"name a folder below it, or an absolute one")
	c.wrong(s.Dir != "" && path.Clean(s.Dir) == "." && c.j.Session == "", "checkpoint.dir", "is the work folder itself",
		"let the program save to a folder of its own")
	for i, dir := range c.j.Outputs {
		field := fmt.Sprintf("outputs[%d]", i)
		c.wrong(dir == "", field, "names no folder", "name one below the work folder")
		c.wrong(!below(dir) || path.IsAbs(dir), field, fmt.Sprintf("is %q, outside the work folder", dir),
			"name a folder below it")
	}
	c.wrong(!below(c.j.Progress.File), "progress.file",
		fmt.Sprintf("is %q, outside the work folder", c.j.Progress.File), "name a file below it")
	c.inputs()
}

// below reports whether the path stays within the folder that it is relative to.
func below(dir string) bool {
	clean := path.Clean(dir)
	return clean != ".." && !strings.HasPrefix(clean, "../")
}

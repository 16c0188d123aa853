package jobimport_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/job/jobimport"
	"scrimp/internal/job/spec"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
	"scrimp/internal/test/must"
)

// public is a job file of another system, with the placement that its own system would give it.
type public struct {
	file, text string
	want       map[string][]string // by field
}

var wantField = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"(?:,"[^"]*")*|\S*)`)

// publicFiles reads an archive of job files: a line with the name, a line with what is wanted, and the file.
func publicFiles(t *testing.T, archive string) (list []public) {
	t.Helper()
	text, err := os.ReadFile("testdata/public/" + archive)
	must.Do(t, err)
	for _, part := range strings.Split("\n"+string(text), "\n=== ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		line, body, _ := strings.Cut(rest, "\n")
		p := public{file: name, text: strings.TrimRight(body, "\n") + "\n", want: map[string][]string{}}
		for _, m := range wantField.FindAllStringSubmatch(strings.TrimPrefix(line, "want: "), -1) {
			value := m[2]
			if s, err := strconv.Unquote(value); err == nil && m[1] == "command" {
				value = s
			}
			p.want[m[1]] = append(p.want[m[1]], value)
		}
		list = append(list, p)
	}
	return list
}

// plainly returns a value that is the same for all ways once, and counts of one without their number.
func plainly(s string) string {
	list := strings.Split(s, "|")
	for i, v := range list {
		list[i] = strings.TrimSuffix(v, ":1")
	}
	if c := slices.Compact(slices.Clone(list)); len(c) == 1 {
		return c[0]
	}
	return strings.Join(list, "|")
}

// ways returns the job's own resources and those of its alternatives.
func ways(j spec.Job) []spec.Resources {
	all := []spec.Resources{j.Resources}
	for _, v := range j.AnyOf {
		all = append(all, v.Resources)
	}
	return all
}

// placement returns the fields of a converted job in the words of the archive.
func placement(r jobimport.Result) map[string]string {
	j := r.Job
	each := func(f func(spec.Resources) string) string {
		var list []string
		for _, w := range ways(j) {
			list = append(list, f(w))
		}
		if joined := strings.Join(list, "|"); strings.Trim(joined, "|") != "" {
			return joined
		}
		return ""
	}
	text := func(v fmt.Stringer, none bool) string {
		if none {
			return ""
		}
		return v.String()
	}
	ranged := func(b []byte, none bool) string {
		if none {
			return ""
		}
		return string(b)
	}
	first := j.Resources
	cpus, _ := first.CPUs.MarshalText()
	nodes, _ := j.Nodes.MarshalText()
	memory := regexp.MustCompile(`memory: (\S+)`).FindStringSubmatch(string(r.YAML))
	got := map[string]string{
		"accelerator": each(func(w spec.Resources) string { return w.Accelerator }),
		"capacity":    each(func(w spec.Resources) string { return strings.Join(w.Capacity, ",") }),
		"zones":       each(func(w spec.Resources) string { return strings.Join(w.Zones, ",") }),
		"cpus":        ranged(cpus, first.CPUs == spec.Range{}), "nodes": ranged(nodes, j.Nodes == spec.Range{}),
		"image": j.Image, "wall_clock": text(time.Duration(j.Budget.WallClock), j.Budget.WallClock == 0),
		"grace":   text(time.Duration(j.Grace), j.Grace == 0),
		"secrets": strings.Join(j.Secrets, ","), "team": j.Team,
	}
	if memory != nil {
		got["memory"] = memory[1]
	}
	if len(j.Ladder) > 0 {
		got["ladder"] = strconv.Itoa(len(j.Ladder))
	}
	if j.MaxPrice > 0 {
		got["max_price"] = strconv.FormatFloat(j.MaxPrice.Float(), 'f', -1, 64)
	}
	if j.Retry.Max > 0 {
		got["retry"] = strconv.Itoa(j.Retry.Max)
	}
	return got
}

// Thirty job files of each system, in its public forms, are planned as their own system places them: on the same
// accelerators, in the same number, on as many machines, on spot or not, in the image, with the commands. What is not
// carried over is reported. A job for an accelerator never matches a machine without one.
func TestConvert_PlacesPublicFilesAsTheirSystemDoes(t *testing.T) {
	sales := catalog.Builtin()
	for _, archive := range []string{"skypilot.txt", "dstack.txt", "slurm.txt"} {
		list := publicFiles(t, archive)
		if len(list) < 30 {
			t.Errorf("%s has %d files", archive, len(list))
		}
		for _, p := range list {
			t.Run(p.file, func(t *testing.T) {
				r, err := jobimport.Convert("folder/"+p.file, []byte(p.text))
				must.Do(t, err)
				p.check(t, r)
				p.sold(t, r.Job, sales)
			})
		}
	}
}

func (p public) check(t *testing.T, r jobimport.Result) {
	j, got := r.Job, placement(r)
	program := j.Command + strings.Join(j.Args, " ")
	for field, value := range got {
		if want := strings.Join(p.want[field], ""); plainly(value) != plainly(want) {
			t.Errorf("%s is %q, want %q, in\n%s", field, value, want, r.YAML)
		}
	}
	for _, want := range p.want["command"] {
		if !strings.Contains(program, want) {
			t.Errorf("the command %q lacks %q", program, want)
		}
	}
	for _, l := range r.Lost {
		if !strings.Contains(strings.Join(p.want["lost"], ","), strings.Fields(l.Field)[0]) {
			t.Errorf("lost unexpectedly: %s", l)
		}
	}
	for _, want := range p.want["lost"] {
		for one := range strings.SplitSeq(strings.ReplaceAll(want, `"`, ""), ",") {
			if !slices.ContainsFunc(r.Lost, func(l jobimport.Lost) bool { return strings.HasPrefix(l.Field, one) }) {
				t.Errorf("%s is not reported as lost: %v", one, r.Lost)
			}
		}
	}
	pairs := func(m map[string]string) string {
		var list []string
		for _, k := range slices.Sorted(maps.Keys(m)) {
			list = append(list, k+":"+m[k])
		}
		return strings.Join(list, ",")
	}
	for field, value := range map[string]string{"env": pairs(j.Env), "tags": pairs(j.Tags), "name": j.Name} {
		if want := p.want[field]; len(want) > 0 && want[0] != value {
			t.Errorf("%s is %q, want %q", field, value, want[0])
		}
	}
	for field, value := range map[string]string{"setup": j.Setup, "signal": j.Signal, "data": fmt.Sprint(j.Data)} {
		if want := p.want[field]; len(want) > 0 && !strings.Contains(value, strings.Trim(want[0], `"`)) {
			t.Errorf("%s is %q, want %q", field, value, want[0])
		}
	}
}

// sold checks the machines of the catalogue that the job accepts.
func (p public) sold(t *testing.T, j spec.Job, sales catalog.Catalog) {
	some := false
	for _, w := range ways(j) {
		var f catalog.Filter
		if w.Accelerator == "" {
			if p.want["accelerator"] != nil {
				t.Error("it may run on machines without an accelerator")
			}
			return
		}
		must.Do(t, f.ParseAccelerator(w.Accelerator))
		for _, l := range sales.Match(f) {
			kind, _, _ := strings.Cut(w.Accelerator, ":")
			if some = true; !accelerator.Matches(kind, l.Offer.Accelerator) || l.Offer.Accelerators < f.Least {
				t.Errorf("%s suits %s", l.Offer.ID, w.Accelerator)
			}
		}
	}
	if known := p.want["offers"] == nil; some != known {
		t.Errorf("machines for it are for sale: %v, want %v", some, known)
	}
}

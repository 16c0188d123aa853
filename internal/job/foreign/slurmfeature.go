package foreign

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/job/foreign/gpu"
	"scrimp/internal/job/foreign/slurm"
	"scrimp/internal/market/accelerator"
)

const (
	// otherFeature explains why a partition or a feature that names no accelerator is lost.
	otherFeature = "offers are chosen by what they have, by price and by deadline; zones and capacity narrow them"
	// mostListed bounds the commands that the advice for an array lists.
	mostListed = 8
)

// memoryWord matches the memory of an accelerator as a feature: 80g, 80gb.
var memoryWord = regexp.MustCompile(`(?i)^[0-9]+gb?$`)

// features returns the kinds of accelerators that a constraint names, which are alternatives, and its parts that name
// none: a100|h100, a100&80gb, (a100|h100)&nvlink.
func features(constraint string) (kinds, others []string) {
	parts := []string{constraint}
	switch {
	case strings.ContainsAny(constraint, "()[]"):
		parts = outside(constraint)
	case !strings.Contains(constraint, "|"):
		if kind := gpu.Named(constraint); kind != "" { // a feature may be its memory
			kinds = append(kinds, kind)
		}
		for _, word := range outside(constraint) {
			if gpu.Named(word) == "" && (!memoryWord.MatchString(word) || kinds == nil) {
				others = append(others, word)
			}
		}
		return kinds, others
	}
	for _, part := range parts {
		for word := range strings.SplitSeq(strings.Trim(part, "()[]"), "|") {
			if kind := gpu.Named(word); kind == "" {
				others = append(others, word)
			} else if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds, others
}

// outside splits a constraint at & and at commas that lie outside of brackets.
func outside(s string) (parts []string) {
	depth, from := 0, 0
	for i, r := range s {
		switch {
		case r == '(' || r == '[':
			depth++
		case r == ')' || r == ']':
			depth--
		case (r == '&' || r == ',') && depth <= 0:
			parts, from = append(parts, s[from:i]), i+1
		}
	}
	return slices.DeleteFunc(append(parts, s[from:]), func(p string) bool { return strings.TrimSpace(p) == "" })
}

// chooseKinds sets the kinds of accelerators from the option that says most: --gres, --constraint, or --partition. It
// reports what the others name and the job does not take over.
func (d *draft) chooseKinds(s *sbatch) {
	kinds, others := features(s.constraint.value)
	if c := s.constraint; c.at != nil && len(others) > 0 {
		d.lose(c.at, c.field, strings.Join(others, ", ")+": "+otherFeature)
	}
	asked := s.gpuKind
	if asked != "" {
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return !within(kind, asked) })
		if c := s.constraint; c.at != nil && len(kinds) == 0 && len(others) == 0 {
			d.lose(c.at, c.field, c.value+" is another accelerator than "+asked+", which the script asks for")
		}
	}
	switch {
	case len(kinds) > 0 && s.gpu == "":
		s.gpu = "1"
		d.lose(s.constraint.at, s.constraint.field, fmt.Sprintf("it names %s, and the script asks for no number of "+
			"GPUs: the job file asks for one, so correct resources.accelerator", strings.Join(kinds, ", ")))
	case len(kinds) == 0 && asked != "":
		kinds = []string{asked}
	}
	d.partition(s, &kinds)
	s.kinds = kinds
}

// partition takes the kind of accelerator from the name of the partition if nothing else says it.
func (d *draft) partition(s *sbatch, kinds *[]string) {
	p := s.partition
	if p.at == nil {
		return
	}
	switch kind := gpu.Named(p.value); {
	case kind == "":
		d.lose(p.at, p.field, otherFeature)
	case s.gpu == "":
		d.lose(p.at, p.field, fmt.Sprintf("it names %s, and the script asks for no GPUs: give resources.accelerator, "+
			"such as %s", kind, gpu.Counted(kind, "8")))
	case len(*kinds) == 0:
		*kinds = []string{kind}
	case !slices.ContainsFunc(*kinds, func(k string) bool { return within(k, kind) || within(kind, k) }):
		d.lose(p.at, p.field, p.value+" names another accelerator than "+strings.Join(*kinds, ", ")+
			", which the script asks for")
	}
}

// within reports whether each accelerator of a kind is one of another kind, as A100-80GB of A100.
func within(kind, of string) bool {
	some := false
	for _, a := range accelerator.Accelerators() {
		if accelerator.Matches(kind, a.Name) {
			if some = true; !accelerator.Matches(of, a.Name) {
				return false
			}
		}
	}
	return some
}

// nodesForm matches the number of machines: 4, 2-4.
var nodesForm = regexp.MustCompile(`^([0-9]{1,7})(?:-([0-9]{1,7}))?$`)

// machineCount reads --nodes: 4, 2-4. The fewest machines count for what is given in all.
func (d *draft) machineCount(s *sbatch, o given) {
	m := nodesForm.FindStringSubmatch(o.value)
	if m == nil {
		d.lose(o.at, o.field, fmt.Sprintf("%q is no number of machines: give nodes, such as 4 or 2..4", o.value))
		return
	}
	least, _ := strconv.Atoi(m[1]) // at most seven digits
	most := least
	if m[2] != "" {
		most, _ = strconv.Atoi(m[2])
	}
	if least < 1 || most < least || most > 1<<20 {
		d.lose(o.at, o.field, fmt.Sprintf("%q is no number of machines: give nodes, such as 4 or 2..4", o.value))
		return
	}
	s.nodes, s.mostNodes, s.nodesAt = least, most, nil
	if most > 1 {
		s.nodesAt = o.at
	}
}

// arrayOf says how to submit the array of the script.
func (d *draft) arrayOf(s *sbatch, o given) {
	s.array = o.value
	list, ok := slurm.Arrays(o.value)
	run := "scrimp run " + quote(d.to) + " --array "
	switch {
	case !ok:
		d.lose(o.at, o.field, fmt.Sprintf("%q names no indexes: an array is a flag of the run, as in %s0-99", o.value, run))
	case len(list) == 1:
		d.lose(o.at, o.field, "an array is a flag of the run: "+run+list[0])
	default:
		more := ""
		if len(list) > mostListed {
			list, more = list[:mostListed], " …"
		}
		d.lose(o.at, o.field, "an array is a flag of the run and has one range, so submit one for each part: "+
			run+strings.Join(list, ", --array ")+more)
	}
}

// dependsOn says how to submit a job that waits for others.
func (d *draft) dependsOn(o given) {
	run := "scrimp run " + quote(d.to) + " --after JOB"
	kind, _, _ := strings.Cut(o.value, ":")
	switch kind {
	case "afterany":
		run += ":any"
	case "after", "afternotok", "aftercorr", "afterburstbuffer", "expand", "singleton":
		d.lose(o.at, o.field, o.value+": a job waits for the end of others only: "+run+" (success), --after JOB:any (any end)")
		return
	}
	d.lose(o.at, o.field, o.value+": which jobs it waits for is a flag of the run: "+run+", with scrimp's name of the job")
}

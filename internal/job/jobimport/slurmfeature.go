package jobimport

import (
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/job/jobimport/gpu"
	"scrimp/internal/job/jobimport/slurm"
)

const (
	// otherFeature explains why a partition or a feature that names no accelerator is lost.
	otherFeature = "offers are chosen by what they have, by price and by deadline; zones and capacity narrow them"
	// mostListed bounds the commands that the advice for an array lists.
	mostListed = 8
)

// chooseKinds sets the kinds of accelerators from the option that says most: --gres, --constraint, or --partition. It
// reports what the others name and the job does not take over.
func (d *draft) chooseKinds(s *sbatch) {
	kinds, others := gpu.Features(s.constraint.value)
	if c := s.constraint; c.at != nil && len(others) > 0 {
		d.lose(c.at, c.field, strings.Join(others, ", ")+": "+otherFeature)
	}
	asked := s.gpuKind
	if asked != "" {
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return !gpu.Within(kind, asked) })
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
	switch list := gpu.NamedByEach(p.value); {
	case len(list) == 0:
		d.lose(p.at, p.field, otherFeature)
	case s.gpu == "":
		d.lose(p.at, p.field, fmt.Sprintf("it names %s, and the script asks for no GPUs: give resources.accelerator, "+
			"such as %s", strings.Join(list, ", "), gpu.Counted(list[0], "8")))
	case len(*kinds) == 0:
		*kinds = list
	case !slices.ContainsFunc(*kinds, func(k string) bool { return gpu.WithinAny(k, list) }):
		d.lose(p.at, p.field, p.value+" names another accelerator than "+strings.Join(*kinds, ", ")+
			", which the script asks for")
	}
}

// machineCount reads --nodes: 4, 2-4. The fewest machines count for what is given in all.
func (d *draft) machineCount(s *sbatch, o given) {
	least, most, ok := slurm.Nodes(o.value)
	if !ok {
		d.lose(o.at, o.field, fmt.Sprintf("%q is not a number of machines: give nodes, such as 4 or 2..4", o.value))
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
		d.lose(o.at, o.field, o.value+": a job waits for the end of others only: "+run+" (success), --after JOB:any "+
			"(any end)")
		return
	}
	d.lose(o.at, o.field, o.value+": which jobs it waits for is a flag of the run: "+run+", with scrimp's name of the job")
}

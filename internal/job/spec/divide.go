package spec

import (
	"cmp"
	"fmt"
	"strconv"

	"scrimp/internal/job/launcher"
)

// Named reports whether the model says what is trained, and not only how.
func (m Model) Named() bool {
	return m.Config != "" || m.Shape != "" || m.Parameters > 0 || m.Layers > 0 && m.Hidden > 0
}

// words returns the words of the job's program.
func (j Job) words() []string {
	if len(j.Args) > 0 {
		return j.Args
	}
	return launcher.Words(j.Command)
}

// Launcher returns the parallelism in the job's command.
func (j Job) Launcher() launcher.Settings { return launcher.Read(j.words()) }

// Divided fills the model's unset parallelism from the launcher. Contradictions between the two are Problems without
// lines.
func (j Job) Divided(s launcher.Settings) (Job, Problems) {
	c := checker{j: j}
	c.agree(s)
	s = s.Settled()
	m := &j.Model
	m.Sharding, m.Checkpointing = cmp.Or(m.Sharding, s.Sharding.Value), cmp.Or(m.Checkpointing, s.Recompute.Value)
	m.Tensor, m.Pipeline = cmp.Or(m.Tensor, degree(s.Tensor)), cmp.Or(m.Pipeline, degree(s.Pipeline))
	return j, c.problems
}

func degree(s launcher.Said) int {
	n, _ := strconv.Atoi(s.Value) // the launcher's values are numbers or ""
	return n
}

// agree compares the model's settings with the launcher's.
func (c *checker) agree(s launcher.Settings) {
	m := c.j.Model
	for _, f := range []struct {
		field, own string
		said       launcher.Said
	}{
		{"sharding", m.Sharding, s.Sharding},
		{"tensor_parallel", number(m.Tensor), s.Tensor},
		{"pipeline_parallel", number(m.Pipeline), s.Pipeline},
		{"activation_checkpointing", m.Checkpointing, s.Recompute},
	} {
		same := f.own == f.said.Value
		if f.field == "sharding" { // FSDP equals stage 3
			same = launcher.Stage(f.own) == launcher.Stage(f.said.Value)
		}
		c.wrong(f.own != "" && f.said.Value != "" && !same, "model."+f.field,
			fmt.Sprintf("is %s, and the program is told %s (%s)", f.own, f.said.Value, f.said.Where),
			"say the same in both, or leave it out here")
	}
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// divided compares the parallelism with the job's command and accelerators.
func (c *checker) divided() {
	c.agree(c.j.Launcher())
	m := c.j.Model
	cut := max(1, m.Tensor) * max(1, m.Pipeline)
	_, count := c.j.Resources.GPUs()
	all := count.Min * c.j.MostNodes()
	fixed := count.Min > 0 && count.Min == count.Max && c.j.FewestNodes() == c.j.MostNodes()
	c.wrong(fixed && cut > 1 && all%cut != 0, "model.tensor_parallel",
		fmt.Sprintf("times pipeline_parallel is %d, which does not divide the %d accelerators", cut, all),
		"ask for a multiple of it")
}

// Package artifacts shows the checkpoints and outputs that jobs keep.
package artifacts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
)

// Kept lists a job's stored outputs and checkpoints, and the copied ones.
type Kept struct {
	Job         string
	Outputs     []api.Outputs    // by node
	Checkpoints []api.Checkpoint // newest first
	Copied      []Copied
}

// Copied is a set of outputs in a local folder.
type Copied struct {
	api.Outputs
	Folder string
}

// Line is the JSON line for copied outputs.
type Line struct {
	Job         string        `json:"job"`
	Folder      string        `json:"folder"`
	Node        int           `json:"node"`
	Files       int           `json:"files"`
	Bytes       int64         `json:"bytes"`
	Outputs     []api.Outputs `json:"outputs"`     // of all nodes
	Checkpoints int           `json:"checkpoints"` // number of stored checkpoints
}

// Line returns the JSON line for c.
func (k Kept) Line(c Copied) Line {
	return Line{Job: k.Job, Folder: c.Folder, Node: c.Node, Files: c.Files, Bytes: c.Bytes, Outputs: k.Outputs,
		Checkpoints: len(k.Checkpoints)}
}

// Of returns the outputs of one node ("" is 0), or of all. If there are none, the error lists what exists.
func (k Kept) Of(node string) ([]api.Outputs, error) {
	if len(k.Outputs) == 0 {
		if len(k.Checkpoints) > 0 {
			return nil, fmt.Errorf("%s has kept no outputs: name folders in outputs of its job file; it has kept %s", k.Job,
				k.checkpoints())
		}
		return nil, fmt.Errorf("%s has kept no outputs: name folders in outputs of its job file", k.Job)
	}
	if node == "all" {
		return k.Outputs, nil
	}
	n, err := strconv.Atoi(node)
	if node != "" && (err != nil || n < 0) {
		return nil, fmt.Errorf("--node %.20s is not the number of a machine: give one from 0, or all", node)
	}
	for _, o := range k.Outputs {
		if o.Node == n {
			return []api.Outputs{o}, nil
		}
	}
	return nil, fmt.Errorf("node %d of %s has kept no outputs: scrimp get %s --node all copies those of %s", n, k.Job,
		k.Job, nodesText(k.Outputs))
}

// Text lists what was copied where, and what else is stored.
func (k Kept) Text(p show.Place) string {
	var b strings.Builder
	for _, c := range k.Copied {
		of := k.Job
		if len(k.Outputs) > 1 || c.Node > 0 {
			of = fmt.Sprintf("node %d of %s", c.Node, k.Job)
		}
		b.WriteString(draw.Wrap("", fmt.Sprintf("%s holds the outputs of %s: %s, %s, kept %s", c.Folder, of,
			draw.Count(c.Files, "file"), show.Bytes(c.Bytes), p.When(c.Kept)), p.Columns()))
	}
	var also []string
	left := slices.DeleteFunc(slices.Clone(k.Outputs), func(o api.Outputs) bool {
		return slices.ContainsFunc(k.Copied, func(c Copied) bool { return c.Node == o.Node })
	})
	if len(left) > 0 {
		also = append(also, fmt.Sprintf("outputs of %s: scrimp get %s --node all", nodesText(left), k.Job))
	}
	if len(k.Checkpoints) > 0 {
		also = append(also, k.checkpoints())
	}
	for _, text := range also {
		b.WriteString(draw.Wrap("Also kept: ", show.Clean(text), p.Columns()))
	}
	return b.String()
}

// checkpoints formats the number of checkpoints, and how to get the newest.
func (k Kept) checkpoints() string {
	count := draw.Count(len(k.Checkpoints), "checkpoint")
	for _, c := range k.Checkpoints {
		if c.Newest && len(k.Checkpoints) > 1 {
			count += ", the newest"
		}
		if c.Newest && c.Step > 0 {
			count += fmt.Sprintf(" of step %d", c.Step)
		}
	}
	return count + ": scrimp get " + k.Job + " --checkpoint"
}

// nodesText formats nodes: "node 1", "nodes 1 and 2", "nodes 1 to 7".
func nodesText(list []api.Outputs) string {
	first, last := list[0].Node, list[len(list)-1].Node
	switch {
	case len(list) == 1:
		return fmt.Sprintf("node %d", first)
	case len(list) > 2 && last-first == len(list)-1:
		return fmt.Sprintf("nodes %d to %d", first, last)
	}
	var names []string
	for _, o := range list[:len(list)-1] {
		names = append(names, strconv.Itoa(o.Node))
	}
	return fmt.Sprintf("nodes %s and %d", strings.Join(names, ", "), last)
}

// HasKept lists a job's stored outputs and the command that copies them.
func HasKept(j api.Job, list []api.Outputs, p show.Place) string {
	files, bytes, flag := 0, int64(0), ""
	for _, o := range list {
		files, bytes = files+o.Files, bytes+o.Bytes
	}
	if len(list) > 1 {
		flag = " --node all"
	}
	text := fmt.Sprintf("scrimp get %s%s copies its outputs here: %s, %s.", j.ID, flag, draw.Count(files, "file"),
		show.Bytes(bytes))
	if j.State == "succeeded" && j.Detail != "" { // some of them were left out
		text += " Note: " + j.Detail + "."
	}
	return draw.Wrap("", show.Clean(text), p.Columns())
}

// Ending reports a requested end of a job, and what can continue from there. keeps means that the job file names a
// checkpoint folder.
func Ending(j api.Job, save, keeps bool, p show.Place) string {
	id := show.Clean(j.ID)
	switch {
	case j.State == "succeeded":
		return draw.Wrap("", id+" has succeeded already.", p.Columns())
	case j.Closed || !save:
		return draw.Wrap("", id+" is "+j.State+".", p.Columns()) + GoesOn(j, p)
	case !keeps:
		return draw.Wrap("", fmt.Sprintf("%s ends; it keeps no checkpoint (checkpoint.dir in its job file). scrimp attach "+
			"%s shows it, scrimp resume %s starts it from the beginning.", id, id, id), p.Columns())
	}
	return draw.Wrap("", fmt.Sprintf("%s saves a checkpoint and ends: scrimp attach %s shows it. scrimp resume %s goes "+
		"on from there.", id, id, id), p.Columns())
}

// GoesOn names the command that resumes an ended job, or submits it again.
func GoesOn(j api.Job, p show.Place) string {
	id := show.Clean(j.ID)
	if v := j.Approval; v != nil && v.Proposal && (v.Approved == nil || !*v.Approved) { // resume refuses it
		return draw.Wrap("", fmt.Sprintf("Nobody approved the proposal: scrimp rerun %s submits it again.", id), p.Columns())
	}
	if j.SavedStep > 0 {
		return draw.Wrap("", fmt.Sprintf("scrimp resume %s goes on from its checkpoint of step %d.", id, j.SavedStep),
			p.Columns())
	}
	return draw.Wrap("", fmt.Sprintf("scrimp resume %s takes it up again.", id), p.Columns())
}

// GotCheckpoint is a checkpoint copied to a local folder.
type GotCheckpoint struct {
	Job        string `json:"job"`
	Checkpoint string `json:"checkpoint"`
	Folder     string `json:"folder"`
	Step       int64  `json:"step"`
	Files      int    `json:"files"`
	Bytes      int64  `json:"bytes"`
}

// Text says what was copied where.
func (g GotCheckpoint) Text(p show.Place) string {
	text := fmt.Sprintf("%s holds checkpoint %s of %s:", g.Folder, g.Checkpoint, g.Job)
	if g.Step > 0 {
		text += fmt.Sprintf(" step %d,", g.Step)
	}
	text += fmt.Sprintf(" %s, %s", draw.Count(g.Files, "file"), show.Bytes(g.Bytes))
	return draw.Wrap("", show.Clean(text), p.Columns())
}

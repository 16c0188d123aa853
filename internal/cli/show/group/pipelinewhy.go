package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
)

// PipelineWhy explains why a stage ran or did not.
type PipelineWhy struct {
	Run     string        `json:"run"`
	Stage   string        `json:"stage"`
	State   string        `json:"state"`
	Why     string        `json:"why,omitempty"`
	Key     string        `json:"key,omitempty"`
	Against string        `json:"against,omitempty"` // the newest earlier run whose stage has a key; empty if none
	Same    bool          `json:"same"`              // its key is equal there
	Changes []StageChange `json:"changes,omitempty"`
}

// StageChange is a difference in the inputs of a stage.
type StageChange struct {
	What   string `json:"what"` // input, param, program or other
	Name   string `json:"name,omitempty"`
	By     string `json:"by,omitempty"` // the stage that makes the input
	Before string `json:"before,omitempty"`
	Now    string `json:"now,omitempty"`
}

// WhyOf compares a stage of a run with the newest earlier run that has it. list may hold runs of any pipelines.
func WhyOf(g api.Group, list []api.Group, stage string) (v PipelineWhy, err error) {
	s := stageOf(g, stage)
	if s == nil {
		var names []string
		for _, x := range g.Pipeline.Stages {
			names = append(names, x.Name)
		}
		if len(names) > 20 {
			names = append(names[:20], "…")
		}
		return v, fmt.Errorf("%s has no stage %s: it has %s", g.ID, stage, strings.Join(names, ", "))
	}
	v = PipelineWhy{Run: g.ID, Stage: s.Name, State: s.State, Why: s.Why, Key: s.Key}
	before, run := earlier(g, list, s.Name)
	if before == nil || s.Key == "" {
		return v, nil
	}
	v.Against, v.Same = run, before.Key == s.Key
	if !v.Same {
		v.Changes = changes(g, s, before)
	}
	return v, nil
}

// earlier returns a stage as it was in the newest run of the same pipeline before g that gave it a key, and the ID of
// that run. It returns nil where no run did.
func earlier(g api.Group, list []api.Group, stage string) (before *api.StageState, run string) {
	var newest time.Time
	for _, other := range list {
		if other.Pipeline == nil || other.Name != g.Name || other.ID == g.ID || !other.Submitted.Before(g.Submitted) {
			continue
		}
		x := stageOf(other, stage)
		if x != nil && x.Key != "" && (before == nil || other.Submitted.After(newest)) {
			before, run, newest = x, other.ID, other.Submitted
		}
	}
	return before, run
}

func stageOf(g api.Group, name string) *api.StageState {
	for i := range g.Pipeline.Stages {
		if g.Pipeline.Stages[i].Name == name {
			return &g.Pipeline.Stages[i]
		}
	}
	return nil
}

// changes returns the differences between two runs of a stage.
func changes(g api.Group, s, before *api.StageState) (list []StageChange) {
	was, is := map[string]string{}, map[string]string{}
	for _, c := range before.Inputs {
		was[c.Path] = c.Digest
	}
	for _, c := range s.Inputs {
		is[c.Path] = c.Digest
	}
	for _, c := range differ("input", was, is) {
		for _, x := range g.Pipeline.Stages {
			if slices.ContainsFunc(x.Outs, func(o api.StageContent) bool {
				return o.Path == c.Name || strings.HasPrefix(c.Name, o.Path+"/") || strings.HasPrefix(o.Path, c.Name+"/")
			}) {
				c.By = x.Name
			}
		}
		list = append(list, c)
	}
	list = append(list, differ("param", before.Params, s.Params)...)
	if before.Program != s.Program {
		list = append(list, StageChange{What: "program", Before: before.Program, Now: s.Program})
	}
	if len(list) == 0 {
		list = append(list, StageChange{What: "other"})
	}
	return list
}

// differ returns the names whose values differ.
func differ(what string, was, is map[string]string) (list []StageChange) {
	all := maps.Clone(is)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, was)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if was[name] != is[name] {
			list = append(list, StageChange{What: what, Name: name, Before: was[name], Now: is[name]})
		}
	}
	return list
}

// Text formats the explanation for people.
func (v PipelineWhy) Text(p show.Place) string {
	var b strings.Builder
	state := show.Words(v.State)
	if v.Why != "" {
		state += ": " + show.Clean(v.Why)
	}
	fmt.Fprintf(&b, "%s of %s is %s\n", show.Clean(v.Stage), show.Clean(v.Run), state)
	switch {
	case v.Key == "":
		p.Fact(&b, "inputs", "not known yet: they are when the stages before it are done")
	case v.Against == "":
		p.Fact(&b, "compared", "with nothing: no earlier run of this pipeline has come to it")
	case v.Same:
		p.Fact(&b, "compared", "with %s: its inputs, params and program are the same", v.Against)
		if v.State == "done" || v.State == "running" || v.State == "failed" {
			p.Fact(&b, "ran", "all the same: always_changed and data at an address make a stage run each time, and outputs "+
				"that are gone are made again")
		}
	default:
		p.Fact(&b, "compared", "with %s", v.Against)
	}
	short := func(digest string) string {
		if len(digest) > 12 {
			digest = digest[:12]
		}
		return digest
	}
	for _, c := range v.Changes {
		switch c.What {
		case "input":
			name := c.Name
			if name == "." {
				name = "the work folder"
			}
			if c.By != "" {
				name += ", which " + c.By + " makes,"
			}
			p.Fact(&b, "input", "%s %s", name, changed(short(c.Before), short(c.Now)))
		case "param":
			p.Fact(&b, "param", "%s %s", c.Name, changed(c.Before, c.Now))
		case "program":
			p.Fact(&b, "program", "its command, environment, image or set-up has changed")
		default:
			p.Fact(&b, "other", "its inputs are the same: its params, outs, command, environment or image have changed")
		}
	}
	return b.String()
}

func changed(before, now string) string {
	switch {
	case before == "":
		return "is new: " + now
	case now == "":
		return "is gone; it was " + before
	}
	return "has changed from " + before + " to " + now
}

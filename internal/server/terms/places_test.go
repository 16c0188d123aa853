package terms_test

import (
	"strings"
	"testing"

	"scrimp/internal/decide/plan"
	"scrimp/internal/job/spec"
	"scrimp/internal/market"
	"scrimp/internal/server/terms"
	"scrimp/internal/test/must"
)

// sold lists two partitions of a cluster, one's own machines, and a local market.
var sold = []market.Offer{
	{ID: "slurm/gpu/m/on-demand", Provider: "slurm", Region: "slurm", Zone: "gpu", Capacity: market.OnDemand},
	{ID: "slurm/spot/m/spot", Provider: "slurm", Region: "slurm", Zone: "spot", Capacity: market.Spot},
	{ID: "lab/own/m/reserved", Provider: "lab", Region: "lab", Zone: "own", Capacity: market.Reserved},
	{ID: "local/gpu/m/spot", Provider: "local", Region: "r", Zone: "gpu", Capacity: market.Spot},
}

// A job that names engines may use their offers only, and those of a zone if it names one.
func TestNeed_RestrictsToNamedEngines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"any_of: [lab, slurm/gpu]": "slurm/gpu/m/on-demand lab/own/m/reserved",
		"any_of: slurm":            "slurm/gpu/m/on-demand slurm/spot/m/spot",
		"any_of: local/gpu":        "local/gpu/m/spot",
		"name: all":                "slurm/gpu/m/on-demand slurm/spot/m/spot lab/own/m/reserved local/gpu/m/spot",
		"any_of: [lab, {engine: local, args: [x]}]":                       "lab/own/m/reserved local/gpu/m/spot",
		"any_of: [lab, {args: [x]}]":                                      "lab/own/m/reserved",
		"any_of: [slurm]\nresources: {zones: [gpu]}":                      "slurm/gpu/m/on-demand",
		"any_of: [{name: x, engine: lab}]\nladder: [{use: x}]":            "lab/own/m/reserved",
		"any_of: [slurm/gpu, {resources: {capacity: spot}}]":              "slurm/gpu/m/on-demand",
		"any_of: [lab, {engine: slurm, resources: {capacity: spot}}]":     "slurm/spot/m/spot lab/own/m/reserved",
		"any_of: [slurm, {engine: lab, args: [--x], throughput: 1.5x}]\n": "slurm/gpu/m/on-demand slurm/spot/m/spot lab/own/m/reserved",
	} {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\n"+text), "", now)
		must.Do(t, err)
		need := terms.Need(j)
		var got []string
		for _, o := range sold {
			l := plan.Listing{Offer: o, Quote: market.Quote{Priced: true, Available: true, Rate: 1e12}}
			if _, ok := need.Fits(&l); ok {
				got = append(got, string(o.ID))
			}
		}
		other := need
		other.Engines = append([]string{"other"}, need.Engines...)
		if other.Key() == need.Key() {
			t.Errorf("%s: jobs that are held to other engines count as the same", text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: it may have %s, not %s", text, got, want)
		}
		if list := terms.Unknown(j, []string{"lab", "local", "slurm"}, sold); len(list) > 0 {
			t.Errorf("%s: %v", text, list)
		}
	}
}

// Unknown engines are refused with the list of known ones; an engine that has not answered accepts any zone.
func TestUnknown_NamesMissingEngines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"any_of: [slrm/gpu]": "`any_of[0].engine` is \"slrm/gpu\", and the server has no engine slrm: " +
			"write one of away, lab, slurm, or make it known with scrimp engine add",
		"any_of: [lab, slurm/gpus]": "`any_of[1].engine` is \"slurm/gpus\", and engine slurm has no gpus: " +
			"write slurm for all of it, or one of slurm/gpu, slurm/spot",
		"any_of: [{engine: local, args: [x]}]": "`any_of[0].engine` is \"local\", and the server has no engine local: " +
			"write one of away, lab, slurm, or make it known with scrimp engine add",
		"any_of: [away/x]": "",
	} {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\n"+text), "", now)
		must.Do(t, err)
		if got := terms.Unknown(j, []string{"slurm", "lab", "away"}, sold).Error(); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

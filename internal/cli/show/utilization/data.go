package utilization

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
	"scrimp/money"
)

// fromServer is the name of what a machine's cache had of a work folder. The server sends the rest.
const fromServer = "scrimp:work"

// JobData is what bringing inputs to the machines of a job took.
type JobData struct {
	Job     string `json:"job"`
	Name    string `json:"name"`
	Project string `json:"project,omitempty"`
	Team    string `json:"team,omitempty"`
	client.DataUse
}

// dataCells returns the cells that a read and a job have in common.
func dataCells(bytes, hits, fetched int64, seconds float64, cost, saved *money.Amount) []string {
	return []string{bytesOf(bytes), bytesOf(hits), bytesOf(fetched),
		draw.Span(time.Duration(seconds * float64(time.Second))), dollars(cost), dollars(saved)}
}

func bytesOf(n int64) string { return size.About(float64(n)) }

// dollars writes an amount; a dash is an unknown one.
func dollars(a *money.Amount) string {
	if a == nil {
		return "-"
	}
	return money.Short(*a, money.USD)
}

// dataColumns follow the first columns of a table of reads or jobs.
var dataColumns = []draw.Column{{Name: "BYTES", Right: true}, {Name: "CACHED", Right: true},
	{Name: "READ", Right: true}, {Name: "TOOK", Right: true, Leaves: 1},
	{Name: "COST", Right: true}, {Name: "SAVED", Right: true}}

// Data formats the reads of a job.
func Data(j JobData, p show.Place) string {
	if len(j.Reads) == 0 && j.Unreported > 0 {
		return draw.Wrap("", show.Clean(j.Job)+": "+dataSum([]JobData{j}), p.Columns())
	}
	if len(j.Reads) == 0 {
		return draw.Wrap("", show.Clean(j.Job)+": no machine has brought an input yet. Machines bring inputs that have a "+
			"name, under data in the job file.", p.Columns())
	}
	var rows [][]string
	for _, r := range j.Reads {
		rows = append(rows, append([]string{show.Clean(r.Attempt), show.Clean(r.Name)},
			dataCells(r.Bytes, r.HitBytes, r.Fetched, r.Seconds, r.Cost, r.Saved)...))
	}
	return draw.Grid(append([]draw.Column{{Name: "ATTEMPT", Key: true}, {Name: "INPUT", Key: true}}, dataColumns...), rows,
		p.Columns()) + "\n" + draw.Wrap("", dataSum([]JobData{j}), p.Columns())
}

// NoJobs says that no job was selected, of a team and a project if they are not empty.
func NoJobs(team, project string, p show.Place) string {
	text := "No job that you may see was submitted in this span"
	if team != "" {
		text += " by team " + show.Clean(team)
	}
	if project != "" {
		text += " in project " + show.Clean(project)
	}
	return draw.Wrap("", text+".", p.Columns())
}

// DataOfJobs formats the sums of jobs.
func DataOfJobs(list []JobData, p show.Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No machine has brought an input. Machines bring inputs that have a name, under data in the "+
			"job file.", p.Columns())
	}
	var rows [][]string
	for _, j := range list {
		rows = append(rows, append([]string{show.Clean(j.Job), show.Clean(j.Name)},
			dataCells(j.Bytes, j.HitBytes, j.Fetched, j.Seconds, j.Cost, j.Saved)...))
	}
	return draw.Grid(append([]draw.Column{{Name: "JOB", Key: true}, {Name: "NAME", Leaves: 2}}, dataColumns...), rows,
		p.Columns()) + "\n" + draw.Wrap("", dataSum(list), p.Columns())
}

// dataSum says what all of it took.
func dataSum(list []JobData) string {
	var bytes, hits, fetched, requests, unpriced, unreported int64
	var cost, saved money.Amount
	known, named := false, false
	for _, j := range list {
		bytes, hits, fetched, requests = bytes+j.Bytes, hits+j.HitBytes, fetched+j.Fetched, requests+j.Requests
		unreported += j.Unreported
		unpriced += j.UnpricedFetched + j.UnpricedHits
		named = named || slices.ContainsFunc(j.Reads, func(r client.DataRead) bool {
			return r.Cost == nil && r.Name != fromServer
		})
		if j.Cost != nil && j.Saved != nil {
			cost, saved, known = cost.Add(*j.Cost), saved.Add(*j.Saved), true
		}
	}
	share := ""
	if bytes > 0 {
		share = fmt.Sprintf(" (%.0f %%)", float64(hits)/float64(bytes)*100)
	}
	parts := []string{fmt.Sprintf("%s of %s came from caches%s, and %s was read with %s", bytesOf(hits), bytesOf(bytes),
		share, bytesOf(fetched), draw.Count(int(requests), "request"))}
	if known {
		parts = append(parts, fmt.Sprintf("reading cost %s, and the caches saved %s", money.Short(cost, money.USD),
			money.Short(saved, money.USD)))
	}
	if unpriced > 0 {
		parts = append(parts, "the price of "+bytesOf(unpriced)+" is unknown")
		if named { // a work folder comes from the server
			parts[len(parts)-1] += ": give region under data in the job file"
		}
	}
	if unreported > 0 {
		parts = append(parts, draw.Count(int(unreported), "machine")+" ended before a report, so "+
			"what was read there is unknown")
	}
	return strings.Join(parts, "; ") + ". Charges for requests are unknown."
}

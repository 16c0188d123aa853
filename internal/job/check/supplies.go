package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/job/check/fact"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/egress"
	"scrimp/money"
)

func dataRegion(c *Case) (Verdict, string, string) {
	j := c.Job
	if yes, ok := c.said("data_same_region"); ok {
		if yes {
			return Pass, "you say so", ""
		}
		return Warn, "you say that it is not",
			"copy the data once to where the job runs, or set resources.zones to where the data lies"
	}
	if len(j.Data) == 0 {
		if m, ok := c.find(remoteForm); ok {
			return Unknown, "it reads " + m.where + ", and nothing says where that lies",
				"name it under data with size and region"
		}
		return Unknown, "the job names no data",
			"name inputs under data with size and region, or " + fact.Supply("data_same_region")
	}
	for _, d := range j.Data {
		if !strings.Contains(d.Path, "://") {
			continue
		}
		if d.Region == "" {
			return Unknown, fmt.Sprintf("%s has no region", d.Path), "give it: data.region"
		}
		if v, text, fix := c.place(d); v != Pass {
			return v, text + "; " + c.reading(d), fix
		}
	}
	return Pass, fmt.Sprintf("all of %s lie where it runs, or travel with the work folder",
		draw.Count(len(j.Data), "input")), ""
}

// place compares where an input lies with where the job may run.
func (c *Case) place(d spec.Data) (Verdict, string, string) {
	zones := c.Job.Resources.Zones
	in := func(z string) bool { return strings.HasPrefix(z, d.Region) }
	switch {
	case len(zones) == 0:
		return Warn, fmt.Sprintf("%s lies in %s, and resources.zones names no place", d.Path, d.Region),
			fmt.Sprintf("set resources.zones: [%s], or keep copies elsewhere", d.Region)
	case !slices.ContainsFunc(zones, in):
		return Fail, fmt.Sprintf("%s lies in %s, and the job runs in %s only", d.Path, d.Region,
			strings.Join(zones, ", ")), "copy the data there first, or move the job: every attempt pays for the transfer"
	case slices.ContainsFunc(zones, func(z string) bool { return !in(z) }) && !slices.Contains(zones, d.Region):
		return Warn, fmt.Sprintf("%s lies in %s, and the job may run in %s", d.Path, d.Region, strings.Join(zones, ", ")),
			fmt.Sprintf("set resources.zones: [%s]", d.Region)
	}
	return Pass, "", ""
}

// reading says what each machine in another region pays for reading an input once.
func (c *Case) reading(d spec.Data) string {
	o := egress.From(catalog.Catalog{Own: c.Charges}, catalog.Store(d.Path), d.Region)
	if o.Near == nil && o.Out == nil {
		return "what reading it elsewhere costs is unknown, and a run takes machines in " + d.Region + " only"
	}
	if d.Size == 0 {
		return "without its size, what reading it elsewhere costs is unknown, and a run takes machines in " + d.Region +
			" only"
	}
	var parts []string
	for _, way := range []struct {
		fare  *money.Rate
		where string
	}{{o.Near, "in other regions of " + o.Provider + " on the continent"}, {o.Out, "outside " + o.Provider}} {
		if way.fare != nil {
			parts = append(parts, money.Short(egress.Cost(int64(d.Size), *way.fare), money.USD)+" "+way.where)
		}
	}
	return "each machine pays for reading it once: " + strings.Join(parts, ", ")
}

func dataCached(c *Case) (Verdict, string, string) {
	if yes, ok := c.said("data_cached"); ok {
		if yes {
			return Pass, "you say so", ""
		}
		return Warn, "you say that it is not", "keep a copy beside the machines, so that an attempt does not fetch all again"
	}
	if m, ok := c.find(cacheForm); ok && !m.only && !m.off {
		return Pass, m.where, ""
	}
	if len(c.Job.Data) > 0 && !slices.ContainsFunc(c.Job.Data, func(d spec.Data) bool {
		return strings.Contains(d.Path, "://")
	}) {
		return Pass, "it travels with the work folder", ""
	}
	if len(c.Job.Data) > 0 && !slices.ContainsFunc(c.Job.Data, func(d spec.Data) bool {
		return strings.Contains(d.Path, "://") && d.Name == ""
	}) {
		return Pass, "each machine keeps inputs with a name in its cache", ""
	}
	return Unknown, "unknown whether a second attempt fetches the data again", fact.Supply("data_cached")
}

func (c *Case) owners() (have, missing []string) {
	j := c.Job
	for _, t := range []struct{ name, value string }{{"team", j.Team}, {"project", j.Project},
		{"environment", j.Environment}} {
		if t.value != "" || j.Tags[t.name] != "" {
			have = append(have, t.name)
		} else {
			missing = append(missing, t.name)
		}
	}
	return have, missing
}

func tags(c *Case) (Verdict, string, string) {
	have, missing := c.owners()
	if len(missing) == 0 {
		return Pass, "team, project and environment are named", ""
	}
	text := "no " + strings.Join(missing, ", no ")
	if len(have) > 0 {
		text = strings.Join(have, " and ") + " named; " + text
	}
	return Warn, text, "name them in the job file: they stand on every cost"
}

func budget(c *Case) (Verdict, string, string) {
	b := c.Job.Budget
	low, high, how, known := c.price()
	switch {
	case b.Dollars != nil && known && low > b.Dollars.Float():
		return Fail, fmt.Sprintf("%s, and it needs %s: %s", usd(b.Dollars.Float()), dollars(low, high), how),
			"raise the budget, or make the job smaller: it would be stopped on the way"
	case b.Dollars != nil && known && high > b.Dollars.Float():
		return Warn, fmt.Sprintf("%s, and it may need %s: %s", usd(b.Dollars.Float()), dollars(low, high), how),
			"it suffices while spot is available throughout"
	case b.Dollars != nil:
		return Pass, usd(b.Dollars.Float()) + " in all", ""
	case b.WallClock > 0 && c.Job.MaxPrice > 0:
		most := c.Job.MaxPrice.Float() * time.Duration(b.WallClock).Hours() * float64(c.Job.MostNodes())
		return Pass, fmt.Sprintf("%s at no more than $%s/h: %s at most", draw.Span(time.Duration(b.WallClock)),
			c.Job.MaxPrice, usd(most)), ""
	case b.GPUHours > 0 || b.WallClock > 0:
		return Warn, "hours are limited, their price is not", "give budget.dollars, or max_price"
	}
	fix := "give budget: what is reached first stops it, with a checkpoint"
	if known {
		fix = fmt.Sprintf("budget: %s would be half more than it is expected to cost", usd(high*1.5))
	}
	return Fail, "the cost has no limit", fix
}

func subset(c *Case) (Verdict, string, string) {
	if !c.trains() {
		return Pass, "the job does not train", ""
	}
	if d, ok := c.length(); ok && d <= 30*time.Minute {
		return Pass, fmt.Sprintf("it is small itself: %s", draw.Span(d)), ""
	}
	for _, r := range c.Runs {
		if r.State == "succeeded" && (c.Job.Work.Steps == 0 || r.Steps > 0 && r.Steps <= c.Job.Work.Steps) {
			return Pass, fmt.Sprintf("%s went through %d steps", r.Job, r.Steps), ""
		}
		if r.Profile && r.Steps > 0 && r.State == "stopped" {
			return Pass, fmt.Sprintf("%s did %d steps of it", r.Job, r.Steps), ""
		}
	}
	if yes, ok := c.said("subset_run"); ok {
		if yes {
			return Pass, "you say so", ""
		}
		return Warn, "you say that none was", "let scrimp profile run a few minutes of it"
	}
	if len(c.Runs) > 0 {
		return Warn, fmt.Sprintf("none of %s went through", draw.Count(len(c.Runs), "earlier run")),
			"run a small part of it to its end first"
	}
	return Unknown, "no earlier run of that name is known here",
		"let scrimp profile run a few minutes of it, or " + fact.Supply("subset_run")
}

package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"scrimp/internal/cli/show/holdings"
	"scrimp/internal/cli/storage/compare"
	"scrimp/internal/lib/durable"
	"scrimp/internal/work/storage"
	"scrimp/internal/work/storage/lifecycle"
)

// scan reads the places and shows what lies there, what it costs, and what the rules save.
func (a *app) scan(ctx context.Context, f flags, args []string) error {
	places, err := Places(args)
	if err != nil {
		return err
	}
	least, rules, prices, err := f.read(places)
	if err != nil {
		return err
	}
	g := newGuard(a.Data)
	keep, err := keepAll(g, f.keep, places)
	if err != nil {
		return err
	}
	if err := f.plannable(append(namesOf(places), keep...)); err != nil {
		return err
	}
	if err := g.ask(ctx, a.App); err != nil {
		return err
	}
	now := a.Now()
	planner := storage.NewPlanner(now, places, rules, prices)
	candidates := storage.Candidates{Least: int64(least)}
	s := newScanner(g, func(x storage.File) {
		planner.Add(x)
		candidates.Add(x)
	}, a.progress("read"))
	if err := a.scanPlaces(ctx, s, places); err != nil {
		return err
	}
	copies, left, err := compare.Duplicates(ctx, places, &candidates, a.progress("compared"))
	a.done()
	if err != nil {
		return err
	}
	result := planner.Finish()
	plan := storage.PlanOf(now, places, rules, keep, result)
	v := holdings.Of(places, rules, prices, result, copies)
	v.Standard = f.rules == ""
	v.Uncompared, v.Digest, v.Plan, v.Hidden = left+candidates.Left, plan.Digest, f.plan, g.hidden
	v.Skipped = append(v.Skipped, s.skipped.list()...)
	if g.away != nil {
		a.Notef("scrimp: the server does not say what live jobs need, so --apply will refuse the plan: %v\n", g.away)
	}
	if f.lifecycle != "" {
		if err := a.lifecycle(f, places[0], planner, result); err != nil || f.to == "" || f.to == "-" {
			return err // without an error, standard output holds the configuration
		}
	}
	if err := f.writePlan(plan); err != nil {
		return err
	}
	return a.Show(v, v.Text(a.Place()))
}

// plannable refuses to plan for a name that JSON cannot hold.
func (f flags) plannable(names []string) error {
	if i := slices.IndexFunc(names, func(n string) bool { return !utf8.ValidString(n) }); i >= 0 && f.plan != "" {
		return fmt.Errorf("--plan: the name %q is not UTF-8, so no plan can hold it: leave it out", names[i])
	}
	return nil
}

// writePlan writes the plan to the file of --plan, if there is one.
func (f flags) writePlan(plan storage.Plan) error {
	if f.plan == "" {
		return nil
	}
	text, err := json.MarshalIndent(plan, "", " ")
	if err == nil {
		err = durable.Replace(f.plan, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write --plan: %w", err)
	}
	return nil
}

func namesOf(places []storage.Place) (list []string) {
	for _, p := range places {
		list = append(list, p.Name)
	}
	return list
}

func (a *app) lifecycle(f flags, place storage.Place, planner *storage.Planner, result storage.Result) error {
	container, _, _ := bucketOf(place.Name)
	list, err := planner.Lifecycle(0, result.Moves)
	if err != nil {
		return err
	}
	text, err := lifecycle.Write(f.lifecycle, container, list)
	if err != nil {
		return err
	}
	if f.to == "" || f.to == "-" {
		a.Content(string(text))
		return nil
	}
	if err := durable.Replace(f.to, text); err != nil {
		return fmt.Errorf("write -o: %w", err)
	}
	return nil
}

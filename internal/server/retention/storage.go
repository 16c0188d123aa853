package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// maxFiles bounds the job files that one request reads, and maxNeeded the paths that it returns.
const (
	maxFiles  = 20_000
	maxNeeded = 200_000
)

// Storage returns what the server keeps, and the paths that live jobs need elsewhere.
func (d *Service) Storage(w http.ResponseWriter, r *http.Request) {
	c := auth.CallerOf(r)
	sees := func(team string) bool { return c.Role(team) >= identity.Viewer }
	v := client.Storage{Teams: []client.TeamStorage{}, Needed: []string{}}
	kept, err := d.measured(r.Context())
	if err == nil {
		for _, t := range kept.teams {
			if sees(t.Team) {
				v.Teams = append(v.Teams, t)
			}
		}
		v.Needed, v.Hidden, err = d.needed(r.Context(), sees)
	}
	if errors.Is(err, errTooMany) {
		reply.Problem(w, http.StatusServiceUnavailable, err.Error(), "ask again when fewer jobs are live", nil)
		return
	}
	if err != nil {
		reply.Problem(w, http.StatusInternalServerError, "not everything was checked",
			"ask again; the detail says what is wrong", err)
		return
	}
	if c.Role(identity.Everywhere) >= identity.Viewer {
		v.Kinds = kept.kinds
	}
	reply.JSON(w, v)
}

// logsByJob reports the size of the output and the telemetry of each job.
func (d *Service) logsByJob(ctx context.Context, add func(job string, n int64)) error {
	names, err := d.Logs.Logs(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		end, err := d.Logs.LogEnd(ctx, name)
		if err != nil {
			return err
		}
		add(jobOfLog(name), end)
	}
	sizes, err := d.Logs.AllSeries(ctx)
	for name, n := range sizes {
		add(jobOfLog(name), n)
	}
	return err
}

var errTooMany = fmt.Errorf("more than %d job files are live, or they name more than %d paths", maxFiles, maxNeeded)

// needed returns the paths and addresses that job files of live jobs and open groups name, and counts those of teams
// that the caller does not see.
func (d *Service) needed(ctx context.Context, sees func(team string) bool) (list []string, hidden int, err error) {
	events := map[uint64]bool{}
	note := func(team string, event uint64) {
		if !sees(team) {
			hidden++
			return
		}
		events[event] = true
	}
	d.Control.Read(func(m *core.Machine) {
		for _, j := range m.State().Jobs() {
			if !j.State().Over() {
				note(j.Terms().Owner.Team, j.SpecEvent())
			}
		}
		for _, g := range m.State().Groups() {
			if g.Phase != state.GroupOver {
				note(g.Terms.Owner.Team, g.Event)
				if of := m.State().Group(g.Terms.Parent); of != nil { // a run has the job files of its schedule
					note(of.Terms.Owner.Team, of.Event)
				}
			}
		}
	})
	if len(events) > maxFiles {
		return nil, 0, errTooMany
	}
	found := map[string]bool{}
	for _, event := range slices.Sorted(maps.Keys(events)) {
		files, err := d.Control.SpecsAt(ctx, event)
		if err != nil {
			return nil, 0, err
		}
		for _, f := range files {
			for _, p := range PathsOf(f) {
				found[p] = true
			}
		}
		if len(found) > maxNeeded {
			return nil, 0, errTooMany
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(found))...), hidden, nil
}

// pathIn finds addresses, quoted absolute paths and absolute paths in a command.
var pathIn = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>;,|&()]+|"[/~][^"]*"|'[/~][^']*'|` +
	`(?:^|[\s"'=:,;(|&<>])[/~][^\s"'<>;,|&():]*`)

// PathsOf returns the absolute paths and addresses in a job file: every text that is one, and those within texts.
func PathsOf(file json.RawMessage) (list []string) {
	var v any
	if json.Unmarshal(file, &v) != nil {
		return nil
	}
	add := func(text string) {
		text = strings.Trim(text, " \t\n\r\"'=:,;(|&<>")
		if strings.Contains(text, "://") || (text != "" && text[0] == '~' || len(text) > 1 && text[0] == '/') {
			list = append(list, text)
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			v = strings.NewReplacer("${HOME}", "~", "$HOME", "~").Replace(v)
			if strings.HasPrefix(v, "/") {
				add(v)
			}
			for _, p := range pathIn.FindAllString(v, -1) {
				add(p)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	slices.Sort(list)
	return slices.Compact(list)
}

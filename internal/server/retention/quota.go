package retention

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/size"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/workdir"
)

// ErrQuota means that a team has used up its disk limit.
var ErrQuota = errors.New("the team has used its disk")

// measureEvery is the lowest interval between two measurements of the teams' usage; rest is the interval as a
// multiple of the time that a measurement took.
const (
	measureEvery = 30 * time.Second
	rest         = 10
)

// Quota reports whether teams have disk space left for work folders, outputs, checkpoints in the server's own store,
// and output of programs.
type Quota struct {
	Control *control.Control
	Logs    Logs
	Folders *workdir.Store
	Dir     string                  // the data folder
	Limits  func() map[string]int64 // bytes of each team with a limit

	mu    sync.Mutex
	next  time.Time // time of the next measurement
	of    map[string]*usage
	teams map[string]string // by job; never changes
}

// usage is the disk usage of a team.
type usage struct {
	bytes int64
	has   map[string]bool // contents of its work folders: contents shared by jobs count once
}

// Used returns the usage of each team with a limit.
func (q *Quota) Used(ctx context.Context) map[string]int64 {
	list := map[string]int64{}
	for team := range q.Limits() {
		if bytes, err := q.take(ctx, team, 0, ""); err == nil || errors.Is(err, ErrQuota) {
			list[team] = bytes
		}
	}
	return list
}

// Folder reserves space for the work folder of a team's job, or returns why there is none.
func (q *Quota) Folder(ctx context.Context, team, job string) error {
	if q.Limits()[team] == 0 {
		return nil
	}
	r, err := q.Folders.Of(job)
	if errors.Is(err, workdir.ErrNone) {
		_, err = q.take(ctx, team, 0, "")
		return err
	}
	if err == nil {
		_, err = q.take(ctx, team, 0, r.Tree)
	}
	return err
}

// Bytes reserves space for what an agent sends for a job, or returns why there is none.
func (q *Quota) Bytes(ctx context.Context, job string, n int64) error {
	limits := q.Limits()
	if len(limits) == 0 {
		return nil
	}
	team := q.teamOf(job)
	if limits[team] == 0 {
		return nil
	}
	_, err := q.take(ctx, team, max(0, n), "")
	return err
}

// Again makes the next call measure anew, after a removal.
func (q *Quota) Again() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next = time.Time{}
}

// take counts bytes and the contents of a folder, if the team's limit allows them.
func (q *Quota) take(ctx context.Context, team string, n int64, tree string) (used int64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); now.After(q.next) {
		if err := q.measure(ctx); err != nil {
			return 0, fmt.Errorf("measure the disk usage of %s: %w", team, err)
		}
		q.next = time.Now().Add(max(measureEvery, rest*time.Since(now)))
	}
	u := q.of[team]
	if u == nil { // its limit is new
		u = &usage{has: map[string]bool{}}
		q.of[team], q.next = u, time.Time{}
	}
	var fresh []string
	if tree != "" {
		err := q.Folders.Contents(tree, func(sum string, bytes int64) {
			if !u.has[sum] {
				fresh, n = append(fresh, sum), n+disk.OnDisk(bytes)
			}
		})
		if err != nil {
			return u.bytes, err
		}
	}
	if limit := q.Limits()[team]; limit > 0 && u.bytes+n > limit {
		return u.bytes, fmt.Errorf("%w: team %s has %s of %s, and this is %s more", ErrQuota, team, formatBytes(u.bytes),
			formatBytes(limit), formatBytes(n))
	}
	for _, sum := range fresh {
		u.has[sum] = true
	}
	u.bytes += n
	return u.bytes, nil
}

// formatBytes formats a size.
func formatBytes(n int64) string { return size.Bytes(n).String() }

// measure sums the usage of the teams with a limit. The caller holds mu.
func (q *Quota) measure(ctx context.Context) error {
	q.of = map[string]*usage{}
	for team := range q.Limits() {
		q.of[team] = &usage{has: map[string]bool{}}
	}
	jobs, err := q.Folders.Jobs()
	if err != nil {
		return err
	}
	for job, ref := range jobs {
		u := q.of[q.known(job)]
		if u == nil {
			continue
		}
		err := q.Folders.Contents(ref.Tree, func(sum string, bytes int64) {
			if !u.has[sum] {
				u.has[sum] = true
				u.bytes += disk.OnDisk(bytes)
			}
		})
		if err != nil {
			return err
		}
	}
	top := filepath.Join(q.Dir, "blobs", "jobs")
	dirs, err := os.ReadDir(top)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, d := range dirs {
		if u := q.of[q.known(d.Name())]; u != nil {
			u.bytes += disk.Used(filepath.Join(top, d.Name()))
		}
	}
	return q.measureLogs(ctx)
}

func (q *Quota) measureLogs(ctx context.Context) error {
	names, err := q.Logs.Logs(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		u := q.of[q.known(jobOfLog(name))]
		if u == nil {
			continue
		}
		end, err := q.Logs.LogEnd(ctx, name)
		if err != nil {
			return err
		}
		u.bytes += end
	}
	sizes, err := q.Logs.AllSeries(ctx)
	for name, bytes := range sizes {
		if u := q.of[q.known(jobOfLog(name))]; u != nil {
			u.bytes += bytes
		}
	}
	return err
}

// teamOf returns the team of a job; "": no such job.
func (q *Quota) teamOf(job string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known(job)
}

// known is teamOf for a caller who holds mu.
func (q *Quota) known(job string) (team string) {
	if team, ok := q.teams[job]; ok {
		return team
	}
	if !q.Control.Job(job, func(_ *core.Machine, j *core.Job) { team = j.Terms().Owner.Team }) {
		if !q.Control.Group(job, func(_ *core.Machine, g *state.Group) { team = g.Terms.Owner.Team }) {
			return "" // not cached, since the job may still appear
		}
	}
	if q.teams == nil {
		q.teams = map[string]string{}
	}
	q.teams[job] = team
	return team
}

package retention

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/server/disk"
)

// sizesLast is how long the sizes of a walk over the data folder count. A page that somebody reloads causes no walk.
const sizesLast = time.Minute

// sizes is what the server keeps, as a walk over the data folder found it.
type sizes struct {
	sync.Mutex // held during a walk, so that there is one at a time
	at         time.Time
	kinds      []client.StorageUse
	teams      []client.TeamStorage
}

// found is a copy of sizes without its lock.
type found struct {
	kinds []client.StorageUse
	teams []client.TeamStorage
}

// measured returns what the server keeps, from a walk that is at most sizesLast old.
func (d *Service) measured(ctx context.Context) (found, error) {
	s := &d.sizes
	s.Lock()
	defer s.Unlock()
	if age := time.Since(s.at); s.at.IsZero() || age >= sizesLast {
		teams, err := d.byTeam(ctx)
		if err != nil {
			return found{}, err
		}
		s.teams, s.kinds = teams, nil
		for _, u := range disk.Measure(d.Dir) {
			s.kinds = append(s.kinds, client.StorageUse{Kind: u.Kind, Bytes: u.Bytes})
		}
		s.at = time.Now()
	}
	return found{s.kinds, s.teams}, nil
}

// forget makes the next measured walk anew, because files were removed.
func (s *sizes) forget() {
	s.Lock()
	defer s.Unlock()
	s.at = time.Time{}
}

// byTeam returns what the server keeps for each team, by name and kind.
func (d *Service) byTeam(ctx context.Context) ([]client.TeamStorage, error) {
	q := &Quota{Control: d.Control, Logs: d.Logs, Folders: d.Folders, Dir: d.Dir}
	type part struct{ team, kind string }
	bytes := map[part]int64{}
	add := func(job, kind string, n int64) {
		if team := q.teamOf(job); n > 0 {
			bytes[part{team, kind}] += n
		}
	}
	jobs, err := d.Folders.Jobs()
	if err != nil {
		return nil, err
	}
	had := map[part]bool{} // contents of a team
	for job, ref := range jobs {
		team := q.teamOf(job)
		err := d.Folders.Contents(ref.Tree, func(sum string, n int64) {
			if k := (part{team, sum}); !had[k] {
				had[k] = true
				add(job, client.GCWork, disk.OnDisk(n))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	top := filepath.Join(d.Dir, "blobs", "jobs")
	dirs, err := os.ReadDir(top)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range dirs {
		dir := filepath.Join(top, e.Name())
		outputs := disk.Used(filepath.Join(dir, "outputs")) + disk.Used(filepath.Join(dir, "objects", "kept"))
		add(e.Name(), client.GCOutputs, outputs)
		add(e.Name(), client.GCCheckpoints, disk.Used(dir)-outputs)
	}
	if err := d.logsByJob(ctx, func(job string, n int64) { add(job, client.GCLogs, n) }); err != nil {
		return nil, err
	}
	list := []client.TeamStorage{}
	for p, n := range bytes {
		list = append(list, client.TeamStorage{Team: p.team, StorageUse: client.StorageUse{Kind: p.kind, Bytes: n}})
	}
	slices.SortFunc(list, func(a, b client.TeamStorage) int {
		return strings.Compare(a.Team+"\x00"+a.Kind, b.Team+"\x00"+b.Kind)
	})
	return list, nil
}

package telemetry

import (
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/store/logfile"
	"scrimp/internal/wire/telemetry"
)

// fresh is the highest age of present values.
const fresh = time.Minute

// List returns the present telemetry of the running jobs that the caller sees.
func (d *Service) List(w http.ResponseWriter, r *http.Request) {
	c := auth.CallerOf(r)
	reply.JSON(w, slices.DeleteFunc(d.Running(), func(j client.JobTelemetry) bool {
		return c.Role(j.Team) < identity.Viewer
	}))
}

// Running returns the present telemetry of all running jobs, in the order of their attempts' start.
func (d *Service) Running() []client.JobTelemetry {
	list := []client.JobTelemetry{}
	d.Control.Read(func(m *core.Machine) {
		for _, a := range m.Live() {
			j, ok := m.Job(a.Job())
			if !ok {
				continue
			}
			owner := j.Terms().Owner
			list = append(list, client.JobTelemetry{Job: j.ID(), Name: j.Terms().Name, User: j.User(), Team: owner.Team,
				Project: owner.Project, Attempt: a.ID(), Nodes: a.Nodes(), Now: map[string]float64{}})
		}
	})
	now := time.Now()
	for i := range list {
		d.now(&list[i], now)
	}
	return list
}

// now fills in the newest ten seconds of each machine of a job.
func (d *Service) now(j *client.JobTelemetry, now time.Time) {
	var s telemetry.Summary
	for n := range j.Nodes {
		b, gpus, ok := d.newest(logfile.Name(j.Attempt, n))
		if !ok || now.Sub(time.Unix(b.End(), 0)) > fresh {
			continue
		}
		b.Covered = 1 // weight each machine the same
		s.Add([]telemetry.Bucket{b})
		j.Measured, j.GPUs = j.Measured+1, j.GPUs+gpus
		if end := time.Unix(b.End(), 0).UTC(); j.At == nil || end.After(*j.At) {
			j.At = &end
		}
	}
	for m := range telemetry.Metrics {
		of := s.Of[m]
		if !of.Known() || m == telemetry.Core {
			continue
		}
		if v := of.Average; m.AddsUp() {
			j.Now[m.String()] = of.Sum()
		} else {
			j.Now[m.String()] = v
		}
	}
}

// newest returns the newest bucket of a rank that reported recently.
func (d *Service) newest(name string) (b telemetry.Bucket, gpus int, ok bool) {
	d.mu.Lock()
	r := d.by[name]
	d.mu.Unlock()
	if r == nil {
		return b, 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, len(r.head.GPUs), r.upTo > 0
}

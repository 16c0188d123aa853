package slurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"scrimp/internal/engine/slurm/rest"
	"scrimp/internal/engine/slurm/scheduler"
)

// errNotThere is the error for a path that slurmrestd does not have.
var errNotThere = errors.New("not found")

// slurmrestd returns a v0.0.38 client of the simulated cluster.
func (p *paper) slurmrestd() *rest.Client {
	c := rest.New(&rest.Setting{URL: "unix:///paper", Version: rest.Tried})
	c.HTTP.Transport = paperTransport{p, c.User}
	return c
}

type paperTransport struct {
	*paper
	user string
}

// RoundTrip implements http.RoundTripper: it runs the command that corresponds to each request.
func (t paperTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	out, err := t.answer(q)
	status := http.StatusOK
	if no, ok := errors.AsType[*scheduler.Error](err); ok {
		out, err = map[string]any{"errors": []any{map[string]any{"error": no.Text}}}, nil
		status = http.StatusInternalServerError
	}
	if errors.Is(err, errNotThere) {
		status, err = http.StatusNotFound, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(out)
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(string(b)))}, err
}

func (t paperTransport) answer(q *http.Request) (map[string]any, error) {
	path, ok := strings.CutPrefix(q.URL.Path, "/slurm/"+rest.Tried)
	if !ok {
		return nil, errNotThere
	}
	id := strings.TrimPrefix(path, "/job/")
	var err error
	switch {
	case path == "/partitions":
		_, err = t.run(q.Context(), "scontrol", "show", "partition")
		return map[string]any{"partitions": []any{map[string]any{"name": "p", "state": "UP", "max_time_limit": -1,
			"default_time_limit": nil, "preemption_mode": []string{"requeue"}, "preemption_grace_time": 10}}}, err
	case path == "/nodes":
		_, err = t.run(q.Context(), "sinfo", "--Node")
		var nodes []any
		for _, name := range []string{"n1", "n2"} {
			nodes = append(nodes, map[string]any{"name": name, "address": "127.0.0.1", "hostname": name, "cpus": 8,
				"real_memory": 4000, "gres": "gpu:a100:4", "state": "idle", "partitions": []string{"p"}})
		}
		return map[string]any{"nodes": nodes}, err
	case path == "/job/submit":
		return t.submitted(q)
	case path == "/jobs" || q.Method == http.MethodGet:
		return t.listed(q, id)
	case q.Method == http.MethodDelete:
		_, err = t.run(q.Context(), "scancel", id)
		return map[string]any{}, err
	}
	var update struct {
		Hold bool `json:"hold"`
	}
	if err := json.NewDecoder(q.Body).Decode(&update); err != nil {
		return nil, err
	}
	_, err = t.run(q.Context(), "hold", strconv.FormatBool(update.Hold), id)
	return map[string]any{}, err
}

func (t paperTransport) submitted(q *http.Request) (map[string]any, error) {
	var s struct {
		Script string `json:"script"`
		Job    struct {
			Name    string `json:"name"`
			Comment string `json:"comment"`
			Folder  string `json:"current_working_directory"`
		} `json:"job"`
	}
	if err := json.NewDecoder(q.Body).Decode(&s); err != nil {
		return nil, err
	}
	if !strings.Contains(s.Script, "claim/job") {
		return nil, fmt.Errorf("the script is %q", s.Script)
	}
	out, err := t.run(q.Context(), "sbatch", "--job-name="+s.Job.Name, "--comment="+s.Job.Comment, s.Job.Folder+"/run.sh")
	id, _ := strconv.Atoi(strings.TrimSpace(out))
	return map[string]any{"job_id": id}, err
}

// listed returns what squeue prints for one job or for all.
func (t paperTransport) listed(q *http.Request, id string) (map[string]any, error) {
	out, err := t.run(q.Context(), "squeue", "--all")
	var jobs []any
	for l := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(l, "\n"), "|", 8)
		if id != "/jobs" && id != f[0] {
			continue
		}
		job, _ := strconv.Atoi(f[0])
		start, _ := strconv.Atoi(f[3])
		end, _ := strconv.Atoi(f[4])
		jobs = append(jobs, map[string]any{"job_id": job, "job_state": f[1], "state_reason": f[2], "start_time": max(0, start),
			"end_time": max(0, end), "nodes": f[5], "name": f[6], "comment": f[7], "user_name": t.user})
	}
	return map[string]any{"jobs": jobs}, err
}

package agent

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/agent/programapi"
	"scrimp/internal/lib/child"
	"scrimp/internal/wire/api"
)

// folders are the places on the machine's disk.
type folders struct {
	own        string // the agent's, of this task
	top        string // of the task, with all that follows
	work       string // the program's working folder
	checkpoint string // SCRIMP_CHECKPOINT_DIR
	log        string // the program's output
	progress   string // SCRIMP_PROGRESS_FILE
	token      string // file of the token for Kubeflow's form
}

// layOut says where everything of assignment a lies below folder machine.
func layOut(machine string, a api.Assignment) folders {
	top := topOf(machine, a.Attempt)
	f := folders{
		own:      filepath.Join(ownFolder(machine), "tasks", a.Attempt),
		top:      top,
		work:     filepath.Join(top, "work"),
		log:      filepath.Join(top, "log"),
		progress: filepath.Join(top, "progress.jsonl"),
		token:    filepath.Join(top, "trainer-token"),
	}
	f.checkpoint = filepath.Join(top, "checkpoint")
	if d := a.Checkpoint.Dir; d != "" {
		f.checkpoint = below(f.work, d)
	}
	if p := a.Progress.File; p != "" {
		f.progress = below(f.work, p)
	}
	return f
}

// below returns path as it is where it is absolute, and in folder dir else.
func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// surroundings is what the program's environment is made of.
type surroundings struct {
	base     []string // the machine's own
	borrowed bool     // but that of whoever started the server
	a        api.Assignment
	instance string
	folders  folders
	restored string
	url      string // of the program's API
	token    string
	port     int    // at which the programs of the gang meet
	network  string // interface that has the machine's address in its gang; "": not known, or no gang
	// of the machine; 0: none is known
	accelerators int
}

// environ returns the program's environment. What is later in it wins:
// the machine's, that of the submitter's shell, the job's, scrimp's own, secrets. The agent's own variables,
// its token among them, do not reach the program.
func (s surroundings) environ() []string {
	env := map[string]string{}
	for _, kv := range s.base {
		name, value, ok := strings.Cut(kv, "=")
		if ok && !strings.HasPrefix(name, "SCRIMP_") && !child.OfStores(name) && (!s.borrowed || child.OfMachine(name)) {
			env[name] = value
		}
	}
	env["PYTHONUNBUFFERED"] = "1" // or a killed program's last lines are lost
	if p := s.a.Part; p != nil {
		maps.Copy(env, ofPart(p))
	}
	maps.Copy(env, s.gang())
	maps.Copy(env, s.a.Shell)
	maps.Copy(env, s.a.Env)
	maps.Copy(env, map[string]string{
		"PWD":        s.folders.work,
		"SCRIMP_JOB": s.a.Job, "SCRIMP_ATTEMPT": s.a.Attempt, "SCRIMP_EPOCH": strconv.Itoa(s.a.Epoch),
		"SCRIMP_INSTANCE":       s.instance,
		"SCRIMP_CHECKPOINT_DIR": s.folders.checkpoint, "SCRIMP_RESTORED": s.restored, "SCRIMP_METRIC": s.a.Metric,
		"SCRIMP_PROGRESS_FILE": s.folders.progress,
		"SCRIMP_AGENT_URL":     s.url, "SCRIMP_AGENT_TOKEN": s.token,
		"KUBEFLOW_TRAINER_SERVER_URL":   s.url + fmt.Sprintf(programapi.TrainerPath, s.a.Job),
		"KUBEFLOW_TRAINER_SERVER_TOKEN": s.folders.token, // a file that holds it, as Kubeflow mounts it
	})
	delete(env, "SCRIMP_CHECKPOINT_INTERVAL_S")
	if d := s.a.Checkpoint.Interval; d > 0 {
		env["SCRIMP_CHECKPOINT_INTERVAL_S"] = strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
	}
	maps.Copy(env, s.a.Secrets)
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// withhold keeps what is of the submitter's shell from a user of the task's own, who cannot read the
// submitter's files, and says which of the names that the job asked for it does not get.
func (g *attempt) withhold(output io.Writer) error {
	if g.user != 0 {
		for _, name := range slices.Sorted(maps.Keys(g.a.Shell)) {
			if !slices.Contains(api.Shell, name) {
				g.a.Withheld = append(g.a.Withheld, name)
			}
		}
		g.a.Shell = nil
	}
	if len(g.a.Withheld) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(output, "scrimp: not set on this machine, which does not share the files of the shell that "+
		"submitted: %s (inherit): write values for it under env or secrets\n", strings.Join(g.a.Withheld, ", "))
	return err
}

// ofPart is how a program learns what it has of a machine that serves others too: CUDA and ROCm
// show it its accelerators only, and numeric libraries take as many threads.
func ofPart(p *api.Part) map[string]string {
	list := make([]string, len(p.Devices))
	for i, d := range p.Devices {
		list[i] = strconv.Itoa(d)
	}
	devices := strings.Join(list, ",")
	env := map[string]string{"CUDA_VISIBLE_DEVICES": devices, "ROCR_VISIBLE_DEVICES": devices,
		"SCRIMP_DEVICES": devices, "SCRIMP_CPUS": strconv.Itoa(p.CPUs),
		"SCRIMP_MEMORY_BYTES": strconv.FormatInt(p.Memory, 10)}
	if p.CPUs > 0 {
		env["OMP_NUM_THREADS"] = strconv.Itoa(p.CPUs)
	}
	return env
}

package place

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/agent/programapi"
	"scrimp/internal/lib/child"
	"scrimp/internal/wire/api"
)

// Environment is what the program's environment is made of.
type Environment struct {
	Base     []string // the machine's own
	Borrowed bool     // but that of whoever started the server
	Task     api.Assignment
	Instance string
	Folders  Folders
	Restored string
	URL      string // of the program's API
	Token    string
	Port     int    // at which the programs of the gang meet
	Network  string // interface that has the machine's address in its gang; "": not known, or no gang
	// of the machine; 0: none is known
	Accelerators int
}

// Variables returns the program's environment. What is later in it wins:
// the machine's, that of the submitter's shell, the job's, scrimp's own, secrets. The agent's own variables,
// its token among them, do not reach the program.
func (s Environment) Variables() []string {
	env := map[string]string{}
	for _, kv := range s.Base {
		name, value, ok := strings.Cut(kv, "=")
		if ok && !strings.HasPrefix(name, "SCRIMP_") && !child.OfStores(name) && (!s.Borrowed || child.OfMachine(name)) {
			env[name] = value
		}
	}
	env["PYTHONUNBUFFERED"] = "1" // or a killed program's last lines are lost
	if p := s.Task.Part; p != nil {
		maps.Copy(env, ofPart(p))
	}
	maps.Copy(env, s.gang())
	maps.Copy(env, s.Task.Shell)
	maps.Copy(env, s.Task.Env)
	maps.Copy(env, map[string]string{
		"PWD":        s.Folders.Work,
		"SCRIMP_JOB": s.Task.Job, "SCRIMP_ATTEMPT": s.Task.Attempt, "SCRIMP_EPOCH": strconv.Itoa(s.Task.Epoch),
		"SCRIMP_INSTANCE":       s.Instance,
		"SCRIMP_CHECKPOINT_DIR": s.Folders.Checkpoint, "SCRIMP_RESTORED": s.Restored, "SCRIMP_METRIC": s.Task.Metric,
		"SCRIMP_PROGRESS_FILE": s.Folders.Progress,
		"SCRIMP_AGENT_URL":     s.URL, "SCRIMP_AGENT_TOKEN": s.Token,
		"KUBEFLOW_TRAINER_SERVER_URL":   s.URL + fmt.Sprintf(programapi.TrainerPath, s.Task.Job),
		"KUBEFLOW_TRAINER_SERVER_TOKEN": s.Folders.Token, // a file that holds it, as Kubeflow mounts it
	})
	delete(env, "SCRIMP_CHECKPOINT_INTERVAL_S")
	if d := s.Task.Checkpoint.Interval; d > 0 {
		env["SCRIMP_CHECKPOINT_INTERVAL_S"] = strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
	}
	maps.Copy(env, s.Task.Secrets)
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
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

// gang are the variables by which the programs of an attempt find each other: scrimp's, torchrun's
// and Slurm's. A job of one machine has them too, so that the same script runs.
func (s Environment) gang() map[string]string {
	nodes, node := strconv.Itoa(max(1, s.Task.Nodes)), strconv.Itoa(s.Task.Node)
	devices := s.devices()
	procs, port := strconv.Itoa(max(1, devices)), strconv.Itoa(s.Port)
	addresses := s.Task.Addresses
	if len(addresses) == 0 {
		addresses = []string{"127.0.0.1"}
	}
	all := strings.Join(addresses, ",")
	env := map[string]string{
		"SCRIMP_NODE": node, "SCRIMP_NODES": nodes, "SCRIMP_NODE_ADDRESSES": all, "SCRIMP_PROCS_PER_NODE": procs,
		"MASTER_ADDR": addresses[0], "MASTER_PORT": port, "NODE_RANK": node,
		"PET_NNODES": nodes, "PET_NODE_RANK": node, "PET_NPROC_PER_NODE": procs,
		"PET_MASTER_ADDR": addresses[0], "PET_MASTER_PORT": port,
		// As srun says it to the one task that it starts on each machine.
		"SLURM_JOB_NUM_NODES": nodes, "SLURM_NNODES": nodes, "SLURM_NODEID": node, "SLURM_JOB_NODELIST": all,
		"SLURM_NTASKS": nodes, "SLURM_NTASKS_PER_NODE": "1", "SLURM_PROCID": node, "SLURM_LOCALID": "0",
		// What Slurm calls a shell that a user sits at: Lightning would take any other for a job
		// that it is to requeue. SLURM_JOB_ID and SLURM_JOBID are not set: nobody answers for them.
		"SLURM_JOB_NAME": "bash",
	}
	if devices > 0 {
		env["SLURM_GPUS_ON_NODE"] = procs
	}
	if s.Network != "" { // gloo goes by the host's name else, which need not be an address that others reach
		env["GLOO_SOCKET_IFNAME"] = s.Network
	}
	return env
}

// devices are the accelerators that the program sees: those of the machine, or those that its
// environment leaves it.
func (s Environment) devices() int {
	const name = "CUDA_VISIBLE_DEVICES"
	visible, set := s.Task.Env[name]
	if p := s.Task.Part; p != nil && !set {
		return len(p.Devices)
	}
	for _, kv := range s.Base {
		if v, ok := strings.CutPrefix(kv, name+"="); ok && !set {
			visible, set = v, true
		}
	}
	switch {
	case !set:
		return s.Accelerators
	case visible == "" || strings.HasPrefix(visible, "-"): // none
		return 0
	}
	return min(s.Accelerators, strings.Count(visible, ",")+1)
}

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

// Environment holds the sources of the program's environment.
type Environment struct {
	Base     []string // the machine's environment
	Borrowed bool     // Base belongs to whoever started the server
	Task     api.Assignment
	Instance string
	Folders  Folders
	Restored string
	URL      string // of the program's API
	Token    string
	Port     int               // where the programs of the gang meet
	Inputs   map[string]string // variables of the inputs that the agent brings
	Network  string            // interface with the machine's address in its gang; empty: unknown, or no gang
	// Accelerators is the number of the machine's accelerators; 0: unknown.
	Accelerators int
}

// Variables returns the program's environment. Later sources win: the machine's, the submitter's
// shell, the job's, scrimp's own, secrets. The program does not get the agent's own variables, such
// as its token.
func (s Environment) Variables() []string {
	env := map[string]string{}
	for _, kv := range s.Base {
		name, value, ok := strings.Cut(kv, "=")
		if ok && !strings.HasPrefix(name, "SCRIMP_") && !child.OfStores(name) && (!s.Borrowed || child.OfMachine(name)) {
			env[name] = value
		}
	}
	env["PYTHONUNBUFFERED"] = "1" // otherwise the last lines of a killed program are lost
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
		"KUBEFLOW_TRAINER_SERVER_TOKEN": s.Folders.Token, // a file with the token, as Kubeflow mounts it
	})
	delete(env, "SCRIMP_CHECKPOINT_INTERVAL_S")
	maps.Copy(env, s.Inputs)
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

// ofPart returns variables that describe the program's part of a shared machine. CUDA and ROCm then
// show only its accelerators, and numeric libraries start that many threads. CUDA numbers the
// fastest accelerator first; CUDA_DEVICE_ORDER makes it number them as nvidia-smi and scrimp do.
func ofPart(p *api.Part) map[string]string {
	list := make([]string, len(p.Devices))
	for i, d := range p.Devices {
		list[i] = strconv.Itoa(d)
	}
	devices := strings.Join(list, ",")
	env := map[string]string{visible: devices, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "ROCR_VISIBLE_DEVICES": devices,
		"SCRIMP_DEVICES": devices, "SCRIMP_CPUS": strconv.Itoa(p.CPUs),
		"SCRIMP_MEMORY_BYTES": strconv.FormatInt(p.Memory, 10)}
	if p.CPUs > 0 {
		env["OMP_NUM_THREADS"] = strconv.Itoa(p.CPUs)
	}
	return env
}

// gang returns the variables with which the programs of an attempt find each other, for scrimp,
// torchrun and Slurm. A job on one machine gets them too, so that the same script runs.
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
		// As srun sets them for one task on each machine.
		"SLURM_JOB_NUM_NODES": nodes, "SLURM_NNODES": nodes, "SLURM_NODEID": node, "SLURM_JOB_NODELIST": all,
		"SLURM_NTASKS": nodes, "SLURM_NTASKS_PER_NODE": "1", "SLURM_PROCID": node, "SLURM_LOCALID": "0",
		// The job name that Slurm uses for an interactive shell. With any other, Lightning would
		// assume a Slurm job that it must requeue. SLURM_JOB_ID and SLURM_JOBID are not set, since
		// no Slurm job exists.
		"SLURM_JOB_NAME": "bash",
	}
	if devices > 0 {
		env["SLURM_GPUS_ON_NODE"] = procs
	}
	if s.Network != "" { // otherwise gloo resolves the host's name, and other machines may not reach that address
		env["GLOO_SOCKET_IFNAME"] = s.Network
	}
	return env
}

// devices returns the number of accelerators that the program sees: the machine's, or those that
// the environment makes visible.
func (s Environment) devices() int {
	list, set := s.Task.Env[visible]
	if p := s.Task.Part; p != nil && !set {
		return len(p.Devices)
	}
	if !set {
		list, set = valueOf(s.Base, visible)
	}
	switch {
	case !set:
		return s.Accelerators
	case list == "" || strings.HasPrefix(list, "-"): // none
		return 0
	}
	return min(s.Accelerators, strings.Count(list, ",")+1)
}

// visible is the variable that limits the accelerators of CUDA programs.
const visible = "CUDA_VISIBLE_DEVICES"

// valueOf returns the first value of a variable.
func valueOf(env []string, name string) (value string, set bool) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// Visible returns the indices of the accelerators that a machine's environment grants, as Slurm does on a shared node;
// nil if it does not limit them, or not by index.
func Visible(base []string) (list []int) {
	text, _ := valueOf(base, visible)
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 0 {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// Package reason explains the fields of other systems that scrimp does not have.
package reason

// Reasons holds the reason why scrimp has no equivalent of a field, by the field's name.
type Reasons map[string]string

// Of returns the reason for a field, also for one without an entry.
func (r Reasons) Of(field string) string {
	if why := r[field]; why != "" {
		return why
	}
	return "scrimp has nothing like it"
}

// SkyPilot explains the fields of a SkyPilot task that scrimp does not have.
var SkyPilot = Reasons{
	"service":    "scrimp runs jobs to their end, not services",
	"pool":       "scrimp rents a machine for each attempt",
	"config":     "it configures SkyPilot itself",
	"volumes":    "volumes are not mounted; copy the work folder, or read from a URL",
	"event_hook": "see notify, a webhook or e-mail addresses",
}

// SkyPilotResources explains the fields of its resources.
var SkyPilotResources = Reasons{
	"instance_type":    "the catalogue does not know it: give cpus, memory and accelerator",
	"image_id":         "machines boot their engine's own system; only a container image is named, docker:IMAGE",
	"ports":            "no port is opened: scrimp forward JOB PORT reaches one through the server",
	"autostop":         "machines are always given back; see idle",
	"disk_tier":        "disks are not chosen by speed",
	"network_tier":     "networks are not chosen",
	"accelerator_args": "it is for TPUs, whose software is what the image has",
	"local_disk":       "disks are not chosen by kind",
}

// Dstack explains the fields of a dstack task that scrimp does not have.
var Dstack = Reasons{
	"python":              "Python is not installed: put what the program needs into setup",
	"nvcc":                "CUDA is not installed: put what the program needs into setup",
	"docker":              "there is no Docker on the machine",
	"privileged":          "programs run without privileges",
	"registry_auth":       "a job file holds no login of a registry",
	"entrypoint":          "the program is what the command says, whatever the entrypoint of an image",
	"user":                "the program runs as the agent's user",
	"ports":               "no port is opened: scrimp forward JOB PORT reaches one through the server",
	"files":               "only the work folder is copied: put the files into it",
	"repos":               "a repository is not cloned: clone it, and name the folder",
	"volumes":             "volumes are not mounted; checkpoints and outputs are kept without one",
	"backends":            "offers are chosen by price and zone, whatever the cloud",
	"fleets":              "scrimp rents a machine for each attempt",
	"reservation":         "reservations are not named in a job file",
	"creation_policy":     "scrimp rents a machine for each attempt",
	"idle_duration":       "machines are given back when the job is over",
	"startup_order":       "all machines of a job start together",
	"stop_criteria":       "the job ends when its program has ended on each machine",
	"schedule":            "when a job runs is no field of its file: scrimp pipeline schedule runs it by the clock",
	"single_branch":       "a repository is not cloned",
	"inactivity_duration": "it is for development environments",
}

// DstackResources explains the fields of its resources.
var DstackResources = Reasons{
	"shm_size": "shared memory is what the machine has",
}

// Slurm explains the options of sbatch that scrimp does not have, by long name.
var Slurm = Reasons{
	"qos":       "see priority",
	"priority":  "see priority: critical, normal or low",
	"nice":      "see priority: critical, normal or low",
	"output":    "the output of all attempts is kept as one: scrimp logs",
	"error":     "the output of all attempts is kept as one: scrimp logs",
	"open-mode": "the output of all attempts is kept as one: scrimp logs",
	"mail-type": "see notify.on: done, failed, late or over_budget",
	"mail-user": "see notify.email",
	"begin": "a job begins once it is submitted and an offer suits it; window holds it to hours of the day, such as " +
		"window: 22:00-06:00",
	"deadline":            "it has no time zone: give deadline, such as in 24h",
	"time-min":            "the budget of time is one number",
	"nodelist":            "machines are rented, not named",
	"exclude":             "machines are rented, not named",
	"exclusive":           "a rented machine is the job's own",
	"oversubscribe":       "a rented machine is the job's own",
	"reservation":         "reservations are not named in a job file",
	"licenses":            "licences are not counted",
	"container":           "the program runs on the machine as it is, in no container",
	"ntasks-per-gpu":      "the script itself starts its tasks",
	"gpu-bind":            "the program sees all accelerators",
	"cpu-freq":            "machines are not tuned",
	"distribution":        "the script itself starts its tasks",
	"hint":                "machines are not tuned",
	"no-requeue":          "a job always goes on after an interruption",
	"export-file":         "name the variables under env",
	"gres-flags":          "machines are chosen by what they have",
	"switches":            "networks are not chosen",
	"comment":             "see tags",
	"kill-on-invalid-dep": "a job that waits for another (scrimp run --after) does not run if that one fails",
}

// Disk explains why the size of a disk is lost.
const Disk = "disks are not rented by size: a machine has the disk that its engine gives it"

// Nodes explains why the number of machines is lost for a script that runs on the first one.
const Nodes = "scrimp runs the command on each machine and has no srun: write nodes where it may run on each, as " +
	"torchrun does"

package agent

import "scrimp/internal/agent/place"

// Values of SCRIMP_TASK_USER: which user runs the processes of a task.
const (
	UserAuto = place.UserAuto
	UserSame = place.UserSame
)

// Apart reports whether an agent of this process' user with this machine folder can run programs as
// separate users, and why not.
func Apart(machineDir string) (ok bool, why string) { return place.Separate(UserAuto, machineDir) }

// separate reports whether programs run as separate users, and why not.
func (c *Config) separate() (ok bool, why string) { return place.Separate(c.TaskUser, c.MachineDir) }

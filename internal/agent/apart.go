package agent

import "scrimp/internal/agent/place"

// Whose the processes of a task are (SCRIMP_TASK_USER).
const (
	UserAuto = place.UserAuto
	UserSame = place.UserSame
)

// Apart reports whether an agent of this process' user, with its machine's folder there,
// can run programs as users of their own; why says why not.
func Apart(machineDir string) (ok bool, why string) { return place.Separate(UserAuto, machineDir) }

// separate reports whether programs run as users of their own; why says why not.
func (c *Config) separate() (ok bool, why string) { return place.Separate(c.TaskUser, c.MachineDir) }

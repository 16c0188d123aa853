package plan

import (
	"fmt"

	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Excess says what a machine of the offer has more of than the job's own resources allow, and how to allow it. It
// returns "" if the machine has no more.
func (n *Requirements) Excess(o *market.Offer) string {
	switch {
	case n.MaxMemory > 0 && int64(o.Memory) > n.MaxMemory:
		least, most := size.Bytes(n.Memory), size.Bytes(n.MaxMemory)
		return excess("memory", o.Memory.String(), least.String(), most.String())
	case n.MaxCPUs > 0 && o.CPUs > n.MaxCPUs:
		return excess("cpus", fmt.Sprint(o.CPUs), fmt.Sprint(n.CPUs), fmt.Sprint(n.MaxCPUs))
	case n.MaxAccelerators > 0 && o.Accelerators > n.MaxAccelerators:
		kind := n.Accelerator + ":"
		return excess("accelerator", kind+fmt.Sprint(o.Accelerators), kind+fmt.Sprint(max(1, n.Accelerators)),
			kind+fmt.Sprint(n.MaxAccelerators))
	}
	return ""
}

// excess formats a value beyond the limit of a field, and the fix.
func excess(field, has, least, most string) string {
	asked := "exactly " + least
	if least != most {
		asked = "at most " + most
	}
	return fmt.Sprintf("%s, and the job asks for %s: write %s: %s+ for machines with more", has, asked, field, least)
}

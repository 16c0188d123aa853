package show_test

import (
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
)

func TestMachines_MatchGolden(t *testing.T) {
	at := func(m int) time.Time { return now.Add(time.Duration(m) * time.Minute) }
	idle := amount("0.0125")
	list := []api.Machine{
		{Instance: "i-489931-4", Engine: "aws", Offer: "aws/us-east-1a/p3.2xlarge/spot", State: api.MachineRunning, Job: "train-lm",
			Attempt: "train-lm.2", Team: "vision", User: "ann", Served: 3, Since: at(-90), Rate: 0.918e12, Cost: amount("1.377"), Currency: money.USD},
		{Instance: "i-489931-7", Engine: "aws", Offer: "aws/us-east-1b/g5.xlarge/on-demand", State: api.MachineIdle, Team: "vision",
			User: "bob", Served: 1, Since: at(-30), Rate: 1.006e12, Cost: amount("0.503"), Currency: money.USD,
			IdleSince: at(-1), IdleUntil: at(4), IdleCost: &idle},
		{Instance: "i-stray", Engine: "gcp", Offer: "gcp/europe-west4-a/a2-highgpu-1g/spot", State: api.MachineReleasing, Since: at(-1800),
			Rate: 1.2e12, Cost: amount("36"), Currency: money.USD},
	}
	for name, text := range map[string]string{
		"machines.120": show.Machines(list, show.Place{Width: 120, Now: now}), "machines.80": show.Machines(list, show.Place{Width: 80, Now: now}),
		"machines.piped": show.Machines(list, show.Place{}), "machines-none.80": show.Machines(nil, show.Place{Width: 80, Now: now}),
	} {
		golden.Check(t, name+".txt", text)
	}
}

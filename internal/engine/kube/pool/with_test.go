//go:build !local

package pool

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/engine"
	"scrimp/internal/test/must"
)

// Wrong settings are refused with the field and the fix.
func TestRead_RefusesWrongSettings(t *testing.T) {
	const head = "{image: a:1, agent_image: b:1, "
	for text, want := range map[string]string{
		head + "pools: [{name: p, cpus: 1, memory: 1GiB}]}": "",
		head + "pools: []}": "no pool: write pools",
		"{agent_image: b:1, pools: [{name: p, cpus: 1, memory: 1GiB}]}":                               "no image: write image",
		"{image: a:1, pools: [{name: p, cpus: 1, memory: 1GiB}]}":                                     "no agent_image: write agent_image",
		head + "user: -1, pools: [{name: p, cpus: 1, memory: 1GiB}]}":                                 "user is -1",
		head + "ca: /no/such.pem, pools: [{name: p, cpus: 1, memory: 1GiB}]}":                         "the file /no/such.pem does not exist",
		head + "namespace: Team_A, pools: [{name: p, cpus: 1, memory: 1GiB}]}":                        `namespace is "Team_A"`,
		head + "volumes: [{claim: c, path: data}], pools: [{name: p, cpus: 1, memory: 1GiB}]}":        "path, where it is mounted",
		head + "volumes: [{claim: c, path: /run/scrimp}], pools: [{name: p, cpus: 1, memory: 1GiB}]}": "is scrimp's own",
		head + "pools: [{name: p}]}":                                                                           "write what a machine has",
		head + "pools: [{name: p, instance: no.such}]}":                                                        "no.such is not in the catalogue",
		head + "pools: [{name: p, cpus: 1}]}":                                                                  "add memory: 16GiB",
		head + "pools: [{name: p, cpus: 1, memory: 8MiB}]}":                                                    "memory is 8MiB: a machine needs",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, shm: 4GiB}]}":                                         "shm is 4GiB, and memory 1GiB",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, grace: 20}]}":                                         `"20" is not a duration`,
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, time: 5s}]}":                                          "time is a span of a minute",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, cloud: aws}]}":                                        "write eks, gke, aks or karpenter",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, capacity: cheap}]}":                                   "write spot",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, tolerations: ['a=b=c:Never']}]}":                      "toleration",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, accelerators: 4}]}":                                   "without their kind",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, accelerator: A100, accelerators: 4, split: [1, 3]}]}": "split is [1 3]",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, rate: cheap}]}":                                       `rate is "cheap"`,
		head + "pools: [{name: p, cpus: 1, memory: 1GiB}, {name: p, cpus: 2, memory: 1GiB}]}":                  "listed twice",
		head + "pools: [{name: p, cpus: 9223372036854775807, memory: 1GiB}]}":                                  "is out of bounds",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, machines: 288230376151711744, split: [1, 64]}]}":      "is out of bounds",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, disk: 1B}]}":                                          "disk is 1B: a machine needs 1MiB",
		head + "pools: [{name: p, cpus: 8, memory: 8GiB, disk: 4MiB, split: [1, 8]}]}":                         "disk is 4MiB in 8 parts: a machine needs 1MiB",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, disk: 1000000000000000B}]}":                           "",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, disk: 4000000000000000000B}]}":                        "up to 8 PiB",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, disk: 1e30B}]}":                                       `disk is "1e30B"`,
		head + "pools: [{name: p, cpus: 8, memory: 256MiB, split: [1, 8]}]}":                                   "memory is 256MiB in 8 parts: a machine needs 64MiB",
		head + "pools: [{name: p, cpus: 8, memory: 8GiB, shm: 2GiB, split: [1, 8]}]}":                          "shm is 2GiB, and memory 8GiB in 8 parts",
		head + "pools: [{name: p, cpus: 1, memory: 8GiB, split: [1, 64]}]}":                                    "cpus is 1 in 64 parts",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, time: 2000000h}]}":                                    "to 87600h",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, instance: \"a b\\nc\"}]}":                             `instance is "a b\nc"`,
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, accelerator: a/b, accelerators: 1}]}":                 `accelerator is "a/b"`,
		head + "user: 3000000000, pools: [{name: p, cpus: 1, memory: 1GiB}]}":                                  "user is 3000000000",
		head + "pools: [{name: p, cpus: 1, memory: 1GiB, cpu: 2}]}":                                            "cpu is not known",
	} {
		s := engine.Setting{Name: "k8s", Kind: Kind}
		must.Do(t, yaml.Unmarshal([]byte(text), &s.With))
		if _, err := Read(&s); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A node of a known type is sold in parts that together request no more than it has, and never cost less.
func TestParts_NeverExceedTheNodeOrCostLess(t *testing.T) {
	s := engine.Setting{Name: "k8s", Kind: Kind, With: engine.WithOf(With{Image: "a:1", AgentImage: "b:1", Pools: []Pool{
		{Name: "gpu", Cloud: "eks", Instance: "g5.12xlarge", Region: "us-east-1", Split: []int{1, 2, 4}},
		{Name: "odd", CPUs: 8, Memory: "32GiB", Rate: "0.000000001", Split: []int{1, 3}}}})}
	w, err := Read(&s)
	must.Do(t, err)
	whole := map[string]*Sale{}
	for _, x := range w.Sales("k8s", w.Pools[0].at) {
		if x.Part == 1 {
			whole[x.Of.Name] = &x
			continue
		}
		all := whole[x.Of.Name]
		n := int64(x.Part)
		if x.Milli*n > all.Milli || int64(x.Memory)*n > int64(all.Memory) || x.Offer.Accelerators*x.Part != all.Offer.Accelerators ||
			int64(x.Quote.Rate)*n < int64(all.Quote.Rate) || int64(x.Quote.Rate-1)*n >= int64(all.Quote.Rate) {
			t.Errorf("%s of %s: %+v, %+v", x.Offer.ID, all.Offer.ID, x, all.Quote)
		}
	}
	gpu := whole["gpu"]
	if gpu.Offer.Accelerators != 4 || gpu.Milli >= 48000 || gpu.Milli < 40000 || !gpu.Quote.Priced || gpu.Quote.Rate.Float() < 5 ||
		w.Pools[0].Selectors()["eks.amazonaws.com/capacityType"] != "ON_DEMAND" || gpu.Quote.Source != "catalogue" {
		t.Errorf("a whole node is %+v at %+v, with labels %v", gpu.Offer, gpu.Quote, w.Pools[0].Selectors())
	}
}

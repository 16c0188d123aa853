package feed

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/intake"
)

// A cluster sells nothing: its machines have no price until the user's own prices give them one. Equal nodes become one
// listing.

// Labels that describe nodes, in order of precedence.
var (
	gpuResources = []string{"nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "aws.amazon.com/neuron", "habana.ai/gaudi"}
	gpuLabels    = []string{"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator",
		"k8s.amazonaws.com/accelerator", "amd.com/gpu.product-name", "cloud.google.com/gke-tpu-accelerator"}
	spotLabels = map[string]string{
		"karpenter.sh/capacity-type": "spot", "eks.amazonaws.com/capacityType": "spot",
		"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-preemptible": "true",
		"kubernetes.azure.com/scalesetpriority": "spot",
	}
	onDemandLabels = map[string]string{"karpenter.sh/capacity-type": "on-demand",
		"eks.amazonaws.com/capacityType": "on_demand"}
)

// readNodes reads the output of kubectl get nodes -o json.
func readNodes(p intake.Page, page []byte) (catalog.Catalog, error) {
	var list struct {
		Kind  string `json:"kind"`
		Items *[]struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Unschedulable bool `json:"unschedulable"`
			} `json:"spec"`
			Status struct {
				Allocatable map[string]string `json:"allocatable"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := intake.Decode(page, &list); err != nil {
		return catalog.Catalog{}, fmt.Errorf("read nodes of %s: %w", p.Source, err)
	}
	if list.Items == nil {
		return catalog.Catalog{}, fmt.Errorf("read nodes of %s: %w: no items", p.Source, intake.ErrForm)
	}
	t := intake.Tally{Source: p.Source}
	all := map[market.OfferID]catalog.Listing{}
	for _, n := range *list.Items {
		labels, has := n.Metadata.Labels, n.Status.Allocatable
		if n.Spec.Unschedulable {
			t.Skip(catalog.OtherUse, n.Metadata.Name, "cordoned")
			continue
		}
		cpus, ok := cores(has["cpu"])
		memory, ok2 := quantity(has["memory"])
		if !ok || !ok2 || cpus == 0 || memory == 0 {
			t.Skip(catalog.BadRow, n.Metadata.Name, "allocatable processors or memory are missing")
			continue
		}
		shape := nodeShape(labels, has, cpus, memory)
		region := cmp.Or(labels["topology.kubernetes.io/region"], p.Provider, "cluster")
		keep(all, catalog.Sell(shape, region, labels["topology.kubernetes.io/zone"], NodeCapacity(labels),
			market.Quote{Source: p.Source}, money.USD))
	}
	return gathered(p, all, t), nil
}

// nodeShape returns a node's machine type from its labels and its allocatable resources.
func nodeShape(labels, has map[string]string, cpus int, memory size.Bytes) catalog.Listing {
	shape := catalog.Listing{Offer: market.Offer{Provider: "kubernetes", CPUs: cpus, Memory: memory}}
	kind := first(labels, gpuLabels)
	for _, r := range gpuResources {
		if count, err := strconv.Atoi(has[r]); err == nil && count > 0 && count < 1e5 {
			shape.Offer.Accelerators = count
			vendor, _, _ := strings.Cut(r, ".")
			kind = cmp.Or(kind, vendor+"-unknown")
		}
	}
	named := labels["node.kubernetes.io/instance-type"]
	if shape.Offer.Accelerators > 0 {
		if mib, err := strconv.ParseInt(labels["nvidia.com/gpu.memory"], 10, 32); err == nil && mib > 0 {
			shape.AcceleratorMemory = size.Bytes(mib) * size.MiB
		}
		shape.Offer.Accelerator = accelerator.Resolve(kind, named, shape.AcceleratorMemory)
	}
	shape.Offer.Machine = cmp.Or(named, made(shape.Offer))
	return shape
}

// NodeCapacity returns the capacity in the labels of a Kubernetes node, or reserved if they have none.
func NodeCapacity(labels map[string]string) market.Capacity {
	says := func(words map[string]string) bool {
		for name, value := range words {
			if strings.EqualFold(labels[name], value) {
				return true
			}
		}
		return false
	}
	switch {
	case says(spotLabels):
		return market.Spot
	case says(onDemandLabels):
		return market.OnDemand
	}
	return market.Reserved
}

// first returns the value of the first label that exists.
func first(labels map[string]string, names []string) string {
	for _, n := range names {
		if v := labels[n]; v != "" {
			return v
		}
	}
	return ""
}

// cores parses 32 or 31850m, rounded down to whole cores.
func cores(s string) (int, bool) {
	milli, isMilli := strings.CutSuffix(s, "m")
	n, err := strconv.Atoi(milli)
	if isMilli {
		n /= 1000
	}
	return n, err == nil && n >= 0 && n < 1e6
}

var quantityForm = regexp.MustCompile(`^(\d{1,15})(Ki|Mi|Gi|Ti|k|M|G|T)?$`)

// quantity parses a Kubernetes quantity of bytes: 263856740Ki.
func quantity(s string) (size.Bytes, bool) {
	m := quantityForm.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := map[string]size.Bytes{"": 1, "Ki": size.KiB, "Mi": size.MiB, "Gi": size.GiB, "Ti": size.TiB, "k": size.KB,
		"M": size.MB, "G": size.GB, "T": size.TB}[m[2]]
	const most = int64(1) << 50
	if err != nil || n > most/int64(unit) {
		return 0, false
	}
	return size.Bytes(n) * unit, true
}

// made names a machine type without a name after its resources.
func made(o market.Offer) string {
	if o.Accelerators > 0 {
		return fmt.Sprintf("%dx-%s", o.Accelerators, strings.ToLower(o.Accelerator))
	}
	return fmt.Sprintf("cpu%d-%dgib", o.CPUs, o.Memory/size.GiB)
}

// keep merges equal nodes into one listing with the resources that each of them has.
func keep(all map[market.OfferID]catalog.Listing, l catalog.Listing) {
	old, ok := all[l.Offer.ID]
	if ok {
		l.Offer.CPUs, l.Offer.Memory = min(l.Offer.CPUs, old.Offer.CPUs), min(l.Offer.Memory, old.Offer.Memory)
		l.Offer.Accelerators = min(l.Offer.Accelerators, old.Offer.Accelerators)
	}
	all[l.Offer.ID] = l
}

func gathered(p intake.Page, all map[market.OfferID]catalog.Listing, t intake.Tally) catalog.Catalog {
	var rows []catalog.Listing
	for _, id := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, all[id])
	}
	return catalog.New(p.Source, rows, t.Skips)
}

var (
	slurmField = regexp.MustCompile(`(?:^|\s)(NodeName|CPUTot|CPUEfctv|RealMemory|Gres|State|Partitions)=(\S*)`)
	slurmGPU   = regexp.MustCompile(`(?:^|,)gpu(?::([A-Za-z0-9_.-]+))?:(\d{1,4})(?:\(|,|$)`)
	slurmAway  = regexp.MustCompile(`DOWN|DRAIN|FAIL|FUTURE|NOT_RESPONDING|POWERED_DOWN|UNKNOWN`)
)

// readScontrol reads the output of scontrol show node. A node becomes a listing in each of its partitions.
func readScontrol(p intake.Page, text string) (catalog.Catalog, error) {
	t := intake.Tally{Source: p.Source}
	all := map[market.OfferID]catalog.Listing{}
	nodes := 0
	text = "\n" + strings.ReplaceAll(text, "\r\n", "\n")
	for _, block := range strings.Split(text, "\nNodeName=")[1:] {
		nodes++
		has := map[string]string{}
		for _, m := range slurmField.FindAllStringSubmatch("NodeName="+block, -1) {
			has[m[1]] = m[2]
		}
		name := has["NodeName"]
		if slurmAway.MatchString(has["State"]) {
			t.Skip(catalog.OtherUse, name, has["State"])
			continue
		}
		cpus, ok := cores(cmp.Or(has["CPUEfctv"], has["CPUTot"]))
		memory, ok2 := quantity(has["RealMemory"] + "Mi")
		if !ok || !ok2 || cpus == 0 || memory == 0 {
			t.Skip(catalog.BadRow, name, "processors or memory are missing")
			continue
		}
		shape := catalog.Listing{Offer: market.Offer{Provider: "slurm", CPUs: cpus, Memory: memory}}
		if m := slurmGPU.FindStringSubmatch(has["Gres"]); m != nil {
			if shape.Offer.Accelerators, _ = strconv.Atoi(m[2]); shape.Offer.Accelerators > 0 {
				shape.Offer.Accelerator = accelerator.Resolve(strings.ReplaceAll(cmp.Or(m[1], "unknown"), "_", "-"), name, 0)
			}
		}
		shape.Offer.Machine = made(shape.Offer)
		region := cmp.Or(p.Provider, "cluster")
		for _, partition := range strings.Split(cmp.Or(has["Partitions"], region), ",") {
			keep(all, catalog.Sell(shape, region, partition, market.Reserved, market.Quote{Source: p.Source}, money.USD))
		}
	}
	if nodes == 0 {
		return catalog.Catalog{}, fmt.Errorf("read nodes of %s: %w: no NodeName", p.Source, intake.ErrForm)
	}
	return gathered(p, all, t), nil
}

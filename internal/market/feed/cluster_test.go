package feed

import (
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/intake"
	"scrimp/internal/test/must"
)

// nodes follows the format of kubectl get nodes -o json, from the reference of the Node API and the labels of GPU
// feature discovery, GKE, EKS, AKS and Karpenter.
const nodes = `{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"Node","metadata":{"name":"a1","labels":{"node.kubernetes.io/instance-type":"p4de.24xlarge","topology.kubernetes.io/region":"us-east-1","topology.kubernetes.io/zone":"us-east-1a","karpenter.sh/capacity-type":"spot","nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB","nvidia.com/gpu.memory":"81920"}},"spec":{},"status":{"allocatable":{"cpu":"95690m","memory":"1160340Mi","nvidia.com/gpu":"8"}}},
{"kind":"Node","metadata":{"name":"a2","labels":{"node.kubernetes.io/instance-type":"p4de.24xlarge","topology.kubernetes.io/region":"us-east-1","topology.kubernetes.io/zone":"us-east-1a","karpenter.sh/capacity-type":"spot","nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB"}},"spec":{},"status":{"allocatable":{"cpu":"95","memory":"1160000Mi","nvidia.com/gpu":"8"}}},
{"kind":"Node","metadata":{"name":"own1","labels":{"nvidia.com/gpu.product":"NVIDIA-L4"}},"spec":{},"status":{"allocatable":{"cpu":"32","memory":"131072000Ki","nvidia.com/gpu":"2"}}},
{"kind":"Node","metadata":{"name":"own2","labels":{}},"spec":{},"status":{"allocatable":{"cpu":"16","memory":"67108864Ki","nvidia.com/gpu":"0"}}},
{"kind":"Node","metadata":{"name":"gke","labels":{"node.kubernetes.io/instance-type":"n1-standard-4","topology.kubernetes.io/region":"us-central1","topology.kubernetes.io/zone":"us-central1-b","cloud.google.com/gke-accelerator":"nvidia-tesla-t4"}},"spec":{},"status":{"allocatable":{"cpu":"3920m","memory":"12698044Ki","nvidia.com/gpu":"1"}}},
{"kind":"Node","metadata":{"name":"eks","labels":{"node.kubernetes.io/instance-type":"c6a.2xlarge","topology.kubernetes.io/region":"us-east-1","eks.amazonaws.com/capacityType":"ON_DEMAND"}},"spec":{},"status":{"allocatable":{"cpu":"7910m","memory":"15Gi"}}},
{"kind":"Node","metadata":{"name":"mi","labels":{}},"spec":{},"status":{"allocatable":{"cpu":"64","memory":"500Gi","amd.com/gpu":"8"}}},
{"kind":"Node","metadata":{"name":"closed","labels":{}},"spec":{"unschedulable":true},"status":{"allocatable":{"cpu":"64","memory":"500Gi"}}},
{"kind":"Node","metadata":{"name":"odd","labels":{}},"spec":{},"status":{"allocatable":{"cpu":"many","memory":"500Gi"}}}
]}`

// scontrol follows the format of scontrol show node, from Slurm's manual page.
const scontrol = `NodeName=gpu01 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=0 CPUEfctv=126 CPUTot=128 CPULoad=0.10
   AvailableFeatures=a100,nvlink
   Gres=gpu:a100:8(S:0-1)
   NodeAddr=gpu01 NodeHostName=gpu01 Version=23.11.4
   RealMemory=1031000 AllocMem=0 FreeMem=1015210 Sockets=2 Boards=1
   State=IDLE ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=gpu,all

NodeName=gpu02 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=64 CPUTot=128 CPULoad=61.10
   Gres=gpu:a100:8(S:0-1)
   RealMemory=1031000 AllocMem=0
   State=MIXED ThreadsPerCore=2
   Partitions=gpu,all

NodeName=old Arch=x86_64
   CPUTot=32 Gres=gpu:2,mps:200
   RealMemory=128000 State=IDLE+PLANNED
   Partitions=all

NodeName=down CPUTot=32 Gres=(null) RealMemory=128000 State=DOWN*+DRAIN Partitions=all

NodeName=cpu01 CPUTot=64 Gres=(null) RealMemory=256000 State=ALLOCATED Partitions=cpu
`

func told(c catalog.Catalog) string {
	var b strings.Builder
	for _, l := range c.Listings {
		fmt.Fprintf(&b, "%s %d %.0f %d %s priced=%v\n", l.Offer.ID, l.Offer.CPUs, float64(l.Offer.Memory)/(1<<30),
			l.Offer.Accelerators, l.Offer.Accelerator, l.Quote.Priced)
	}
	return b.String()
}

func TestImport_ClusterNodesHaveNoPrice(t *testing.T) {
	for _, x := range []struct {
		form       Form
		text, want string
		skipped    string
	}{
		{Kubernetes, nodes, `kubernetes/lab/2x-l4/reserved 32 125 2 L4 priced=false
kubernetes/lab/8x-amd-unknown/reserved 64 500 8 amd-unknown priced=false
kubernetes/lab/cpu16-64gib/reserved 16 64 0  priced=false
kubernetes/us-central1-b/n1-standard-4/reserved 3 12 1 T4 priced=false
kubernetes/us-east-1/c6a.2xlarge/on-demand 7 15 0  priced=false
kubernetes/us-east-1a/p4de.24xlarge/spot 95 1133 8 A100-SXM-80GB priced=false
`, "1 bad_row, 1 other_use"},
		{Slurm, scontrol, `slurm/all/2x-unknown/reserved 32 125 2 unknown priced=false
slurm/all/8x-a100/reserved 126 1007 8 a100 priced=false
slurm/cpu/cpu64-250gib/reserved 64 250 0  priced=false
slurm/gpu/8x-a100/reserved 126 1007 8 a100 priced=false
`, "1 other_use"},
	} {
		if form, err := Sniff([]byte(x.text)); err != nil || form != x.form {
			t.Errorf("%s is taken for %s: %v", x.form, form, err)
		}
		c, err := Import(x.form, intake.Page{Source: "test", Provider: "lab", Shapes: catalog.Builtin(), At: now}, []byte(x.text))
		must.Do(t, err)
		if got := told(c); got != x.want {
			t.Errorf("%s:\n%swant\n%s", x.form, got, x.want)
		}
		if got := intake.Summary(c.Skipped); got != x.skipped {
			t.Errorf("%s: skipped %s", x.form, got)
		}
		again, err := catalog.Read("kept", catalog.Write(c.Listings))
		if err != nil || told(again) != x.want {
			t.Errorf("%s: kept as\n%s %v", x.form, told(again), err)
		}
		priced, err := again.Overlay("prices.csv", "provider,region,machine,capacity,price,currency,discount\n"+
			string(x.form)+",*,*,*,3.20,USD,\n", now)
		if err != nil || strings.Contains(told(priced), "priced=false") {
			t.Errorf("%s with the user's price:\n%s %v", x.form, told(priced), err)
		}
	}
	for form, bad := range map[Form]string{Kubernetes: `{"kind":"Status","message":"Unauthorized"}`,
		Slurm: "slurm_load_node error: Unable to contact slurm controller"} {
		if _, err := Import(form, intake.Page{Source: "test"}, []byte(bad)); err == nil ||
			!strings.Contains(err.Error(), intake.ErrForm.Error()) {
			t.Errorf("%s: %v", form, err)
		}
	}
}

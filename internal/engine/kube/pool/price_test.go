//go:build !local

package pool

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scrimp/internal/engine"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// aNode returns a node with a cloud's labels, eight processors, 32 GiB and the given number of accelerators.
func aNode(gpus int, labels string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("32Gi")}
	if gpus > 0 {
		n.Status.Allocatable["nvidia.com/gpu"] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	short := map[string]string{"type": LabelType, "region": LabelRegion, "zone": labelZone}
	for _, l := range strings.Fields(labels) {
		key, value, _ := strings.Cut(l, "=")
		n.Labels[cmp.Or(short[key], key)] = value
	}
	return n
}

const (
	g5   = "type=g5.xlarge region=us-east-1 zone=us-east-1a karpenter.sh/capacity-type=on-demand"
	g512 = "type=g5.12xlarge region=us-east-1 eks.amazonaws.com/capacityType=ON_DEMAND"
	a2   = "type=a2-highgpu-1g region=us-central1 zone=us-central1-b cloud.google.com/gke-spot=true"
	nc4  = "type=Standard_NC4as_T4_v3 region=eastus"
	fee  = "example.org/hourly-rate="
)

// A pool without a rate is priced by the labels of its nodes, through the catalogue or the user's own label. If one
// label is missing, the price is unknown with the fix, and never zero.
func TestByNodes_UsesTheLabelsOfNodes(t *testing.T) {
	const small = "{name: p, cpus: 2, memory: 4GiB}"
	const gpu = "{name: p, cpus: 4, memory: 8GiB, accelerator: A10G, accelerators: 1}"
	for _, c := range []struct {
		name, pool string
		nodes      []corev1.Node
		rate, says string
	}{
		{"four fit, and each costs a quarter", small, []corev1.Node{aNode(1, g5)}, "0.2515",
			"catalogue of 2026-07-20: g5.xlarge on-demand in us-east-1 by labels of nodes"},
		{"its one accelerator is the whole", gpu, []corev1.Node{aNode(1, g5)}, "1.006", "g5.xlarge on-demand"},
		{"of different nodes the dearest", gpu, []corev1.Node{aNode(1, g5), aNode(1, g512), aNode(1, g5)}, "5.672",
			"g5.12xlarge on-demand in us-east-1 by labels of nodes, the most expensive of 3 nodes"},
		{"spot of Google, by its zone's region", gpu, []corev1.Node{aNode(1, a2)}, "1.92802",
			"a2-highgpu-1g spot in us-central1"},
		{"Azure labels spot alone", gpu, []corev1.Node{aNode(1, nc4)}, "0.526", "Standard_NC4as_T4_v3 on-demand in eastus"},
		{"the user's label comes first", gpu, []corev1.Node{aNode(1, g5+" "+fee+"0.80")}, "0.8",
			"label example.org/hourly-rate of nodes"},
		{"and may stand on some nodes", gpu, []corev1.Node{aNode(1, g5), aNode(1, fee+"0.80")}, "1.006", "the most expensive of 2"},
		{"paid already", gpu, []corev1.Node{aNode(1, fee+"0")}, "0", "label"},
		{"a label that is no price", gpu, []corev1.Node{aNode(1, fee+"cheap")}, "",
			`of node node is "cheap": write USD an hour`},
		{"a type nobody knows beside one that is", gpu,
			[]corev1.Node{aNode(1, g5), aNode(1, "type=own.large region=us-east-1")}, "",
			"the catalogue has no on-demand price of own.large in us-east-1: set rate"},
		{"spot that was not fetched", gpu, []corev1.Node{aNode(1, strings.ReplaceAll(g5, "on-demand", "spot"))}, "",
			"no spot price of g5.xlarge in us-east-1: set rate, or fetch prices (scrimp catalog update, import)"},
		{"no region", gpu, []corev1.Node{aNode(1, "type=g5.xlarge")}, "", "in a region that nodes do not name"},
		{"no type", gpu, []corev1.Node{aNode(1, "")}, "", "has no label node.kubernetes.io/instance-type: set rate"},
		{"accelerators that are sold apart", gpu, []corev1.Node{aNode(1, "type=n1-standard-4 region=us-central1")}, "",
			"accelerators that the catalogue's price of n1-standard-4 does not count"},
		{"none holds it", gpu, []corev1.Node{aNode(0, g5)}, "", "none of the pool's 1 nodes can hold one"},
		{"none is there", gpu, nil, "", "no node now whose labels say it: set rate, or instance and region"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := engine.Setting{Name: "k8s", Kind: Kind}
			must.Do(t, yaml.Unmarshal([]byte("{image: a:1, agent_image: b:1, price_label: example.org/hourly-rate, pools: ["+
				c.pool+"]}"), &set.With))
			w, err := Read(&set)
			must.Do(t, err)
			l, err := ListOf("", "k8s")
			must.Do(t, err)
			s := w.Sales("k8s", time.Now())[0]
			p := w.ByNodes(&s, c.nodes, l)
			rate := ""
			if p.Known {
				rate = p.Rate.String()
			}
			if said := p.Source + p.Why; rate != c.rate || !strings.Contains(said, c.says) {
				t.Errorf("it costs %q, want %q; said is %q, want %q", rate, c.rate, said, c.says)
			}
		})
	}
}

// The user's own prices also apply to nodes: discounts on a cloud's prices, and the cost of own nodes.
func TestByNodes_UsesTheUsersPrices(t *testing.T) {
	dir := t.TempDir()
	const own = "provider,region,machine,capacity,price,discount,currency,cpus\n" +
		"aws,us-east-1,g5.xlarge,on-demand,,10%,,\nkubernetes,k8s,dgx,reserved,3,,USD,64\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "prices.csv"), []byte(own), 0o600))
	l, err := ListOf(dir, "k8s")
	must.Do(t, err)
	w := With{Currency: "USD"}
	p := &Pool{Capacity: market.OnDemand, Resource: "nvidia.com/gpu"}
	for labels, want := range map[string]string{g5: "0.9054", "type=dgx": "3"} {
		n := aNode(0, labels)
		if got := w.node(p, &n, l); !got.Known || got.Rate.String() != want {
			t.Errorf("%s costs %+v, want %s", labels, got, want)
		}
	}
	if l, err = ListOf(dir, "other"); err != nil {
		t.Fatal(err)
	}
	if n := aNode(0, "type=dgx"); w.node(p, &n, l).Known {
		t.Error("a price of one cluster is that of another")
	}
	w.Currency = "EUR"
	if n := aNode(0, g5); !strings.Contains(w.node(p, &n, l).Why, "is in USD: set rate in EUR") {
		t.Errorf("in another currency: %+v", w.node(p, &n, l))
	}
}

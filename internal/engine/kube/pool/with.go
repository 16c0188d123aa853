//go:build !local

package pool

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// RunFolder is the folder in a pod with the agent's program and the machine's folder.
const RunFolder = "/run/scrimp"

// Kind is the kind of Kubernetes engines, and the provider of prices for one cluster.
const Kind = "kubernetes"

// With is the section with of a Kubernetes engine.
type With struct {
	// Kubeconfig is a file; empty means KUBECONFIG, ~/.kube/config, or in a pod its service account.
	Kubeconfig string         `yaml:"kubeconfig,omitempty"`
	Context    string         `yaml:"context,omitempty"`   // of the kubeconfig; empty: its current one
	Namespace  string         `yaml:"namespace,omitempty"` // empty: the context's
	Currency   money.Currency `yaml:"currency,omitempty"`  // of the rates; empty: USD
	// Image is the image of jobs that name none.
	Image string `yaml:"image"`
	// AgentImage contains /usr/bin/scrimp, which is put beside the program.
	AgentImage  string   `yaml:"agent_image"`
	PullSecrets []string `yaml:"pull_secrets,omitempty"`
	CA          string   `yaml:"ca,omitempty"` // certificates that agents trust for the server; empty: their image's
	// PriceLabel is a node label with a whole node's hourly price; empty means that type, region and capacity
	// determine it.
	PriceLabel string `yaml:"price_label,omitempty"`
	// User is the number of the user that pods run as; 0 means 65532.
	User    int64    `yaml:"user,omitempty"`
	Volumes []Volume `yaml:"volumes,omitempty"`
	Pools   []Pool   `yaml:"pools"`
}

// Volume is a claim that each pod mounts.
type Volume struct {
	Claim    string `yaml:"claim"`
	Path     string `yaml:"path"`
	ReadOnly bool   `yaml:"read_only,omitempty"`
}

// Pool is a pool of nodes. A machine is a pod with these requests.
type Pool struct {
	Name     string          `yaml:"name"`
	Capacity market.Capacity `yaml:"capacity,omitempty"` // empty: on-demand
	Rate     string          `yaml:"rate,omitempty"`     // hourly, of a machine; empty: by its instance type, or unknown
	Machine  string          `yaml:"machine,omitempty"`  // its name; empty: derived from its size
	// Cloud names the cloud whose labels identify spot nodes: eks, gke, aks or karpenter; empty means that selector
	// does.
	Cloud string `yaml:"cloud,omitempty"`
	// Instance is the nodes' type at the provider, which supplies what is not set here; empty means that everything
	// is set here.
	Instance     string      `yaml:"instance,omitempty"`
	Region       string      `yaml:"region,omitempty"` // for the price of an instance; empty: unknown price
	CPUs         int         `yaml:"cpus,omitempty"`
	Memory       string      `yaml:"memory,omitempty"`
	Accelerator  string      `yaml:"accelerator,omitempty"`
	Accelerators int         `yaml:"accelerators,omitempty"`
	Resource     string      `yaml:"resource,omitempty"` // of accelerators; empty: nvidia.com/gpu
	Split        []int       `yaml:"split,omitempty"`    // machines as the whole node, a half …: [1, 2, 4]; none: [1]
	Machines     int         `yaml:"machines,omitempty"` // most at once; 0: unknown
	Disk         string      `yaml:"disk,omitempty"`     // requested ephemeral storage
	Shm          string      `yaml:"shm,omitempty"`      // size of /dev/shm; empty: half of the memory
	Grace        engine.Span `yaml:"grace,omitempty"`    // between SIGTERM and SIGKILL; 0: 30s
	Time         engine.Span `yaml:"time,omitempty"`     // longest lifetime of a machine; 0: no limit

	Selector      map[string]string `yaml:"selector,omitempty"`
	Tolerations   []string          `yaml:"tolerations,omitempty"` // KEY=VALUE:EFFECT, KEY:EFFECT or KEY
	Queue         string            `yaml:"queue,omitempty"`       // LocalQueue of Kueue
	PriorityClass string            `yaml:"priority_class,omitempty"`
	RuntimeClass  string            `yaml:"runtime_class,omitempty"`
	Spread        string            `yaml:"spread,omitempty"` // topology key over which a gang is spread; empty: nodes
	Image         string            `yaml:"image,omitempty"`  // empty: the engine's

	rate   money.Rate
	priced bool
	memory size.Bytes
	// ShmSize and DiskSize are parsed from the texts above; engines.yaml does not contain them.
	ShmSize  size.Bytes `yaml:"-"`
	DiskSize size.Bytes `yaml:"-"`
	milli    int64      // thousandths of a processor from its type; 0: CPUs applies
	source   string     // of the rate; empty: engines.yaml
	at       time.Time  // date of the rate
}

const withHas = "a Kubernetes engine has image, pools (each with name, capacity, rate, machine, cloud, " +
	"instance, region, " +
	"cpus, memory, accelerator, accelerators, resource, split, machines, disk, shm, grace, time, selector, " +
	"tolerations, queue, " +
	"priority_class, runtime_class, spread, image), kubeconfig, context, namespace, currency, agent_image, " +
	"pull_secrets, " +
	"ca, price_label, user and volumes"

var (
	labelName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	labelKey  = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	labelText = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$`)
	objName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	imageRef  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)
	// Tolerated matches a toleration of engines.yaml: key=value:effect, value and effect optional.
	Tolerated = regexp.MustCompile(`^([^=:]+)(?:=([^:]*))?(?::(NoSchedule|PreferNoSchedule|NoExecute))?$`)
)

// Read parses and validates the settings.
func Read(s *engine.Setting) (w With, err error) {
	if err := s.With.Into(&w, withHas); err != nil {
		return w, err
	}
	w.Currency = cmp.Or(w.Currency, money.USD)
	w.User = cmp.Or(w.User, 65532)
	for _, check := range []func() error{w.check, w.checkMounts, w.checkPools} {
		if err := check(); err != nil {
			return w, fmt.Errorf("with: %w", err)
		}
	}
	return w, nil
}

// check validates the settings of the whole engine.
func (w *With) check() error {
	switch {
	case len(w.Pools) == 0:
		return errors.New("no pool: write pools: [{name: NAME, cpus: 4, memory: 16GiB, rate: DOLLARS, " +
			"selector: {LABEL: VALUE}}], one for each kind of nodes")
	case w.AgentImage == "":
		return errors.New("no agent_image: write agent_image, an image that has /usr/bin/scrimp and that nodes " +
			"can pull: make dist makes one, which you push to your registry")
	case w.Image != "" && !imageRef.MatchString(w.Image), w.AgentImage != "" && !imageRef.MatchString(w.AgentImage):
		return errors.New("image and agent_image are names of images, such as python:3.12-slim")
	case w.Namespace != "" && !labelName.MatchString(w.Namespace):
		return fmt.Errorf("namespace is %q: write it as kubectl get namespaces has it", w.Namespace)
	case !w.Currency.Valid():
		return fmt.Errorf("currency is %q: write its code of three letters, such as EUR", w.Currency)
	case w.CA != "" && !isFile(w.CA):
		return fmt.Errorf("ca: the file %s does not exist: write a file of certificates in PEM", w.CA)
	case w.PriceLabel != "" && !labelKey.MatchString(w.PriceLabel):
		return fmt.Errorf("price_label is %q: write a label of nodes, such as example.org/hourly-rate", w.PriceLabel)
	case w.User < 1 || w.User > math.MaxInt32:
		return fmt.Errorf("user is %d: write the number of a user that is not root, up to %d", w.User, math.MaxInt32)
	}
	return nil
}

// checkMounts validates the namespace's objects that every pod names: secrets and claims.
func (w *With) checkMounts() error {
	for _, name := range w.PullSecrets {
		if !objName.MatchString(name) {
			return fmt.Errorf("pull_secrets has %q: write the name of a secret of the namespace", name)
		}
	}
	for _, v := range w.Volumes {
		if !objName.MatchString(v.Claim) || !path.IsAbs(v.Path) {
			return fmt.Errorf("volume %q at %q: write claim, a claim of the namespace, and path, where it is "+
				"mounted", v.Claim, v.Path)
		}
		if v.Path == RunFolder || strings.HasPrefix(v.Path, RunFolder+"/") || v.Path == "/dev/shm" {
			return fmt.Errorf("volume %q: %s is scrimp's own: mount it elsewhere", v.Claim, v.Path)
		}
	}
	return nil
}

// checkPools validates each pool, and that no two have the same name.
func (w *With) checkPools() error {
	seen := map[string]bool{}
	for n := range w.Pools {
		p := &w.Pools[n]
		if err := p.check(); err != nil {
			return fmt.Errorf("pool %q: %w", p.Name, err)
		}
		if w.Image == "" && p.Image == "" {
			return fmt.Errorf("pool %q: no image: write image, which jobs that name none run in, under with or "+
				"for the pool", p.Name)
		}
		if seen[p.Name] {
			return fmt.Errorf("pool %q is listed twice: give each pool its own name", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}

// Minimums of a machine.
const (
	leastMemory = 64 * size.MiB
	leastDisk   = size.MiB // for the agent's own files
	leastMilli  = 100      // thousandths of a processor
)

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// labels validates texts that are copied into objects.
func (p *Pool) labels() error {
	for k, v := range p.Selector {
		if !labelKey.MatchString(k) || !labelText.MatchString(v) {
			return fmt.Errorf("selector %s: %s: write a label and its value as kubectl get nodes --show-labels has them", k, v)
		}
	}
	for _, t := range p.Tolerations {
		if m := Tolerated.FindStringSubmatch(t); m == nil || !labelKey.MatchString(m[1]) || !labelText.MatchString(m[2]) {
			return fmt.Errorf("toleration %q: write KEY=VALUE:NoSchedule, as kubectl describe node shows a taint", t)
		}
	}
	for name, v := range map[string]string{"queue": p.Queue, "priority_class": p.PriorityClass,
		"runtime_class": p.RuntimeClass} {
		if v != "" && !objName.MatchString(v) {
			return fmt.Errorf("%s is %q: write it as the cluster has it", name, v)
		}
	}
	if !labelKey.MatchString(p.Resource) || !labelKey.MatchString(p.Spread) {
		return fmt.Errorf("resource is %q and spread %q: write names such as nvidia.com/gpu and "+
			"topology.kubernetes.io/zone", p.Resource, p.Spread)
	}
	return nil
}

// amounts parses the rate and the quantities.
func (p *Pool) amounts() error {
	if p.Rate != "" {
		r, err := engine.ParseRate(p.Rate)
		if err != nil || r <= 0 {
			return fmt.Errorf("rate is %q: write dollars an hour for one machine, such as 2.40, or leave it out where it is "+
				"unknown", p.Rate)
		}
		p.rate, p.priced = r, true
	}
	for _, f := range []struct {
		name, text string
		to         *size.Bytes
	}{{"memory", p.Memory, &p.memory}, {"shm", p.Shm, &p.ShmSize}, {"disk", p.Disk, &p.DiskSize}} {
		if f.text == "" {
			continue
		}
		v, err := size.Parse(f.text)
		if err != nil || v <= 0 || !quantity.Bytes.AllowsInt(int64(v)) {
			return fmt.Errorf("%s is %q: write it with its unit, such as 16GiB, up to 8 PiB", f.name, f.text)
		}
		*f.to = v
	}
	for n, s := range p.Split {
		if s < 1 || s > 64 || n > 0 && s <= p.Split[n-1] || p.Accelerators%s != 0 {
			return fmt.Errorf("split is %v: write rising numbers, each of which divides the accelerators, such as [1, 2, 4]",
				p.Split)
		}
	}
	return cmp.Or(p.parts(), p.instance())
}

// parts validates the smallest machine: one of the most parts that a node is split into.
func (p *Pool) parts() error {
	n := size.Bytes(p.Split[len(p.Split)-1])
	of := ""
	if n > 1 {
		of = fmt.Sprintf(" in %d parts", n)
	}
	switch memory := p.memory / n; {
	case p.memory > 0 && memory < leastMemory:
		return fmt.Errorf("memory is %s%s: a machine needs %v for its agent and program", p.Memory, of, leastMemory)
	case p.memory > 0 && p.ShmSize > memory:
		return fmt.Errorf("shm is %s, and memory %s%s: /dev/shm counts as memory: write less", p.Shm, p.Memory,
			of)
	case p.DiskSize > 0 && p.DiskSize/n < leastDisk:
		return fmt.Errorf("disk is %s%s: a machine needs %v for its agent's own files", p.Disk, of, leastDisk)
	case p.CPUs > 0 && int64(p.CPUs)*1000/int64(n) < leastMilli:
		return fmt.Errorf("cpus is %d%s: a machine needs a tenth of a processor at least", p.CPUs, of)
	}
	return nil
}

// cloud describes how a kind of cluster labels and taints its spot nodes.
type cloud struct {
	provider string            // in the catalogue
	spot     map[string]string // labels of spot nodes
	ondemand map[string]string
	taints   []string // of spot nodes
}

// The labels in the clouds' own documentation: EKS managed node groups, GKE spot VMs, AKS spot node pools, Karpenter
// (karpenter.sh/v1), each read on 2026-11-23.
var clouds = map[string]*cloud{
	"eks": {provider: "aws", spot: map[string]string{"eks.amazonaws.com/capacityType": "SPOT"},
		ondemand: map[string]string{"eks.amazonaws.com/capacityType": "ON_DEMAND"}},
	"gke": {provider: "gcp", spot: map[string]string{"cloud.google.com/gke-spot": "true"},
		taints: []string{"cloud.google.com/gke-spot=true:NoSchedule"}},
	"aks": {provider: "azure", spot: map[string]string{"kubernetes.azure.com/scalesetpriority": "spot"},
		taints: []string{"kubernetes.azure.com/scalesetpriority=spot:NoSchedule"}},
	"karpenter": {provider: "aws", spot: map[string]string{"karpenter.sh/capacity-type": "spot"},
		ondemand: map[string]string{"karpenter.sh/capacity-type": "on-demand"}},
}

// Selectors returns the labels of the pool's nodes.
func (p *Pool) Selectors() map[string]string {
	all := map[string]string{}
	if c := clouds[p.Cloud]; c != nil {
		labels := c.ondemand
		if p.Capacity == market.Spot {
			labels = c.spot
		}
		for k, v := range labels {
			all[k] = v
		}
	}
	if p.Instance != "" {
		all["node.kubernetes.io/instance-type"] = p.Instance
	}
	for k, v := range p.Selector {
		all[k] = v
	}
	return all
}

// Taints returns the taints that the pool's pods tolerate.
func (p *Pool) Taints() []string {
	list := slices.Clone(p.Tolerations)
	if c := clouds[p.Cloud]; c != nil && p.Capacity == market.Spot {
		list = append(list, c.taints...)
	}
	if p.Accelerators > 0 {
		list = append(list, p.Resource+":NoSchedule")
	}
	return list
}

// machineName returns the name of a part of the pool's nodes, such as 4c-16g or a100x8-96c-1152g.
func (p *Pool) machineName(part int) string {
	name := p.Machine
	if name == "" {
		name = fmt.Sprintf("%dc-%dg", p.CPUs, p.memory/size.GiB)
		if p.memory < size.GiB {
			name = fmt.Sprintf("%dc-%dm", p.CPUs, p.memory/size.MiB)
		}
		if p.Accelerators > 0 {
			name = fmt.Sprintf("%sx%d-%s", strings.ToLower(p.Accelerator), p.Accelerators, name)
		}
	}
	if part > 1 {
		name += "-1of" + strconv.Itoa(part)
	}
	return name
}

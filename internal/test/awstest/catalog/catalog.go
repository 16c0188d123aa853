// Package catalog lists what the emulated cloud sells: instance types with prices and quotas, zones and images.
package catalog

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Type is an instance type. Prices are USD per hour for Linux in us-east-1.
type Type struct {
	Name      string
	VCPU      int
	Cores     int // 0: VCPU / 2
	MiB       int
	Arch      string // "x86_64" or "arm64"
	Maker     string // of the processor
	GPU       string // "": none
	GPUMaker  string
	GPUs      int
	GPUMiB    int    // of each GPU
	DiskGB    int    // all local NVMe disks together; 0: none
	Disks     int    // number of local disks
	Network   string // in the words of DescribeInstanceTypes
	EFA       int    // highest number of interfaces; 0: not supported
	OnDemand  string // price
	Family    string // of the quota: standard, g, p, p5, trn, inf, x, …; "": by the name
	NoSpot    bool
	Bare      bool
	Zones     []string // where it is offered; nil: everywhere
	Burstable bool
}

// A Zone is an availability zone.
type Zone struct{ Name, ID, Region string }

// An Image is a machine image.
type Image struct {
	ID, Name, Arch string
	RootGB         int
	Device         string // of the root volume
}

// A Pool is the unit of capacity and spot prices.
type Pool struct {
	Type, Zone string
	Spot       bool
}

// A Price holds from a time on, in USD per hour.
type Price struct {
	From time.Time
	USD  string
}

// Types returns a small table of real types. Source of sizes: the instance type pages
// (docs.aws.amazon.com/ec2/latest/instancetypes, read 2026-11); prices: the on-demand price list of us-east-1 for
// Linux with shared tenancy, as of 2025.
func Types() []Type {
	return []Type{
		{Name: "t3.micro", VCPU: 2, Cores: 1, MiB: 1024, Arch: "x86_64", Maker: "Intel", Network: "Up to 5 Gigabit",
			OnDemand: "0.0104", Burstable: true},
		{Name: "m7i.large", VCPU: 2, MiB: 8192, Arch: "x86_64", Maker: "Intel", Network: "Up to 12.5 Gigabit",
			OnDemand: "0.1008"},
		{Name: "c7i.xlarge", VCPU: 4, MiB: 8192, Arch: "x86_64", Maker: "Intel", Network: "Up to 12.5 Gigabit",
			OnDemand: "0.1785"},
		{Name: "c7g.xlarge", VCPU: 4, Cores: 4, MiB: 8192, Arch: "arm64", Maker: "AWS", Network: "Up to 12.5 Gigabit",
			OnDemand: "0.145"},
		{Name: "g5g.xlarge", VCPU: 4, Cores: 4, MiB: 8192, Arch: "arm64", Maker: "AWS", Network: "Up to 10 Gigabit",
			GPU: "T4g", GPUMaker: "NVIDIA", GPUs: 1, GPUMiB: 16384, OnDemand: "0.42"},
		{Name: "g4dn.xlarge", VCPU: 4, MiB: 16384, Arch: "x86_64", Maker: "Intel", Network: "Up to 25 Gigabit",
			GPU: "T4", GPUMaker: "NVIDIA", GPUs: 1, GPUMiB: 16384, DiskGB: 125, Disks: 1, OnDemand: "0.526"},
		{Name: "g5.xlarge", VCPU: 4, MiB: 16384, Arch: "x86_64", Maker: "AMD", Network: "Up to 10 Gigabit",
			GPU: "A10G", GPUMaker: "NVIDIA", GPUs: 1, GPUMiB: 24576, DiskGB: 250, Disks: 1, OnDemand: "1.006"},
		{Name: "g5.12xlarge", VCPU: 48, MiB: 196608, Arch: "x86_64", Maker: "AMD", Network: "40 Gigabit",
			GPU: "A10G", GPUMaker: "NVIDIA", GPUs: 4, GPUMiB: 24576, DiskGB: 3800, Disks: 1, EFA: 1, OnDemand: "5.672"},
		{Name: "g6.xlarge", VCPU: 4, MiB: 16384, Arch: "x86_64", Maker: "AMD", Network: "Up to 10 Gigabit",
			GPU: "L4", GPUMaker: "NVIDIA", GPUs: 1, GPUMiB: 22888, DiskGB: 250, Disks: 1, OnDemand: "0.8048"},
		{Name: "p4d.24xlarge", VCPU: 96, MiB: 1179648, Arch: "x86_64", Maker: "Intel", Network: "4x 100 Gigabit",
			GPU: "A100", GPUMaker: "NVIDIA", GPUs: 8, GPUMiB: 40960, DiskGB: 8000, Disks: 8, EFA: 4, OnDemand: "21.957642"},
		{Name: "p5.48xlarge", VCPU: 192, MiB: 2097152, Arch: "x86_64", Maker: "AMD", Network: "3200 Gigabit",
			GPU: "H100", GPUMaker: "NVIDIA", GPUs: 8, GPUMiB: 81920, DiskGB: 30400, Disks: 8, EFA: 32, OnDemand: "55.04"},
	}
}

// Zones returns a table of three regions.
func Zones() (list []Zone) {
	for _, r := range []struct{ name, id, letters string }{
		{"us-east-1", "use1", "abc"}, {"us-west-2", "usw2", "abc"}, {"eu-west-1", "euw1", "ab"},
	} {
		for k, l := range r.letters {
			list = append(list, Zone{r.name + string(l), fmt.Sprintf("%s-az%d", r.id, k+1), r.name})
		}
	}
	return list
}

// Images returns one image per architecture.
func Images() []Image {
	return []Image{{"ami-0000000000000a64a", "al2023-ami-test-x86_64", "x86_64", 8, "/dev/xvda"},
		{"ami-0000000000000a64b", "al2023-ami-test-arm64", "arm64", 8, "/dev/xvda"}}
}

// Large returns an account of about that many types and zones, for load tests. It is the same in each call.
func Large(types, zones int) (t []Type, z []Zone) {
	sizes := []struct {
		name string
		vcpu int
	}{{"large", 2}, {"xlarge", 4}, {"2xlarge", 8}, {"4xlarge", 16}, {"8xlarge", 32}, {"12xlarge", 48}, {"16xlarge", 64},
		{"24xlarge", 96}, {"48xlarge", 192}}
	for k := 0; len(t) < types; k++ {
		series := string("cmrxgp"[k%6])
		for _, s := range sizes {
			if len(t) == types {
				break
			}
			one := Type{Name: fmt.Sprintf("%s%dz%d.%s", series, 1+k/6%9, k/54, s.name), VCPU: s.vcpu,
				MiB: s.vcpu * (2 + k%7) * 1024, Arch: "x86_64", Maker: "Intel", Network: "Up to 12.5 Gigabit",
				OnDemand: fmt.Sprintf("%d.%04d", s.vcpu*(40+k%13)/1000, s.vcpu*(40+k%13)%1000*10)}
			if k%5 == 4 {
				one.Arch, one.Maker = "arm64", "AWS"
			}
			if series == "g" || series == "p" {
				one.GPU, one.GPUMaker, one.GPUs, one.GPUMiB = []string{"A10G", "L4", "H100"}[k%3], "NVIDIA",
					max(1, s.vcpu/24), 24576
			}
			t = append(t, one)
		}
	}
	for k := range zones {
		region := fmt.Sprintf("xx-load-%d", 1+k/3)
		z = append(z, Zone{region + string("abc"[k%3]), fmt.Sprintf("xxl%d-az%d", 1+k/3, 1+k%3), region})
	}
	return t, z
}

// ParsePrice parses a price into 1e-12 USD, which fits the price list's ten decimals.
func ParsePrice(usd string) (int64, error) {
	r, ok := new(big.Rat).SetString(usd)
	if !ok {
		return 0, fmt.Errorf("price %q is not a decimal number", usd)
	}
	r.Mul(r, big.NewRat(1e12, 1))
	if !r.IsInt() || !r.Num().IsInt64() || r.Sign() < 0 {
		return 0, fmt.Errorf("price %q is not a count of 1e-12 USD", usd)
	}
	return r.Num().Int64(), nil
}

// FormatPrice formats a price with at least six decimals, as for spot prices.
func FormatPrice(p int64) string {
	text := fmt.Sprintf("%d.%012d", p/1e12, p%1e12)
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > 7 {
		text = text[:len(text)-1]
	}
	return text
}

// In reports whether a zone offers the type.
func (t Type) In(zone string) bool { return t.Zones == nil || slices.Contains(t.Zones, zone) }

// PhysicalCores returns the number of cores.
func (t Type) PhysicalCores() int {
	if t.Cores > 0 {
		return t.Cores
	}
	return max(1, t.VCPU/2)
}

// A step is a price from a time on.
type Step struct {
	From time.Time
	Pico int64
}

// PriceAt returns the price of a history at a time.
func PriceAt(h []Step, at time.Time) int64 {
	p := h[0].Pico
	for _, s := range h {
		if !s.From.After(at) {
			p = s.Pico
		}
	}
	return p
}

// Usage returns the ways to rent the type.
func (t Type) Usage() []string {
	if t.NoSpot {
		return []string{"on-demand"}
	}
	return []string{"on-demand", "spot"}
}

// Value returns what the type has under the name of a filter of DescribeInstanceTypes.
func (t Type) Value(filter string) []string {
	truth := func(b bool) []string { return []string{map[bool]string{true: "true", false: "false"}[b]} }
	switch filter {
	case "instance-type":
		return []string{t.Name}
	case "supported-usage-class":
		return t.Usage()
	case "processor-info.supported-architecture":
		return []string{t.Arch}
	case "bare-metal":
		return truth(t.Bare)
	case "vcpu-info.default-vcpus":
		return []string{strconv.Itoa(t.VCPU)}
	case "memory-info.size-in-mib":
		return []string{strconv.Itoa(t.MiB)}
	case "network-info.efa-supported":
		return truth(t.EFA > 0)
	case "burstable-performance-supported":
		return truth(t.Burstable)
	case "hypervisor":
		return []string{"nitro"}
	case "instance-storage-supported":
		return truth(t.DiskGB > 0)
	}
	return truth(true) // current-generation
}

// Attributes returns the type's attributes in the price list of a region.
func (t Type) Attributes(region string) map[string]string {
	m := map[string]string{"instanceType": t.Name, "regionCode": region, "operatingSystem": "Linux", "tenancy": "Shared",
		"capacitystatus": "Used", "preInstalledSw": "NA", "licenseModel": "No License required", "operation": "RunInstances",
		"servicecode": "AmazonEC2", "servicename": "Amazon Elastic Compute Cloud", "locationType": "AWS Region",
		"vcpu": strconv.Itoa(t.VCPU), "memory": fmt.Sprintf("%g GiB", float64(t.MiB)/1024), "usagetype": "BoxUsage:" + t.Name,
		"marketoption": "OnDemand", "currentGeneration": "Yes"}
	if t.GPUs > 0 {
		m["gpu"] = strconv.Itoa(t.GPUs)
	}
	return m
}

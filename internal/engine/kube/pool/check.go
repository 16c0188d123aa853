//go:build !local

package pool

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/market"
)

// check validates a pool and parses its quantities.
func (p *Pool) check() error {
	p.Capacity = cmp.Or(p.Capacity, market.OnDemand)
	p.Resource = cmp.Or(p.Resource, "nvidia.com/gpu")
	p.Spread = cmp.Or(p.Spread, "kubernetes.io/hostname")
	p.Grace = cmp.Or(p.Grace, engine.Span(30*time.Second))
	if len(p.Split) == 0 {
		p.Split = []int{1}
	}
	for _, check := range []func() error{p.checkNames, p.checkShape, p.checkSpans} {
		if err := check(); err != nil {
			return err
		}
	}
	return cmp.Or(p.labels(), p.amounts())
}

// checkNames validates the pool's name, nodes and image.
func (p *Pool) checkNames() error {
	switch {
	case !labelName.MatchString(p.Name):
		return errors.New("name: write small letters, digits and hyphens")
	case p.Capacity != market.Spot && p.Capacity != market.OnDemand:
		return fmt.Errorf("capacity is %q: write spot, for nodes that may be interrupted, or on-demand", p.Capacity)
	case p.Cloud != "" && clouds[p.Cloud] == nil:
		return fmt.Errorf("cloud is %q: write eks, gke, aks or karpenter, or leave it out and set selector", p.Cloud)
	case p.Machine != "" && !labelName.MatchString(p.Machine):
		return fmt.Errorf("machine is %q: write small letters, digits and hyphens", p.Machine)
	case p.Image != "" && !imageRef.MatchString(p.Image):
		return fmt.Errorf("image is %q: write the name of one, such as python:3.12-slim", p.Image)
	}
	return nil
}

// checkShape validates the size of the pool's machines.
func (p *Pool) checkShape() error {
	switch {
	case p.CPUs < 0 || p.Accelerators < 0 || p.Machines < 0:
		return errors.New("cpus, accelerators and machines are numbers from zero")
	case !labelText.MatchString(p.Instance):
		return fmt.Errorf("instance is %q: write the provider's name of the type, such as m5.xlarge", p.Instance)
	case p.Accelerator != "" && !labelText.MatchString(p.Accelerator):
		return fmt.Errorf("accelerator is %q: write its name with letters, digits, dots and hyphens, such as "+
			"A100-SXM-40GB", p.Accelerator)
	case p.Instance == "" && p.CPUs == 0:
		return errors.New("write what a machine has (cpus: 4, memory: 16GiB) or the type of its nodes " +
			"(instance: m5.xlarge)")
	case p.CPUs > 0 && p.Memory == "":
		return errors.New("cpus without memory: add memory: 16GiB")
	case p.Accelerator != "" && p.Accelerators == 0:
		return fmt.Errorf("accelerator is %s without a number: add accelerators: 1", p.Accelerator)
	case p.Accelerators > 0 && p.Accelerator == "":
		return errors.New("accelerators without their kind: add it, such as accelerator: A100-SXM-40GB")
	}
	return nil
}

// checkSpans validates the lifetime of machines and their notice.
func (p *Pool) checkSpans() error {
	switch {
	case p.Grace < 0 || time.Duration(p.Grace) > time.Hour:
		return errors.New("grace is a span of an hour at most, such as 60s")
	case p.Time != 0 && time.Duration(p.Time) < time.Minute:
		return errors.New("time is a span of a minute at least, such as 24h")
	}
	return nil
}

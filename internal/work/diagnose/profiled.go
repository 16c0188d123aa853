package diagnose

import (
	"fmt"

	"scrimp/internal/work/diagnose/class"
	"scrimp/internal/work/diagnose/profile"
)

// Limits of what a GPU's kernels show.
const (
	manyKernels = 10000 // a second: a program that begins its kernels one by one begins hardly more
	much32      = 0.2   // share of the time in products of 32-bit numbers
)

// ofProducts names 32-bit products, which matrix units multiply in 16 bits in an eighth of the time at best. Small
// matrices gain less, since their time is not arithmetic.
func ofProducts(p *profile.Profile) (finding, bool) {
	share, kernel := p.In32()
	of := "GPUs' work"
	if p.GPUBusy != nil {
		share, of = share**p.GPUBusy, "time"
	}
	return finding{class.Precision, fmt.Sprintf("%s: %s of the %s multiplies 32-bit numbers without matrix units, most "+
		"of it in %.60s", p.Tool, percent(share), of, kernel), around(0.7*share, 0.5, 1.25), false}, share >= much32
}

// ofDoubles names operators on 64-bit numbers: 32 bits take half of their time on processors, and less on GPUs.
func ofDoubles(p *profile.Profile) (finding, bool) {
	share, operator := p.In64()
	of, saves := "time", 0.5
	if p.OnGPU {
		of, saves = "GPUs' work", 0.8
	}
	if p.GPUBusy != nil {
		share, of = share**p.GPUBusy, "time"
	}
	return finding{class.Precision, fmt.Sprintf("%s: %s of the %s computes on 64-bit numbers, most of it in %.60s", p.Tool,
		percent(share), of, operator), around(saves*share, 0.6, 1.2), false}, share >= much32
}

// ofOperators names small operators on processors: starting them takes longer than computing.
func ofOperators(p *profile.Profile) (finding, bool) {
	rate, mean, ok := p.SmallOperators()
	return finding{class.SmallBatch, fmt.Sprintf("%s: %.0f operators a second, of %.1f µs on average, start one by one",
		p.Tool, rate, 1e6*mean), Range{0.4, 0.8, 0.95}, false}, ok
}

// ofKernels names small kernels: the GPU waits for a program that begins them as fast as it can.
func ofKernels(p *profile.Profile) (finding, bool) {
	rate, mean := p.Kernels()
	if p.GPUBusy == nil || *p.GPUBusy >= target || rate < manyKernels {
		return finding{}, false
	}
	return finding{class.SmallBatch, fmt.Sprintf("%s: GPUs %s used; %.0f kernels a second, of %.1f µs on average, "+
		"start one by one", p.Tool, percent(*p.GPUBusy), rate, 1e6*mean), starving(*p.GPUBusy), false}, true
}

// starving returns the share of the time that is saved if GPUs used u get as much work as they can take.
func starving(u float64) Range { return Range{max(0, 1-u/hungry), max(0, 1-u/fed), 1 - u} }

// wasted returns the share of a profile's time that removing a part saves. In a wait for the GPU, the GPU's own
// computing remains.
func wasted(p *profile.Profile, part profile.Part) float64 {
	share := p.ShareOf(part)
	if part == profile.Waiting && p.GPUBusy != nil {
		return min(share, 1-*p.GPUBusy)
	}
	return share
}

// ofProfiles names the causes that profiles show.
func ofProfiles(list []profile.Profile) (out []finding) {
	parts := []struct {
		part  profile.Part
		class class.Class
		least float64
	}{
		{profile.Loading, class.DataLoading, 0.2}, {profile.Copying, class.HostCopies, 0.15},
		{profile.Communication, class.Communication, 0.25},
		{profile.Saving, class.Checkpointing, 0.08}, {profile.Evaluation, class.Evaluation, 0.2},
		{profile.Waiting, class.Synchronisation, 0.2}, {profile.Logging, class.Logging, 0.1},
		{profile.Recomputation, class.Recompute, 0.1}, {profile.NetworkReads, class.RemoteRead, 0.2},
	}
	explained := 0.0
	for _, p := range list {
		for _, x := range parts {
			share := p.ShareOf(x.part)
			if share < x.least || x.part == profile.Waiting && p.GPUBusy != nil && *p.GPUBusy >= target {
				continue
			}
			of := "time"
			if p.OfBusy && p.GPUBusy == nil {
				of = "GPUs' work"
			}
			text := fmt.Sprintf("%s: %s of the %s is %s", p.Tool, percent(share), of, x.part)
			for _, o := range p.Operators {
				if o.Part == x.part {
					text += fmt.Sprintf(", most of it in %.60s", o.Name)
					break
				}
			}
			waste := around(wasted(&p, x.part), 0.5, 1)
			explained = max(explained, waste.Value)
			out = append(out, finding{x.class, text, waste, false})
		}
		for _, of := range []func(*profile.Profile) (finding, bool){ofProducts, ofDoubles} {
			if found, ok := of(&p); ok {
				out = append(out, found)
			}
		}
		long := p.Seconds == 0 || p.Seconds >= forLong // 0: the file does not say
		if p.GPUBusy != nil && *p.GPUBusy < hungry && len(p.Operators) == 0 && long {
			out = append(out, finding{class.OversizedGPU, fmt.Sprintf("%s: GPUs %s used", p.Tool, percent(*p.GPUBusy)),
				starving(*p.GPUBusy), false})
		}
	}
	for _, p := range list { // a file may have a profile for its GPUs and one for the threads that explains them
		for _, of := range []func(*profile.Profile) (finding, bool){ofKernels, ofOperators} {
			if found, ok := of(&p); ok && explained < enough {
				out = append(out, found)
			}
		}
	}
	return merge(nil, out)
}

package profile

import (
	"slices"
	"strings"
)

// in32 lists parts of the lower-case names of kernels that multiply 32-bit numbers without matrix units. TF32 has other
// names (s1688gemm, tf32f32), as have 16-bit numbers (s16816gemm, nvjet).
var in32 = []string{"sgemm", "f32f32_f32f32", "scudnn"}

// in64 lists parts of the lower-case names of kernels that multiply 64-bit numbers. in64Suffix ends the names of
// processors' operators on such numbers.
var in64 = []string{"dgemm", "f64f64", "d884gemm", in64Suffix}

const in64Suffix = " (float64)"

// In64 returns the share of the profile's time, or of the GPUs' work, in operators on 64-bit numbers, and the one with
// most of it.
func (p *Profile) In64() (share float64, operator string) { return p.named(in64) }

// smallOperators is the mean time of operators, in seconds, below which starting them takes longer than computing.
const smallOperators = 20e-6

// SmallOperators returns the operators a second of a program without GPUs, and their mean seconds, if they are so small
// that starting them takes most of the time. Only the operators of the profile count.
func (p *Profile) SmallOperators() (rate, mean float64, ok bool) {
	seconds, count := 0.0, 0.0
	for _, o := range p.Operators {
		if o.Part == Compute {
			seconds, count = seconds+o.Seconds, count+float64(o.Count)
		}
	}
	if p.OnGPU || p.Seconds <= 0 || seconds <= 0 { // stacks have samples instead of seconds
		return 0, 0, false
	}
	return count / p.Seconds, seconds / count, seconds/count < smallOperators && seconds >= 0.3*p.Seconds
}

// In32 returns the share of products of 32-bit numbers without matrix units in the GPUs' work, and the kernel with most
// of it.
func (p *Profile) In32() (share float64, kernel string) {
	if !p.OnGPU {
		return 0, ""
	}
	return p.named(in32)
}

// named returns the share of the operators whose names contain one of the words, and the costliest of them.
func (p *Profile) named(words []string) (share float64, operator string) {
	for _, o := range p.Operators {
		lower := strings.ToLower(o.Name)
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) }) {
			if share += o.Share; operator == "" {
				operator = o.Name
			}
		}
	}
	return share, operator
}

// Kernels returns the kernels a second, and their mean seconds; 0 if unknown. Only the operators of the profile count,
// so the true rate may be higher.
func (p *Profile) Kernels() (rate, mean float64) {
	seconds, count := 0.0, 0.0
	for _, o := range p.Operators {
		if o.Part == Compute {
			seconds, count = seconds+o.Seconds, count+float64(o.Count)
		}
	}
	if !p.OnGPU || p.Seconds <= 0 || count == 0 {
		return 0, 0
	}
	return count / p.Seconds, seconds / count
}

// ShareOf returns the share of the profile's time that a part takes, or of the GPUs' work if the profile does not say
// how long they had none.
func (p *Profile) ShareOf(part Part) float64 {
	if p.OfBusy && p.GPUBusy != nil {
		return p.Shares[part] * *p.GPUBusy
	}
	return p.Shares[part]
}

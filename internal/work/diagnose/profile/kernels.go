package profile

import "strings"

// in32 lists parts of the lower-case names of kernels that multiply 32-bit numbers without matrix units. TF32 has other
// names (s1688gemm, tf32f32), as have 16-bit numbers (s16816gemm, nvjet).
var in32 = []string{"sgemm", "f32f32_f32f32", "scudnn"}

// In32 returns the share of products of 32-bit numbers without matrix units in the GPUs' work, and the kernel with most
// of it.
func (p *Profile) In32() (share float64, kernel string) {
	if !p.OnGPU {
		return 0, ""
	}
	for _, o := range p.Operators {
		lower := strings.ToLower(o.Name)
		for _, w := range in32 {
			if strings.Contains(lower, w) {
				if share += o.Share; kernel == "" {
					kernel = o.Name
				}
				break
			}
		}
	}
	return share, kernel
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

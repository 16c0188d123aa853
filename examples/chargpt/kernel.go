package main

import "math"

// Every product in this file is wrapped in float64(…) before it is added: the
// language allows a compiler to fuse x*y+z, which rounds once instead of twice
// and gives other bytes on another processor.

// matmul computes out = a·bᵀ, or out += a·bᵀ where add is set, for a of n×k, b
// of m×k and out of n×m, all in row order. Each element is summed along k in
// ascending order; blocks of 2×4 only share loads between elements.
func matmul(out, a, b []float64, n, m, k int, add bool) {
	i := 0
	for ; i+2 <= n; i += 2 {
		a0 := a[i*k : i*k+k : i*k+k]
		a1 := a[(i+1)*k:][:len(a0)]
		o0, o1 := out[i*m:i*m+m], out[(i+1)*m:(i+1)*m+m]
		j := 0
		for ; j+4 <= m; j += 4 {
			b0 := b[j*k:][:len(a0)]
			b1 := b[(j+1)*k:][:len(a0)]
			b2 := b[(j+2)*k:][:len(a0)]
			b3 := b[(j+3)*k:][:len(a0)]
			var s00, s01, s02, s03, s10, s11, s12, s13 float64
			for p, x0 := range a0 {
				x1 := a1[p]
				y := b0[p]
				s00 += float64(x0 * y)
				s10 += float64(x1 * y)
				y = b1[p]
				s01 += float64(x0 * y)
				s11 += float64(x1 * y)
				y = b2[p]
				s02 += float64(x0 * y)
				s12 += float64(x1 * y)
				y = b3[p]
				s03 += float64(x0 * y)
				s13 += float64(x1 * y)
			}
			if add {
				s00, s01, s02, s03 = o0[j]+s00, o0[j+1]+s01, o0[j+2]+s02, o0[j+3]+s03
				s10, s11, s12, s13 = o1[j]+s10, o1[j+1]+s11, o1[j+2]+s12, o1[j+3]+s13
			}
			o0[j], o0[j+1], o0[j+2], o0[j+3] = s00, s01, s02, s03
			o1[j], o1[j+1], o1[j+2], o1[j+3] = s10, s11, s12, s13
		}
		for ; j < m; j++ {
			row := b[j*k : j*k+k]
			s0, s1 := dot(a0, row), dot(a1, row)
			if add {
				s0, s1 = o0[j]+s0, o1[j]+s1
			}
			o0[j], o1[j] = s0, s1
		}
	}
	for ; i < n; i++ {
		for j := range m {
			s := dot(a[i*k:i*k+k], b[j*k:j*k+k])
			if add {
				s = out[i*m+j] + s
			}
			out[i*m+j] = s
		}
	}
}

// dot sums x[i]·y[i] in ascending order.
func dot(x, y []float64) float64 {
	y = y[:len(x)]
	var s float64
	for i, v := range x {
		s += float64(v * y[i])
	}
	return s
}

// axpy adds f·x to y.
func axpy(y, x []float64, f float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += float64(f * v)
	}
}

// transpose writes the m×n transpose of the n×m matrix a to out.
func transpose(out, a []float64, n, m int) {
	for i := range n {
		for j, v := range a[i*m : i*m+m] {
			out[j*n+i] = v
		}
	}
}

// norm scales each row of x to a root mean square of 1 and multiplies it by the gains g. It stores the factor 1/rms
// of each row in inv for normBack.
func norm(out, x, g, inv []float64, n, d int) {
	for i := range n {
		row, to := x[i*d:i*d+d], out[i*d:i*d+d]
		r := 1 / math.Sqrt(dot(row, row)/float64(d)+1e-6)
		inv[i] = r
		for j, v := range row {
			to[j] = float64(v * r * g[j])
		}
	}
}

// normBack adds the gradients of norm to dx and dg.
func normBack(dx, dg, dout, x, g, inv []float64, n, d int) {
	for i := range n {
		row, from, to := x[i*d:i*d+d], dout[i*d:i*d+d], dx[i*d:i*d+d]
		r := inv[i]
		var s float64
		for j, v := range row {
			t := float64(from[j] * v)
			dg[j] += float64(t * r)
			s += float64(t * g[j])
		}
		c := float64(s*r*r*r) / float64(d)
		for j, v := range row {
			to[j] += float64(from[j]*g[j]*r) - float64(v*c)
		}
	}
}

// softmax turns row into probabilities that sum to 1, and returns the logarithm of the sum of the exponentials of its
// former values.
func softmax(row []float64) float64 {
	top := row[0]
	for _, v := range row[1:] {
		if v > top {
			top = v
		}
	}
	var sum float64
	for i, v := range row {
		e := exp(v - top)
		row[i] = e
		sum += e
	}
	f := 1 / sum
	for i, v := range row {
		row[i] = float64(v * f)
	}
	return top + ln(sum)
}

// exp returns e to the x for x ≤ 0, to about 1e-14; 0 below -700. The library's version differs in its last bit
// between processors.
func exp(x float64) float64 {
	if x < -700 {
		return 0
	}
	const (
		log2e = 1.44269504088896340735992468100189214
		ln2Hi = 6.93147180369123816490e-01 // leading bits: k·ln2Hi is exact
		ln2Lo = 1.90821492927058770002e-10
	)
	k := math.Floor(float64(x*log2e) + 0.5)
	r := x - float64(k*ln2Hi) - float64(k*ln2Lo) // |r| ≤ ln 2 / 2
	p := 1.0 / 39916800
	p = float64(p*r) + 1.0/3628800
	p = float64(p*r) + 1.0/362880
	p = float64(p*r) + 1.0/40320
	p = float64(p*r) + 1.0/5040
	p = float64(p*r) + 1.0/720
	p = float64(p*r) + 1.0/120
	p = float64(p*r) + 1.0/24
	p = float64(p*r) + 1.0/6
	p = float64(p*r) + 0.5
	p = float64(p*r) + 1
	p = float64(p*r) + 1
	return float64(p * math.Float64frombits(uint64(int64(k)+1023)<<52))
}

// ln returns the natural logarithm of a normal x > 0, to about 1e-15.
func ln(x float64) float64 {
	m, e := math.Frexp(x) // m in [0.5, 1)
	if m < math.Sqrt2/2 {
		m, e = m+m, e-1
	}
	s := (m - 1) / (m + 1) // |s| ≤ 0.172; ln m = 2(s + s³/3 + s⁵/5 + …)
	q := float64(s * s)
	var p float64
	for i := 21; i >= 1; i -= 2 {
		p = float64(p*q) + 1/float64(i)
	}
	return float64(2*s*p) + float64(float64(e)*math.Ln2)
}

package residual

import "math"

// square is a symmetric matrix, stored by rows.
type square struct {
	n int
	a []float64
}

func newSquare(n int) square { return square{n, make([]float64, n*n)} }

func (s square) row(i int) []float64 { return s.a[i*s.n : (i+1)*s.n] }

func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	i := 0
	for ; i+3 < len(a); i += 4 {
		s0 += float64(a[i] * b[i])
		s1 += float64(a[i+1] * b[i+1])
		s2 += float64(a[i+2] * b[i+2])
		s3 += float64(a[i+3] * b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += float64(a[i] * b[i])
	}
	return s0 + s1 + s2 + s3
}

// cholesky replaces s by its lower factor, L·Lᵀ = s. It returns false if s is not positive definite.
func (s square) cholesky() bool {
	for i := range s.n {
		ri := s.row(i)
		for j := 0; j <= i; j++ {
			rj := s.row(j)
			v := ri[j] - dot(ri[:j], rj[:j])
			if i == j {
				if v <= 0 || math.IsNaN(v) {
					return false
				}
				ri[i] = math.Sqrt(v)
			} else {
				ri[j] = v / rj[j]
			}
		}
		clear(ri[i+1:])
	}
	return true
}

// solve returns x with L·Lᵀ·x = b, for a factor L.
func (s square) solve(b []float64) []float64 {
	x := append([]float64(nil), b...)
	for i := range s.n {
		r := s.row(i)
		x[i] = (x[i] - dot(r[:i], x[:i])) / r[i]
	}
	for i := s.n - 1; i >= 0; i-- {
		x[i] /= s.row(i)[i]
		r := s.row(i)[:i]
		for j, v := range r {
			x[j] -= float64(v * x[i])
		}
	}
	return x
}

// forward solves L·x = b in place.
func (s square) forward(b []float64) {
	for i := range s.n {
		r := s.row(i)
		b[i] = (b[i] - dot(r[:i], b[:i])) / r[i]
	}
}

// inverse returns (L·Lᵀ)⁻¹ for a factor L.
func (s square) inverse() square {
	n := s.n
	// u holds the columns of L⁻¹ as rows: u[j][i] = (L⁻¹)[i][j] for i ≥ j.
	u := newSquare(n)
	for j := range n {
		c := u.row(j)
		c[j] = 1 / s.row(j)[j]
		for i := j + 1; i < n; i++ {
			r := s.row(i)
			c[i] = -dot(r[j:i], c[j:i]) / r[i]
		}
	}
	inv := newSquare(n)
	for i := range n {
		for j := range i + 1 {
			v := dot(u.row(i)[i:], u.row(j)[i:])
			inv.row(i)[j], inv.row(j)[i] = v, v
		}
	}
	return inv
}

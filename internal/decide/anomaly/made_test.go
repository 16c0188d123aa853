package anomaly

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// maker builds one series, one value per step, with planted anomalies.
type maker struct {
	*rand.Rand
	step   time.Duration
	values []float64
	drop   float64 // the share of missing rows
	at     []int   // the middle of each planted anomaly
}

func (m *maker) n() int { return len(m.values) }

// day returns the fraction of the day at row i, 0 to 1.
func (m *maker) day(i int) float64 {
	d := float64(i) * m.step.Hours() / 24
	return d - math.Floor(d)
}

// weekend reports whether row i is on the last two days of seven.
func (m *maker) weekend(i int) bool { return int(float64(i)*m.step.Hours()/24)%7 >= 5 }

// fill sets every value.
func (m *maker) fill(f func(i int) float64) {
	for i := range m.values {
		m.values[i] = f(i)
	}
}

// plant marks k places after the probation, apart from each other, and changes the values from each on. As with
// human labels, a few marks are invisible, and some visible changes have no mark.
func (m *maker) plant(k int, f func(at int)) {
	for range k {
		at, ok := m.place()
		if !ok {
			continue
		}
		m.at = append(m.at, at)
		if m.IntN(14) > 0 {
			f(at)
		}
	}
	for m.IntN(5) == 0 {
		if at, ok := m.place(); ok {
			kept := m.at
			m.at = append(slices.Clone(m.at), at)
			f(at)
			m.at = kept
		}
	}
}

// place returns a row far from the marked ones.
func (m *maker) place() (at int, ok bool) {
	for range 100 {
		at = int(float64(m.n()) * (0.2 + 0.75*m.Float64()))
		if !slices.ContainsFunc(m.at, func(o int) bool { return abs(at-o) < m.n()/8 }) {
			return at, true
		}
	}
	return 0, false
}

func abs(i int) int { return max(i, -i) }

// change changes length values from row at on.
func (m *maker) change(at, length int, f func(v float64, x float64) float64) {
	for i := at; i < min(at+length, m.n()); i++ {
		m.values[i] = f(m.values[i], float64(i-at)/float64(length))
	}
}

// distract adds k small unlabelled oddities anywhere.
func (m *maker) distract(k int, size float64) {
	for range k {
		at, length := m.IntN(m.n()), 1+m.IntN(3)
		m.change(at, length, func(v, _ float64) float64 { return v + size*(0.5+m.Float64()) })
	}
}

// series returns the finished series with windows that cover a tenth of it.
func (m *maker) series(kind string) *labelled {
	s := &labelled{kind: kind}
	t := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	row := make([]int, m.n())
	for i, v := range m.values {
		row[i] = len(s.points)
		if m.Float64() >= m.drop {
			s.points = append(s.points, point{t.Add(time.Duration(i) * m.step), v})
		}
	}
	slices.Sort(m.at)
	for _, at := range m.at {
		half := len(s.points) / 20 / len(m.at)
		middle := row[at] + int(0.6*(m.Float64()-0.5)*float64(half)) // human labels are not exact to the row
		s.windows = append(s.windows, [2]int{max(0, middle-half), min(len(s.points)-1, middle+half)})
	}
	return s
}

func (m *maker) heavy(scale float64) float64 { return scale * (math.Pow(m.Float64(), -0.45) - 1) }

// poisson draws a count with the given mean, by the normal limit if the mean is large.
func (m *maker) poisson(mean float64) float64 {
	if mean > 50 {
		return max(0, math.Round(mean+math.Sqrt(mean)*m.NormFloat64()))
	}
	k, p, l := 0.0, 1.0, math.Exp(-mean)
	for {
		if p *= m.Float64(); p <= l {
			return k
		}
		k++
	}
}

// kinds lists the kinds of series, each with its number of rows, its step, and its fill and plant functions.
var kinds = []struct {
	name string
	rows int
	step time.Duration
	make func(m *maker)
}{
	{"quiet-daily", 4032, 5 * time.Minute, func(m *maker) {
		noise := []float64{0, 4}[m.IntN(2)]
		m.fill(func(i int) float64 {
			if d := m.day(i); d > 0.38 && d < 0.75 {
				return 80 + noise*m.Float64()
			}
			return 20 + noise*m.Float64()
		})
	}},
	{"quiet-noise", 4032, 5 * time.Minute, func(m *maker) {
		m.fill(func(i int) float64 { return 40 + 5*m.Float64() })
	}},
	{"quiet-spikes", 4032, 5 * time.Minute, func(m *maker) {
		m.fill(func(i int) float64 {
			if m.IntN(18) == 0 {
				return 60 + 40*m.Float64()
			}
			return 20 + 3*m.Float64()
		})
	}},
	{"pulse-changed", 4032, 5 * time.Minute, func(m *maker) {
		m.fill(func(i int) float64 {
			if d := m.day(i); d > 0.38 && d < 0.75 {
				return 80 + 8*m.Float64()
			}
			return 20 + 3*m.Float64()
		})
		kind := m.IntN(4)
		m.plant(1, func(at int) {
			day := at / 288 * 288
			m.at[len(m.at)-1] = day + 110 + 50
			m.change(day+110, 106, func(v, x float64) float64 {
				switch kind {
				case 0:
					return v + 60
				case 1:
					return 20 + 3*m.Float64() // a missing pulse
				case 2:
					return v - 35
				}
				return 45 // flat
			})
		})
	}},
	{"spike-density", 4032, 5 * time.Minute, func(m *maker) {
		m.fill(func(i int) float64 {
			if i%48 == 0 {
				return 90 + 5*m.Float64()
			}
			return 20 + 2*m.Float64()
		})
		m.plant(1, func(at int) {
			m.change(at, 250, func(v, _ float64) float64 {
				if m.IntN(9) == 0 {
					return 90 + 5*m.Float64()
				}
				return v
			})
		})
	}},
	{"cpu-spiky", 4032, 5 * time.Minute, func(m *maker) {
		m.fill(func(i int) float64 {
			v := 2 + 0.2*m.NormFloat64()
			if i%288 < 3 {
				v += 8 + m.NormFloat64() // a nightly job
			}
			return v + m.heavy(0.15)
		})
		m.plant(2, func(at int) {
			if m.IntN(2) == 0 {
				m.change(at, 3, func(v, _ float64) float64 { return v + 18 })
			} else {
				m.change(at, 60, func(v, _ float64) float64 { return v + 2 })
			}
		})
		m.distract(4, 2)
	}},
	{"cpu-steps", 4032, 5 * time.Minute, func(m *maker) {
		level := 40.0
		m.fill(func(i int) float64 { return level + 1.5*m.NormFloat64() + 2*math.Sin(2*math.Pi*m.day(i)) })
		m.plant(2, func(at int) {
			up := []float64{8, 15, -9}[m.IntN(3)]
			m.change(at, m.n(), func(v, _ float64) float64 { return v + up })
		})
		m.distract(6, 6)
	}},
	{"cpu-fails", 4032, 5 * time.Minute, func(m *maker) {
		ar := 0.0
		m.fill(func(i int) float64 {
			ar = 0.95*ar + m.NormFloat64()
			return max(0, 45+ar+m.heavy(1))
		})
		m.plant(1, func(at int) { m.change(at, 80, func(v, _ float64) float64 { return 0.5 + 0.1*m.Float64() }) })
		m.distract(6, 8)
	}},
	{"bytes-bursts", 4032, 5 * time.Minute, func(m *maker) {
		m.fill(func(i int) float64 {
			v := 1e5 * (1 + 0.1*m.NormFloat64())
			if m.IntN(25) == 0 {
				v += m.heavy(2e6)
			}
			return v
		})
		m.plant(2, func(at int) {
			m.change(at, 12, func(v, _ float64) float64 { return v + 2.5e7*(0.3+m.Float64()) })
		})
	}},
	{"requests", 4032, 5 * time.Minute, func(m *maker) {
		m.fill(func(i int) float64 { return m.poisson(60 + 50*math.Sin(2*math.Pi*(m.day(i)-0.3))) })
		m.plant(2, func(at int) { m.change(at, 10, func(v, _ float64) float64 { return v*1.6 + 60 }) })
		m.distract(6, 60)
	}},
	{"machine-heat", 16000, 5 * time.Minute, func(m *maker) {
		slow, fast := 0.0, 0.0
		m.fill(func(i int) float64 {
			slow, fast = 0.9995*slow+0.25*m.NormFloat64(), 0.9*fast+0.8*m.NormFloat64()
			return 85 + slow + fast
		})
		m.plant(3, func(at int) {
			m.change(at, 300, func(v, x float64) float64 { return v - 35*math.Sin(math.Pi*min(1, 1.5*x)) })
		})
		m.distract(10, -8)
	}},
	{"office-heat", 7200, time.Hour, func(m *maker) {
		m.drop = 0.02
		ar := 0.0
		m.fill(func(i int) float64 {
			ar = 0.97*ar + 0.5*m.NormFloat64()
			return 71 + 3*math.Sin(2*math.Pi*float64(i)/8766) + 2*math.Sin(2*math.Pi*m.day(i)) + ar
		})
		m.plant(2, func(at int) {
			m.change(at, 40, func(v, x float64) float64 { return v - 9*math.Sin(math.Pi*x) })
		})
	}},
	{"taxi", 10320, 30 * time.Minute, func(m *maker) {
		m.fill(func(i int) float64 {
			d := m.day(i)
			v := 15000 - 9000*math.Cos(2*math.Pi*(d-0.15)) - 3000*math.Cos(4*math.Pi*(d-0.05))
			if m.weekend(i) {
				v = 15000 - 7000*math.Cos(2*math.Pi*(d-0.25))
			}
			return v * (1 + 0.05*m.NormFloat64())
		})
		m.plant(5, func(at int) {
			by := []float64{0.5, 0.4, 1.4}[m.IntN(3)]
			length := 48
			if by > 1 {
				length = 6
			}
			m.change(at/48*48, length, func(v, _ float64) float64 { return v * by })
		})
	}},
	{"ads", 1620, time.Hour, func(m *maker) {
		m.fill(func(i int) float64 { return 0.4 + 0.12*math.Abs(m.NormFloat64()) + 0.05*m.heavy(1) })
		m.plant(2, func(at int) {
			m.change(at, 1+m.IntN(8), func(v, _ float64) float64 { return v + 0.8 + 1.5*m.Float64() })
		})
		m.distract(8, 0.6)
	}},
	{"speed", 2500, 5 * time.Minute, func(m *maker) {
		m.drop = 0.25
		m.fill(func(i int) float64 {
			d, v := m.day(i), 68+3*m.NormFloat64()
			if d > 0.3 && d < 0.38 && !m.weekend(i) {
				v -= 12 * m.Float64()
			}
			return math.Round(v)
		})
		m.plant(2, func(at int) { m.change(at, 14, func(v, _ float64) float64 { return v - 28*(0.6+0.4*m.Float64()) }) })
		m.distract(8, -12)
	}},
	{"travel-time", 2500, 5 * time.Minute, func(m *maker) {
		m.drop = 0.2
		m.fill(func(i int) float64 {
			d, v := m.day(i), 120+15*math.Abs(m.NormFloat64())
			if d > 0.65 && d < 0.78 && !m.weekend(i) {
				v += 150 * m.Float64()
			}
			return math.Round(v + 10*m.heavy(1))
		})
		m.plant(3, func(at int) {
			m.change(at, 8, func(v, _ float64) float64 { return v + 200*(0.7+m.Float64()) })
		})
	}},
	{"tweets", 15800, 5 * time.Minute, func(m *maker) {
		burst := 0.0
		m.fill(func(i int) float64 {
			burst *= 0.8
			if m.IntN(600) == 0 {
				burst += 20 + m.heavy(25)
			}
			return m.poisson((12+8*math.Sin(2*math.Pi*(m.day(i)-0.4)))*(0.7+0.6*m.Float64()) + burst)
		})
		m.plant(3, func(at int) {
			size := 90 + 220*m.Float64()
			m.change(at, 60, func(v, x float64) float64 { return v + m.poisson(size*math.Exp(-4*x)) })
		})
	}},
	{"latency", 4032, 5 * time.Minute, func(m *maker) {
		m.fill(func(i int) float64 { return 45 + 2*m.NormFloat64() + m.heavy(0.4) })
		m.plant(3, func(at int) {
			switch m.IntN(3) {
			case 0:
				m.change(at, 2, func(v, _ float64) float64 { return v + 25 })
			case 1:
				m.change(at, 100, func(v, _ float64) float64 { return v + 8*m.NormFloat64() })
			default:
				m.change(at, 150, func(v, _ float64) float64 { return v + 5 })
			}
		})
		m.distract(6, 10)
	}},
	{"keys-held", 1880, 5 * time.Minute, func(m *maker) {
		m.fill(func(i int) float64 {
			if d := m.day(i); m.IntN(12) == 0 && d > 0.3 && d < 0.9 {
				return 0.02 + 0.05*m.Float64()
			}
			return 0
		})
		m.plant(2, func(at int) {
			m.change(at, 30, func(v, _ float64) float64 {
				if m.IntN(2) == 0 {
					return v
				}
				return 0.03 + 0.05*m.Float64()
			})
		})
	}},
	{"scaled-wrong", 18000, 5 * time.Minute, func(m *maker) {
		level := 30.0
		m.fill(func(i int) float64 {
			if m.IntN(400) == 0 {
				level = 20 + 30*m.Float64()
			}
			return max(0, level+10*math.Sin(2*math.Pi*m.day(i))+4*m.NormFloat64())
		})
		m.plant(1, func(at int) {
			m.change(at, 1200, func(v, _ float64) float64 { return v + 35 + 6*m.NormFloat64() })
		})
	}},
}

// made builds each kind with each seed.
func made(which func(kind int) bool, seeds ...uint64) (set []*labelled) {
	for k, kind := range kinds {
		if !which(k) {
			continue
		}
		for _, seed := range seeds {
			m := &maker{Rand: rand.New(rand.NewPCG(seed, uint64(k))), step: kind.step, values: make([]float64, kind.rows)}
			kind.make(m)
			set = append(set, m.series(kind.name))
		}
	}
	return set
}

package estimate

import (
	"math"
	"strings"
	"testing"
)

type weighed struct {
	row  Row
	p    point
	gb   float64
	fits bool
}

// weighedRows is every scored row with a measured peak, and those that ran out.
func weighedRows(t testing.TB) []weighed {
	chips := publishedChips(t)
	n := &names{of: map[string]int32{}}
	var list []weighed
	for _, r := range publishedRows(t) {
		if r.Quality != "A" && r.Quality != "B" || strings.HasPrefix(r.Task, "inference") {
			continue
		}
		gb, ok := r.peakGB()
		if !ok && r.OOM != 1 {
			continue
		}
		p := describe(r, chips, n)
		p.y = math.NaN()
		m, mok := r.Setup(chips).Memory()
		if !mok {
			t.Logf("%s %s %s: no memory", r.ID, r.Model, r.Task)
			continue
		}
		p.base = math.Log(m.Total())
		if ok {
			p.y = math.Log(gb) - p.base
		}
		list = append(list, weighed{r, p, gb, ok && r.OOM != 1})
	}
	return list
}

func TestMemoryJudge(t *testing.T) {
	list := weighedRows(t)
	var rows []Row
	var pts []point
	for _, w := range list {
		if w.fits {
			rows, pts = append(rows, w.row), append(pts, w.p)
		}
	}
	e, ok := memoryKernel().examine(pts)
	if !ok {
		t.Fatal("likeness is not positive")
	}
	y := make([]float64, len(pts))
	for i := range y {
		y[i] = pts[i].y
	}
	for name, key := range map[string]func(Row) string{"stack": stackKey, "source": sourceKey} {
		m, sd := e.leftOut(groups(rows, key))
		for _, task := range []string{"", "finetune-lora", "finetune-qlora", "finetune-full", "finetune-adapter", "pretrain", "train"} {
			keep := func(i int) bool { return strings.HasPrefix(rows[i].Task, task) }
			s, p := scoreOf(m, y, keep), scoreOf(make([]float64, len(y)), y, keep)
			t.Logf("%-7s %-17s n %3.0f  %5.1f / %5.1f   physical %5.1f / %5.1f", name, task, s.n, s.mape, s.median, p.mape, p.median)
		}
		_ = sd
	}
}

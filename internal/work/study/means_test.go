package study

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

func TestShort_NamesTheLimitThatNoTrialFitsIn(t *testing.T) {
	usd := func(text string) money.Amount {
		a, err := money.Parse(text)
		must.Do(t, err)
		return a
	}
	means := Means{AtOnce: 4, GPUs: 2, Grace: 20 * time.Minute, Start: 3 * time.Second, Budget: usd("0.7"), Least: usd("0.7"),
		Currency: money.USD}
	poor := means
	poor.Least = usd("0.71")
	for _, c := range []struct {
		name        string
		spec        Spec
		means       Means
		field, says string
	}{
		{"all fit", Spec{GPUHours: 2.7, Wall: 4 * time.Second}, means, "", ""},
		{"no limits", Spec{}, means, "", ""},
		{"the saves take more", Spec{GPUHours: 2}, means, "gpu_hours", "the saves of 4 trials at once take 2.67 GPU-hours of 2"},
		{"no machine starts in time", Spec{Wall: time.Second}, means, "wall_clock", "takes 3s to start, and the search has 1s"},
		{"no trial can begin", Spec{}, poor, "usd", "$0.71, and the search has $0.70"},
	} {
		field, cause, fix := c.spec.Short(c.means)
		if field != c.field || !strings.Contains(cause, c.says) || (fix == "") != (field == "") {
			t.Errorf("%s: %q %q %q", c.name, field, cause, fix)
		}
	}
}

package pages

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// A pipeline of up to three stages after each other is drawn so narrow that a phone shows all of it; a longer one
// scrolls. No circle leaves the drawing.
func TestGraph_FewColumnsFitAPhone(t *testing.T) {
	t.Parallel()
	circle, box := regexp.MustCompile(`cx="([0-9.]+)" cy="[0-9.]+" r="([0-9.]+)"`), regexp.MustCompile(`viewBox="0 0 (\d+) `)
	number := func(text string) float64 {
		f, err := strconv.ParseFloat(text, 64)
		must.Do(t, err)
		return f
	}
	for n := 1; n <= 12; n++ {
		var stages []client.StageState
		for i := range n {
			s := client.StageState{Name: fmt.Sprintf("s%d", i), State: "done", Cost: money.Picos(5e12)}
			if i > 0 {
				s.Needs = []string{fmt.Sprintf("s%d", i-1)}
			}
			stages = append(stages, s)
		}
		text := string(graph(stages, "USD"))
		wide := number(box.FindStringSubmatch(text)[1])
		if few := strings.Contains(text, `class="few"`); few != (n <= 3) || few != (wide <= 450) {
			t.Errorf("%d stages after each other are %.0f wide; few: %v", n, wide, few)
		}
		all := circle.FindAllStringSubmatch(text, -1)
		if len(all) != n {
			t.Errorf("%d stages have %d circles", n, len(all))
		}
		for _, c := range all {
			if x, r := number(c[1]), number(c[2]); x-r < 0 || x+r > wide {
				t.Errorf("of %d stages, one at %.0f with the radius %.0f leaves a drawing of %.0f", n, x, r, wide)
			}
		}
	}
}

package sim
import ("testing";"fmt";"scrimp/internal/core";"os";"strconv";"strings")
func TestZZ(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("ZSEED"), 10, 64)
	w := drawn(seed, PlantNone)
	old := w.watch
	grep := os.Getenv("ZGREP")
	w.watch = func(e core.Event, out core.Outcome) {
		old(e, out)
		l := fmt.Sprintf("%v %s %+v act=%v", w.now.Sub(epoch), e.Body.Kind(), e.Body, out.Actions)
		for _, f := range out.Facts { l += fmt.Sprintf("\n      %T %.300v", f, fmt.Sprintf("%+v", f)) }
		for _, p := range out.Postings { l += fmt.Sprintf("\n      POST %s->%s %v %s %s %s %s", p.From, p.To, p.Amount, p.Phase, p.Rule, p.Owner.Attempt, p.Owner.Instance) }
		if strings.Contains(l, grep) { fmt.Println(l) }
	}
	w.live()
	w.check()
	fmt.Println(w.Broken)
}

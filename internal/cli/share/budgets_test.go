package share

import "testing"

// An error about a scope names the flag that gave it.
func TestWindow_NamesTheFlagOfItsScope(t *testing.T) {
	for w, want := range map[window]string{{scope: "team:text", team: "text"}: "--team", {scope: "team:text"}: "--scope",
		{scope: "all"}: "--scope", {scope: "tag:a=b", tag: "a=b"}: "--tag"} {
		if got := w.flag(); got != want {
			t.Errorf("%+v: %s, want %s", w, got, want)
		}
	}
}

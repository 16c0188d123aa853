package checkpoint_test

import (
	"testing"

	"scrimp/internal/content/checkpoint"
)

// A rank above 0 writes its outputs, and its parts if all ranks have parts.
func TestWrites_AllowsOutputsAndOwnParts(t *testing.T) {
	t.Parallel()
	const own, other = "000002-000001-000003-000000000100", "000002-000001-000004-000000000100"
	for key, want := range map[string]string{ // always, parts (only if each rank has a part), never
		"outputs/j-3/000001": "always", "objects/kept/ab": "always",
		"objects/" + own + "/ab": "parts", "shares/" + own: "parts",
		"objects/" + other + "/ab": "never", "shares/" + other: "never", "shares/" + own + "/x": "never", "objects/" + own: "never",
		"outputs/j/000001": "never", "outputs/j-4/000001": "never", "outputs/j-3": "never", "objects/kept": "never", "objects/kept/": "never",
		"objects/000002-000001/ab": "never", "claims/000003-000001": "never", "fences/000003-000001": "never", "manifests/000002-000001": "never",
		"starts/000002-000001": "never", "": "never", "shares/2-1-3-100": "never",
	} {
		for _, all := range []bool{false, true} {
			if got := checkpoint.Writes(3, "j-3", key, all); got != (want == "always" || want == "parts" && all) {
				t.Errorf("%q with parts of all ranks %v: %v, want %s", key, all, got, want)
			}
		}
		if checkpoint.Writes(0, "j-3", key, true) {
			t.Errorf("%q is asked for rank 0", key)
		}
	}
}

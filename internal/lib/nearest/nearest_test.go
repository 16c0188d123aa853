package nearest

import (
	"slices"
	"testing"
)

func TestOf(t *testing.T) {
	words := []string{"us-west-1", "us-east-1", "us-east-2", "eu-west-1", "region", "types"}
	for wrong, want := range map[string]string{"us-eats-1": "us-east-1", "regio": "region", "type": "types", "region": "region",
		"xyzzy": "", "": "", "a": ""} {
		if got := Of(wrong, words); got != want {
			t.Errorf("for %q %q, want %q", wrong, got, want)
		}
	}
	if words[0] != "us-west-1" {
		t.Error("it has put the caller's words in another order")
	}
}

func TestOrder(t *testing.T) {
	words := []string{"T4", "H200", "A100-80GB", "H100", "T4"}
	if got, want := Order("H10O", words), []string{"H100", "H200", "T4", "A100-80GB"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if words[0] != "T4" || words[4] != "T4" {
		t.Error("it has put the caller's words in another order")
	}
}

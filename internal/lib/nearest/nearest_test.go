package nearest

import "testing"

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

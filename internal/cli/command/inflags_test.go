package command

import (
	"errors"
	"testing"

	api "scrimp/client"
)

func TestInFlags_NamesFlagOfField(t *testing.T) {
	err := error(&api.Problem{Title: "it is wrong", Field: "half_life_ns", Fix: "write another"})
	if got := InFlags(err, map[string]string{"half_life_ns": "--half-life"}).Error(); got != "--half-life: it is wrong (write another)" {
		t.Errorf("it says %s", got)
	}
	if got := InFlags(err, map[string]string{"half_life_ns": ""}).Error(); got != "it is wrong (write another)" {
		t.Errorf("without a flag it says %s", got)
	}
	if other := errors.New("x"); InFlags(other, map[string]string{"a": "b"}) != other || InFlags(err, map[string]string{"a": "b"}) != err { //nolint:errorlint // the same value
		t.Error("another error is changed")
	}
}

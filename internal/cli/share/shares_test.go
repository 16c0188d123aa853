package share

import (
	"errors"
	"fmt"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/command"
)

// The flags of scrimp queue set become a request, or an error that names a flag; nothing is sent that sets nothing.
func TestQueueSet_SendsWhatFlagsSay(t *testing.T) {
	for _, c := range []struct {
		flags shareFlags
		want  string // the error, or the setting
	}{
		{shareFlags{}, "nothing is set: write --team and --weight, or --half-life"},
		{shareFlags{team: "a"}, "nothing is set for team a: write --weight, --guarantee or --borrow, or --off"},
		{shareFlags{weight: "2"}, "--team is missing: name the team, as scrimp teams lists them"},
		{shareFlags{team: "a", off: true, weight: "2"}, "--off removes the whole setting: leave the other flags out"},
		{shareFlags{team: "a", weight: "NaN"}, "--weight NaN is not a weight: write a number from 0.001 to 1000"},
		{shareFlags{team: "a", guarantee: "-1"}, `--guarantee -1: "-1" is not the price of an hour such as $2.50: write dollars an hour, as in 5 or 12.50`},
		{shareFlags{halfLife: "-1h"}, "--half-life -1h is out of bounds: write 1h to 365d"},
		{shareFlags{team: "a", guarantee: "$5"}, "a guarantee 5"},
		{shareFlags{team: "a", guarantee: "none"}, "a guarantee 0"},
		{shareFlags{team: "a", guarantee: "$2.50/h"}, "a guarantee 2.5"},
	} {
		b, _, err := c.flags.change()
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(b.Team, " guarantee ", *b.Guarantee)
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.flags, got, c.want)
		}
	}
}

func TestInFlags_NamesFlagOfField(t *testing.T) {
	err := error(&api.Problem{Title: "it is wrong", Field: "half_life_ns", Fix: "write another"})
	if got := command.InFlags(err, "half_life_ns", "half-life").Error(); got != "--half-life: it is wrong (write another)" {
		t.Errorf("it says %s", got)
	}
	if got := command.InFlags(err, "half_life_ns", "").Error(); got != "it is wrong (write another)" {
		t.Errorf("without a flag it says %s", got)
	}
	if other := errors.New("x"); command.InFlags(other, "a", "b") != other || command.InFlags(err, "a", "b") != err { //nolint:errorlint // the same value
		t.Error("another error is changed")
	}
}

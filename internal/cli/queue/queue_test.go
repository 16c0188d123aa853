package queue

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	api "scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// changeOf parses the flags of scrimp queue set and returns the change that they describe.
func changeOf(t *testing.T, args ...string) (api.SetQueueShare, error) {
	t.Helper()
	var x shareFlags
	f := pflag.NewFlagSet("set", pflag.ContinueOnError)
	x.add(f)
	must.Do(t, f.Parse(args))
	b, _, err := x.change(f.Changed)
	return b, err
}

// A command that sets nothing turned the shares on for all teams, and said that the share was set.
func TestQueueSet_RefusesWhatSetsNothing(t *testing.T) {
	for args, says := range map[string]string{
		"":                             "nothing is set",
		"--team=text":                  "nothing is set for team text",
		"--team=text --weight=":        "--weight is empty: write a number from 0.001 to 1000",
		"--team= --weight=2":           "--team is empty: write the name of a team",
		"--team=text --guarantee=":     "--guarantee is empty",
		"--team=text --borrow=":        "--borrow is empty",
		"--half-life=":                 "--half-life is empty",
		"--half-life=-1h":              "--half-life -1h:",
		"--half-life=30m":              "--half-life 30m: it is out of bounds: write 1h to 365d",
		"--team=text --half-life=3d":   "--half-life is for all teams",
		"--weight=2":                   "--team is missing",
		"--team=text --off --weight=2": "--off removes the whole setting",
		"--team=text --weight=0":       "--weight 0 is not a weight",
		"--team=text --guarantee=-1":   "--guarantee -1:",
		"--team=text --guarantee=€5":   "--guarantee €5:",
	} {
		if _, err := changeOf(t, strings.Fields(args)...); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v, want %s", args, err, says)
		}
	}
}

// The flags take amounts as scrimp prints them: with the sign of dollars, and none.
func TestQueueSet_TakesAmountsAsTheTablePrintsThem(t *testing.T) {
	for text, want := range map[string]money.Rate{"5": 5e12, "$2.50/h": 2.5e12, "$5": 5e12, "$12.50": 12.5e12, "none": 0, "0": 0} {
		b, err := changeOf(t, "--team", "text", "--guarantee", text)
		if err != nil || b.Guarantee == nil || *b.Guarantee != want {
			t.Errorf("--guarantee %s: %v, %v", text, b.Guarantee, err)
		}
	}
	b, err := changeOf(t, "--team", "text", "--borrow", "$10")
	if err != nil || b.Borrow == nil || *b.Borrow != 10e12 || b.NoBorrow {
		t.Errorf("--borrow $10: %+v, %v", b, err)
	}
	if b, err = changeOf(t, "--team", "text", "--borrow", "none"); err != nil || b.Borrow != nil || !b.NoBorrow {
		t.Errorf("--borrow none: %+v, %v", b, err)
	}
}

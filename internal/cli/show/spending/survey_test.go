package spending_test

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// The text adds up what is known, counts what is not, and never writes an unknown price as zero.
func TestSurvey_CountsUnknownPrices(t *testing.T) {
	t.Parallel()
	amount := func(s string) *money.Amount {
		a, err := money.Parse(s)
		must.Do(t, err)
		return &a
	}
	v := api.Survey{Engines: []api.SurveyEngine{{Name: "aws", Lists: true, Seen: 9}, {Name: "west", Lists: true, Error: "no\x1b[31m answer"},
		{Name: "local"}}, Resources: []api.SurveyResource{
		{ID: "i-1", Engine: "aws", Kind: "machine", Type: "g5.xlarge", Currency: money.USD, Monthly: amount("724.32"), Lacks: []string{"team", "project"},
			Evidence: "it lacks team, project", Action: "keep", Try: "aws x --dry-run", Command: "aws x"},
		{ID: "vol-1", Engine: "aws", Kind: "volume", Type: "gp3", Currency: money.USD, Monthly: amount("8"), Evidence: "no machine has it", Action: "delete"},
		{ID: "vol-2", Engine: "aws", Kind: "volume", Type: "io2", Currency: money.USD, Evidence: "no machine has it", Action: "delete"}}}
	text := spending.Survey(&v, show.Place{Width: 120})
	for _, want := range []string{"Engine aws sees 9 resources.", "Engine west was not read", "$732.32 a month at present prices. 1 resource without a known price.",
		"Try: aws x --dry-run. Do: aws x"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "$0") || strings.Contains(text, "\x1b") || strings.Contains(text, "local") {
		t.Errorf("%s", text)
	}
	v.Resources, v.Engines = nil, v.Engines[2:]
	if text := spending.Survey(&v, show.Place{}); !strings.Contains(text, "No engine can list an account") {
		t.Errorf("%s", text)
	}
}

package waste_test

import (
	"slices"
	"strings"
	"testing"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/resource"
	"scrimp/internal/test/must"
	"scrimp/internal/work/waste"
)

// A survey lists what lacks a tag and volumes that no running machine uses, with the price of 30 days by hand; an
// unknown price stays unknown.
func TestSurvey_ListsUntaggedAndUnused(t *testing.T) {
	t.Parallel()
	rate := func(s string) *money.Rate {
		r, err := money.ParseRate(s)
		must.Do(t, err)
		return &r
	}
	team := map[string]string{"Team": "vision", "project": "x"}
	volume := func(id, on string, tags map[string]string, price *money.Rate) resource.Resource {
		return resource.Resource{ID: id, Kind: resource.Volume, Type: "gp3", Region: "us-east-1", On: on, Tags: tags, Size: 100 * size.GiB,
			GigabyteMonth: price, Currency: money.USD}
	}
	machine := func(id string, stopped bool, tags map[string]string, price *money.Rate) resource.Resource {
		return resource.Resource{ID: id, Kind: resource.Machine, Type: "g5.xlarge", Region: "us-east-1", Stopped: stopped, Tags: tags,
			Hourly: price, Currency: money.USD}
	}
	list := []resource.Resource{
		machine("i-good", false, team, rate("1.006")),
		machine("i-bare", false, map[string]string{"Name": "x", "aws:cloudformation:stack-id": "y"}, rate("1.006")),
		machine("i-half", false, map[string]string{"team": "vision", "project": ""}, nil),
		machine("i-stopped", true, team, nil),
		volume("vol-good", "i-good", team, rate("0.08")),
		volume("vol-stopped", "i-stopped", team, rate("0.08")),
		volume("vol-loose", "", nil, nil),
	}
	got := map[string]string{}
	var order []string
	for _, s := range waste.Survey("aws", "aws", list, []string{"team", "project"}) {
		month := "unknown"
		if s.Monthly != nil {
			month = money.Short(*s.Monthly, money.USD)
		}
		order = append(order, s.Resource.ID)
		got[s.Resource.ID] = strings.Join([]string{month, string(s.Action), s.Evidence}, "|")
		if s.Command == "" || s.Try != s.Command+" --dry-run" || !strings.Contains(s.Command, s.Resource.ID) {
			t.Errorf("%s: %q, %q", s.Resource.ID, s.Try, s.Command)
		}
	}
	for id, want := range map[string]string{
		"i-bare":      "$724.32|keep|it lacks team, project", // 1.006 × 720
		"i-half":      "unknown|keep|it lacks project",
		"vol-stopped": "$8.00|delete|its machine i-stopped is stopped", // 100 × 0.08
		"vol-loose":   "unknown|delete|no machine has it; it lacks team, project",
	} {
		if got[id] != want {
			t.Errorf("%s: %s, want %s", id, got[id], want)
		}
	}
	if want := []string{"i-bare", "vol-stopped", "i-half", "vol-loose"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	free := waste.Survey("aws", "aws", list[:3], nil) // where no tag is required, one is enough
	if len(free) != 1 || free[0].Resource.ID != "i-bare" || free[0].Evidence != "it lacks any tag" {
		t.Errorf("%+v", free)
	}
}

//go:build !local

package aws

import (
	"strings"
	"testing"

	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/must"
)

// Doctor reports EC2's spot placement scores for each zone and set of types; a missing score does not
// fail the check.
func TestExamine_ReportsSpotPlacementScores(t *testing.T) {
	none := map[catalog.Pool]int{}
	for _, kind := range []string{"c7i.xlarge", "t3.micro", "m7i.large"} {
		none[catalog.Pool{Type: kind, Zone: "us-east-1b", Spot: true}] = 0
	}
	s := newFleetSite(t, awstest.Options{Capacity: none}, setting.Fleet{Name: "few", Types: []string{"c7i.xlarge"}},
		setting.Fleet{Name: "cpu", Types: []string{"c7i.*", "m7i.large", "t3.*"}})
	s.with.Types = append(s.with.Types, "t3.micro")
	find := func() (string, bool) {
		for _, f := range s.driver().Examine(t.Context()) {
			if f.Name == "spot placement" {
				return f.Text, f.OK
			}
		}
		return "", false
	}
	text, ok := find()
	if !ok || !strings.Contains(text, "few: not asked") || !strings.Contains(text, "cpu: us-east-1a 9,") ||
		!strings.HasSuffix(text, ", us-east-1b 1") {
		t.Errorf("%v %s", ok, text)
	}
	fault := awstest.Fault{Action: "GetSpotPlacementScores", Kind: "error", Code: "MaxConfigLimitExceeded", Status: 400,
		Message: "too many configurations"}
	must.Do(t, s.Inject(fault))
	if text, ok := find(); !ok || !strings.Contains(text, "not told") || !strings.Contains(text, "too many configurations") {
		t.Errorf("%v %s", ok, text)
	}
}

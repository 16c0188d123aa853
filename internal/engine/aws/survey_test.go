//go:build !local

package aws

import (
	"testing"

	"scrimp/internal/market/resource"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/work/waste"
)

// A survey of the account sees machines and volumes that scrimp did not make, with their prices, and says which volume
// belongs to a stopped machine.
func TestResources_SeesWhatOthersMade(t *testing.T) {
	s := newSite(t, awstest.Options{})
	d := s.driver()
	runs, stops := s.foreign(t), s.foreign(t)
	eventually.True(t, "a machine runs that can be stopped", func() bool { return s.Stop(stops) == nil })
	list, err := d.Resources(t.Context())
	must.Do(t, err)
	volumes := map[string]resource.Resource{}
	for _, r := range list {
		if r.Kind == resource.Volume {
			volumes[r.On] = r
		}
	}
	if len(list) != 4 || volumes[runs].ID == "" || volumes[stops].ID == "" {
		t.Fatalf("%+v", list)
	}
	for _, x := range waste.Survey("aws", Kind, list, nil) {
		r := x.Resource
		switch r.ID {
		case runs:
			if x.Monthly == nil || *x.Monthly != r.Hourly.Until(waste.Month) || x.Action != waste.Keep || r.Type != "c7i.xlarge" {
				t.Errorf("%+v", x)
			}
		case stops:
			if !r.Stopped || x.Monthly != nil {
				t.Errorf("%+v", x)
			}
		case volumes[stops].ID:
			if x.Action != waste.Delete {
				t.Errorf("%+v", x)
			}
		case volumes[runs].ID:
			if x.Action != waste.Keep {
				t.Errorf("%+v", x)
			}
		default:
			t.Errorf("%+v", x)
		}
	}
}

package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/resource"
	"scrimp/internal/test/must"
)

// account is an engine that lists an account.
type account struct {
	rents
	seen []resource.Resource
	err  error
}

func (a *account) Resources(context.Context) ([]resource.Resource, error) { return a.seen, a.err }

// The survey has what an engine sees without tags, with the price of a month, and says which engine was not read.
func TestWasteSurvey_ListsWhatTheEngineSees(t *testing.T) {
	t.Parallel()
	price, err := money.ParseRate("0.08")
	must.Do(t, err)
	a := &account{seen: []resource.Resource{
		{ID: "vol-1", Kind: resource.Volume, Size: 100 * size.GiB, GigabyteMonth: &price, Currency: money.USD},
		{ID: "i-1", Kind: resource.Machine, Tags: map[string]string{"owner": "ann"}},
		{ID: "i-2", Kind: resource.Machine}}}
	w := newWorldOf(t, a, func(*Options) {})
	var v client.Survey
	w.must("GET", "/v1/waste/survey", nil, &v)
	if len(v.Resources) != 2 || v.Resources[0].ID != "vol-1" || v.Resources[1].ID != "i-2" {
		t.Fatalf("%+v", v)
	}
	if m := v.Resources[0].Monthly; m == nil || money.Short(*m, money.USD) != "$8.00" || v.Resources[1].Monthly != nil {
		t.Errorf("%+v", v.Resources)
	}
	if e := v.Engines; len(e) != 1 || e[0].Seen != 3 || !e[0].Lists || e[0].Error != "" {
		t.Errorf("%+v", e)
	}
	a.seen, a.err = nil, errors.New("the account is away")
	w.must("GET", "/v1/waste/survey", nil, &v)
	if e := v.Engines; len(v.Resources) != 0 || len(e) != 1 || !strings.Contains(e[0].Error, "away") {
		t.Errorf("%+v", v)
	}
}

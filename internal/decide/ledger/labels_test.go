package ledger

import (
	"maps"
	"testing"
)

// Environment and model version are labels beside the tags. Without them the labels are the tags.
func TestLabels_IncludeEnvironmentAndModelVersion(t *testing.T) {
	o := Owner{Tags: map[string]string{"ticket": "7"}}
	if !maps.Equal(o.Labels(), o.Tags) {
		t.Errorf("%v", o.Labels())
	}
	o.Environment, o.ModelVersion = "research", "v3"
	want := map[string]string{"ticket": "7", "environment": "research", "model_version": "v3"}
	if !maps.Equal(o.Labels(), want) || len(o.Tags) != 1 {
		t.Errorf("%v of %v", o.Labels(), o.Tags)
	}
	p := Posting{Owner: o}
	w := DimensionsOf(p, "ann", "training")
	if w.Tag("environment") != "research" || w.Tag("model_version") != "v3" || w.Tag("ticket") != "7" {
		t.Errorf("%+v", w)
	}
	if ByTag("environment")(o) != "research" {
		t.Error("a level by environment does not see it")
	}
}

package shape_test

import (
	"testing"

	"scrimp/internal/estimate/shape"
)

// A published model has the context of its config.json, a model's own file wins over it, and an unknown model has none.
func TestContext_IsTheLongestSequenceOfAModel(t *testing.T) {
	known := 0
	for _, m := range shape.Models() {
		if most, ok := m.Context(); ok {
			known++
			if !m.Text() || most < 512 || most > 200_000 {
				t.Errorf("%s takes %v tokens", m.Name, most)
			}
		}
	}
	if known != 72 {
		t.Errorf("the context of %d models is known: a name is misspelt", known)
	}
	m, _ := shape.Named("gpt2")
	if most, ok := m.Context(); !ok || most != 1024 {
		t.Errorf("gpt2 takes %v tokens, %v", most, ok)
	}
	m.Most = 4096
	if most, _ := m.Context(); most != 4096 {
		t.Errorf("a gpt2 of 4,096 positions takes %v tokens", most)
	}
	if most, ok := (shape.Model{Name: "mine"}).Context(); ok {
		t.Errorf("an unknown model takes %v tokens", most)
	}
}

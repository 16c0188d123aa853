package group

import (
	"testing"

	"scrimp/internal/job/spec"
)

// Another address, or another name by which the program finds it, is another program. What only says how an input is
// brought is not.
func TestProgram_HasTheAddressesOfData(t *testing.T) {
	t.Parallel()
	of := func(data ...spec.Data) string {
		text, no := Program(spec.Job{Command: "c", Data: data}, "", "p", nil)
		if no != nil {
			t.Fatalf("%+v", no)
		}
		return text
	}
	input := spec.Data{Name: "a", Path: "s3://bucket/a"}
	if of(input) != of(spec.Data{Name: "a", Path: "s3://bucket/a", Size: 5, Region: "r", Stream: true}) {
		t.Error("size, region and stream change the program")
	}
	for _, other := range [][]spec.Data{nil, {{Name: "b", Path: "s3://bucket/a"}}, {{Name: "a", Path: "s3://bucket/b"}}, {input, input}} {
		if of(input) == of(other...) {
			t.Errorf("a stage with %v takes the outputs of one with %v", other, input)
		}
	}
}

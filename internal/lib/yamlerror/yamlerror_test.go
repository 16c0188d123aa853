package yamlerror_test

import (
	"bytes"
	"testing"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/lib/yamlerror"
)

// An error names the file's field and never the Go type, even one without a name.
func TestInOneLine_NamesNoGoType(t *testing.T) {
	t.Parallel()
	var v struct {
		Reserved struct {
			Count int    `yaml:"count"`
			Paid  string `yaml:"paid"`
		} `yaml:"reserved"`
	}
	d := yaml.NewDecoder(bytes.NewBufferString("reserved: {count: 1, price: 2}\n"))
	d.KnownFields(true)
	err := d.Decode(&v)
	if err == nil {
		t.Fatal("an unknown field is accepted")
	}
	if is := yamlerror.InOneLine(err, nil); is != "line 1: price is unknown there" {
		t.Errorf("it says %q", is)
	}
}

//go:build !local

package setting

import (
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/engine"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// reads reads the settings of an engine with the given lines besides region and types.
func reads(t *testing.T, text string) (With, error) {
	t.Helper()
	var s engine.Setting
	must.Do(t, yaml.Unmarshal([]byte("with:\n  region: eu-west-1\n  types: [g5.xlarge]\n"+text), &s))
	return Read(&s)
}

func TestBills_AreReadWithTheirDefaults(t *testing.T) {
	lane.Component(t, "whole")
	for text, want := range map[string]engine.Export{
		"  bills: {bucket: my-exports}\n": {Address: "s3://my-exports?region=eu-west-1", Bucket: "my-exports", Every: 24 * time.Hour},
		"  profile: books\n  bills: {bucket: my-exports, prefix: /cur/daily/, region: us-east-1, every: 6h}\n": {
			Address: "s3://my-exports?profile=books&region=us-east-1", Bucket: "my-exports", Prefix: "cur/daily", Every: 6 * time.Hour},
		"  bills: {bucket: b-1, prefix: 'a b/x', endpoint: 'http://127.0.0.1:9000'}\n": {},
	} {
		w, err := reads(t, text)
		switch {
		case want.Address == "":
			if err == nil || !strings.Contains(err.Error(), "prefix") {
				t.Errorf("%s: %v", text, err)
			}
		case err != nil || w.Export == nil || *w.Export != want:
			t.Errorf("%s: %+v, %v", text, w.Export, err)
		}
	}
	if w, err := reads(t, ""); err != nil || w.Export != nil {
		t.Errorf("%+v, %v", w.Export, err)
	}
}

func TestBills_AreRefusedWithTheFix(t *testing.T) {
	lane.Component(t, "whole")
	for text, want := range map[string]string{
		"{prefix: cur}":                                           "bills has no bucket",
		"{bucket: My_Exports}":                                    `bucket is "My_Exports"`,
		"{bucket: my-exports/cur}":                                "it is not the address of a bucket",
		"{bucket: my-exports, every: 59m}":                        "every is 59m0s: write 1h to 720h",
		"{bucket: my-exports, every: 721h}":                       "write 1h to 720h",
		"{bucket: my-exports, every: daily}":                      `"daily" is not a duration`,
		"{bucket: my-exports, region: Frankfurt}":                 `region is "Frankfurt"`,
		"{bucket: my-exports, endpoint: 'http://key:secret@h:1'}": "write a URL",
		"{bucket: my-exports, prefix: a/../b}":                    `".."`,
		"{bucket: my-exports, folder: cur}":                       "folder is not known",
	} {
		_, err := reads(t, "  bills: "+text+"\n")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "key:secret") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

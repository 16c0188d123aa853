package artifacts_test

import (
	"testing"

	"scrimp/internal/server/artifacts"
	"scrimp/internal/test/must"
)

// A job file may name the allowed stores and paths within them, and nothing else, in any notation.
func TestStores_AllowListedStoresOnly(t *testing.T) {
	t.Parallel()
	s, err := artifacts.NewStores(false, []string{"s3://models?region=eu-west-1&prefix=team", "file:///srv/keep",
		"s3://own?endpoint=http://10.0.0.9:9000", "gs://models?prefix=team", "azblob://models?account=lab"}, "/srv/keep/scrimp")
	must.Do(t, err)
	for address, want := range map[string]bool{
		"": true,
		"s3://models?region=eu-west-1&prefix=team":                                 true,
		"s3://models?prefix=team%2Fred&region=eu-west-1":                           true,
		"s3://models?region=eu-west-1":                                             false,
		"s3://models?region=eu-west-1&prefix=teams":                                false,
		"s3://models?region=eu-west-1&prefix=team/../other":                        false,
		"s3://models?region=eu-west-1&prefix=team&profile=admin":                   false,
		"s3://models?region=eu-west-1&prefix=team&endpoint=http://169.254.169.254": false,
		"s3://other?region=eu-west-1&prefix=team":                                  false,
		"s3://own?endpoint=http://10.0.0.9:9000":                                   true,
		"s3://own?endpoint=http://10.0.0.9:9000&endpoint=http://evil":              false,
		"s3://own?endpoint=http://evil":                                            false,
		"s3://user@own?endpoint=http://10.0.0.9:9000":                              false,
		"gs://models?prefix=team/red":                                              true,
		"gs://models?prefix=team&endpoint=http://evil":                             false,
		"gs://models?prefix=teams":                                                 false,
		"gs://other?prefix=team":                                                   false,
		"azblob://models?account=lab&prefix=a":                                     true,
		"azblob://models?account=other":                                            false,
		"azblob://models":                                                          false,
		"azblob://models?account=lab&endpoint=https://x.y":                         false,
		"file:///srv/keep":                                                         true,
		"file:///srv/keep/a?prefix=b":                                              true,
		"file:///srv/keepers":                                                      false,
		"file:///srv/keep/../../etc":                                               false,
		"file:///srv/keep?prefix=../../etc":                                        false,
		"file:///srv/keep/%2e%2e/%2e%2e/etc":                                       false,
		"file:///srv/keep/scrimp":                                                  false,
		"file:///srv/keep?prefix=scrimp/folders":                                   false,
		"file:///":                                                                 false,
		"file://elsewhere/srv/keep":                                                false,
		"http://models":                                                            false,
		"mem://":                                                                   false,
	} {
		if got := s.Allows(address); got != want {
			t.Errorf("%q is allowed: %v", address, got)
		}
	}
	if !s.OfJob("owner", "file:///anywhere") || s.OfJob("ann", "file:///anywhere") {
		t.Error("the owner of the data folder may name any store, and nobody else")
	}
	none, err := artifacts.NewStores(false, nil, "/srv")
	if err != nil || none.Allows("file:///tmp/x") || !none.Allows("") {
		t.Error("where none is allowed one is taken")
	}
	for _, wrong := range []string{"/plain", "http://x", "s3://", "gs://", "azblob://?account=a", "file:relative", "s3://user:pass@b"} {
		if _, err := artifacts.NewStores(false, []string{wrong}, "/srv"); err == nil {
			t.Errorf("--stores %s is taken", wrong)
		}
	}
}

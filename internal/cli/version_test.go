package cli

import (
	"runtime/debug"
	"testing"
)

// A build from a checkout names its commit; a release or a build with a given version prints just that.
func TestVersion_NamesCommit(t *testing.T) {
	t.Parallel()
	defer func(v string) { Version = v }(Version)
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}}}
	for _, c := range []struct {
		version string
		info    *debug.BuildInfo
		want    string
	}{
		{"1.0.0-dev", info, "1.0.0-dev+0123456789ab"}, {"1.0.0-dev", nil, "1.0.0-dev"},
		{"1.0.0-dev", &debug.BuildInfo{}, "1.0.0-dev"}, {"1.0.0", info, "1.0.0"}, {"1.0.0-dev+x", info, "1.0.0-dev+x"},
	} {
		Version = c.version
		if got := version(c.info); got != c.want {
			t.Errorf("%s with %v is %s, want %s", c.version, c.info, got, c.want)
		}
	}
}

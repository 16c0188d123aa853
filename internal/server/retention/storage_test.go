package retention_test

import (
	"encoding/json"
	"slices"
	"testing"

	"scrimp/internal/server/retention"
)

// Each absolute path and address in a job file counts, also within a command, with spaces if it is quoted.
func TestPathsOf_FindsPathsWithinTexts(t *testing.T) {
	for text, want := range map[string][]string{
		`{"command":"python train.py --data=/data/imagenet --out ~/runs; cat '/my files/x' $HOME/y"}`: {"/data/imagenet", "/my files/x", "~/runs", "~/y"},
		`{"env":{"D":"/with space/d","N":"4"},"data":[{"path":"s3://b/corpus"}]}`:                     {"/with", "/with space/d", "s3://b/corpus"},
		`{"args":["python3","/a:/b","x/y","1/2","a / b"]}`:                                            {"/a", "/a:/b", "/b"},
		`{"checkpoint":{"store":"file:///srv/ckpt?prefix=a"}}`:                                        {"file:///srv/ckpt?prefix=a"},
		`not JSON`: nil, `null`: nil, `{"command":"exec true"}`: nil,
	} {
		if got := retention.PathsOf(json.RawMessage(text)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

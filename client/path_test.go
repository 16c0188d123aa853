package client

import (
	"net/url"
	"testing"
)

// The address of a route has the parameters that have a value alone: the server refuses the others.
func TestPath_LeavesOutEmptyParameters(t *testing.T) {
	q := url.Values{"team": {""}, "since": {"7d"}, "tag": {"a=", ""}}
	if got := Path("/v1/waste", q); got != "/v1/waste?since=7d&tag=a%3D" {
		t.Error(got)
	}
	if got := Path("/v1/waste", url.Values{"team": {""}}); got != "/v1/waste" {
		t.Error(got)
	}
}

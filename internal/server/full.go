package server

import (
	"slices"
	"strings"
)

// needsRoom reports whether the response on a route would block until the log can be written, because the
// server never confirms what a crash could undo. Users get an error at once instead; agents wait and retry.
func needsRoom(path string) bool {
	return !strings.HasPrefix(path, "/v1/agent/") &&
		!slices.Contains([]string{"/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/server",
			"/v1/server/stop"}, path)
}

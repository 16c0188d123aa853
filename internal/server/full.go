package server

import (
	"slices"
	"strings"
)

// waitsForRoom reports whether the answer of a route would come only once the log can be written: nobody
// hears what a crash could take back. People are told at once instead; agents wait and ask again.
func waitsForRoom(path string) bool {
	return !strings.HasPrefix(path, "/v1/agent/") &&
		!slices.Contains([]string{"/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/server",
			"/v1/server/stop"}, path)
}

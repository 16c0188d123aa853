package submit

import (
	"net/http"

	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// refuseWhenFull refuses submissions while the log has so little room left that it is reserved for existing jobs. With
// PostgreSQL, the log is on another disk.
func (d *Service) refuseWhenFull(w http.ResponseWriter, r *http.Request) bool {
	if !d.LogHere {
		return false
	}
	err := d.Room.Crowded()
	if err == nil {
		return false
	}
	auth.CallOf(r).Written = true // a record would use that room
	w.Header().Set("Retry-After", "5")
	reply.Problem(w, http.StatusInsufficientStorage, "the server's disk is nearly full",
		"make room on it and submit again with the same key: the jobs that are there go on", err)
	return true
}

package groups

import "time"

// RunMove is a planner's proposal for a run of a schedule.
type RunMove struct {
	Saw    time.Time `json:"saw,omitzero"`     // the due time that the planner knew
	Due    time.Time `json:"due,omitzero"`     // when the run was due
	Missed int       `json:"missed,omitempty"` // earlier due times that passed while the server was down
	Next   time.Time `json:"next"`             // the next due time
}

package groups

import "time"

// RunMove is what a planner proposes for a run of a schedule.
type RunMove struct {
	Saw    time.Time `json:"saw,omitzero"`     // when the planner believed the schedule to be due next
	Due    time.Time `json:"due,omitzero"`     // when the run was due
	Missed int       `json:"missed,omitempty"` // earlier due times that passed while the server was down
	Next   time.Time `json:"next"`             // when the schedule is due after it
}

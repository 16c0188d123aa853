package groups

import (
	"time"

	"scrimp/internal/work/retrain"
)

// RunMove is a planner's proposal for a run of a schedule.
type RunMove struct {
	Saw    time.Time `json:"saw,omitzero"`     // the due time that the planner knew
	Due    time.Time `json:"due,omitzero"`     // when the run was due
	Missed int       `json:"missed,omitempty"` // earlier due times that passed while the server was down
	Next   time.Time `json:"next"`             // the next due time, or when a run that waits is looked at again
	// Since is when a run was due that waits for a price; zero: none waits.
	Since time.Time `json:"since,omitzero"`
	// Checks are what the conditions of the schedule compared.
	Checks []retrain.Check `json:"checks,omitempty"`
}

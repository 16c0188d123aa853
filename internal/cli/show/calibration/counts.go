package calibration

import "fmt"

// StageCounts divides the stages of a run by how far they are: each stage counts once.
type StageCounts struct {
	Ran      int `json:"ran"`       // in this run, to their end
	Running  int `json:"running"`   // on a machine, or keeping their outputs
	Reused   int `json:"reused"`    // from an earlier run
	NotBegun int `json:"not_begun"` // without a machine so far: waiting or skipped
	Failed   int `json:"failed"`
}

// Add counts a stage in a state. began says that its job had a machine.
func (c *StageCounts) Add(state string, began bool) {
	switch {
	case state == "reused":
		c.Reused++
	case state == "failed":
		c.Failed++
	case state == "done":
		c.Ran++
	case began && (state == "running" || state == "keeping"):
		c.Running++
	default:
		c.NotBegun++
	}
}

// Text formats the counts with their sum.
func (c StageCounts) Text() string {
	return fmt.Sprintf("%d: %d ran, %d running, %d reused, %d not begun, %d failed",
		c.Ran+c.Running+c.Reused+c.NotBegun+c.Failed, c.Ran, c.Running, c.Reused, c.NotBegun, c.Failed)
}

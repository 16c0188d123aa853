package core

import "scrimp/internal/decide/state"

// imageOf is the container image that the job runs in, its work being done that way; "": the
// engine's own.
func imageOf(j *Job, variant string) string { return j.Terms().Need.RequirementsOf(variant).Image }

// hasImage reports whether the machine was rented with the image of the job, its work being done that
// way: one with another is not given to it, nor one with an image to a job that names none.
func (m *Machine) hasImage(on *state.Machine, j *Job, variant string) bool {
	return on.Image == imageOf(j, variant) || m.faults.Images
}

// hasSomeImage reports whether that is so of any way of doing the work.
func (m *Machine) hasSomeImage(on *state.Machine, j *Job) bool {
	variants := j.Terms().Need.Variants
	for i := range variants {
		if m.hasImage(on, j, variants[i].Name) {
			return true
		}
	}
	return m.hasImage(on, j, "")
}

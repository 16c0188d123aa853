package placement

import "scrimp/internal/decide/state"

// ImageOf is the container image that the job runs in, its work being done that way; "": the
// engine's own.
func ImageOf(j *state.Job, variant string) string {
	return j.Terms().Need.RequirementsOf(variant).Image
}

// hasImage reports whether the machine was rented with the image of the job, its work being done that
// way: one with another is not given to it, nor one with an image to a job that names none.
func (mk *Market) hasImage(on *state.Machine, j *state.Job, variant string) bool {
	return on.Image == ImageOf(j, variant) || mk.Faults.Images
}

// hasSomeImage reports whether that is so of any way of doing the work.
func (mk *Market) hasSomeImage(on *state.Machine, j *state.Job) bool {
	variants := j.Terms().Need.Variants
	for i := range variants {
		if mk.hasImage(on, j, variants[i].Name) {
			return true
		}
	}
	return mk.hasImage(on, j, "")
}

package sim

// boots makes a rented machine run the image of its launch.
func (w *World) boots(i *instance, image string) {
	if w.fault == FaultNoImage {
		image = ""
	}
	if image != "" && !i.offer.Images {
		w.breaks("image: %s of %s is rented with %s, and its provider takes no images", i.id, i.key, image)
	}
	i.image = image
}

// checkImage verifies that a program starts in the image that its job names, or in none if the job names none.
func (a *agent) checkImage() {
	w := a.w
	t := w.attempt(a.attempt)
	if t == nil {
		return
	}
	wants := a.job.terms.Need.RequirementsOf(t.Variant()).Image
	if wants != a.i.image {
		w.breaks("image: %s of %q begins on %s, which was rented with %q", a.attempt, wants, a.i.id, a.i.image)
	}
	if wants != "" {
		w.saw("a program runs in an image")
	}
}

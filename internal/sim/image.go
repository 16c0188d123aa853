package sim

// boots has a machine that is rented run the image of its launch.
func (w *World) boots(i *instance, image string) {
	if w.fault == FaultNoImage {
		image = ""
	}
	if image != "" && !i.offer.Images {
		w.breaks("image: %s of %s is rented with %s, and its provider takes no images", i.id, i.key, image)
	}
	i.image = image
}

// checkImage holds that a program begins where the image runs that its job names, and a program
// without one where none does.
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

package sim

// images reports whether some machines of this life run images that some of its jobs name.
func (w *World) images() bool { return w.extra != nil && !w.calm5() && !w.plain && w.seed/3%5 == 2 }

// drawImages enables images on the machines of the first zone and of some others.
func (w *World) drawImages() {
	for n, z := range w.zones {
		z.offer.Images = w.images() && (n == 0 || (w.seed/15+uint64(n))%2 == 0)
		z.firmOffer.Images = z.offer.Images
	}
}

// namesImage sets the image of the nth job's program, or none. A variant may name another.
func (w *World) namesImage(n int) {
	if !w.images() {
		return
	}
	images := []string{"", "pytorch/pytorch:2.4.0", "ghcr.io/lab/train:v3"}
	at := w.seed/9 + uint64(n)
	need := &w.jobs[n].terms.Need
	need.Image = images[at%3]
	for v := range need.Variants {
		need.Variants[v].Image = images[(at+w.seed/45%2)%3]
	}
}

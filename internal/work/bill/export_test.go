package bill

// Held returns how many bytes of the file the reader holds.
func (r *Reader) Held() (n int) {
	for _, c := range r.ahead {
		for _, f := range c.fields {
			n += len(f)
		}
	}
	if c, ok := r.from.(*cells); ok {
		for _, l := range append(c.back[:len(c.back):len(c.back)], c.spanned...) {
			n += len(l.text)
		}
	}
	return n
}

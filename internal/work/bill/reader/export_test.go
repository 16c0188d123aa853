package reader

// Held returns how many bytes of the file the reader holds.
func (r *Reader) Held() (n int) {
	for _, c := range r.ahead {
		for _, f := range c.Fields {
			n += len(f)
		}
	}
	return n
}

package telemetry

// Most1Byte reports whether a value takes one byte.
func (k Kind) Most1Byte() bool { return k.form != wide }

// Step returns the smallest stored difference.
func (k Kind) Step() float64 { return 1 / k.scale }

// Rough reports whether a value is stored within 5 % only.
func (k Kind) Rough() bool { return k.form == rough }

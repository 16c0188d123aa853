package telemetry

// Most1Byte reports whether a value is kept in one byte.
func (k Kind) Most1Byte() bool { return k.form != wide }

// Step is the smallest difference that is kept.
func (k Kind) Step() float64 { return 1 / k.scale }

// Rough reports whether a value is kept within 5 % only.
func (k Kind) Rough() bool { return k.form == rough }

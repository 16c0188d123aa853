package attempt

import "errors"

// Reasons for an attempt to end before its last report.
var (
	ErrOver = errors.New("the attempt is over")
	// ErrDissolved reports that the server ends the attempt on all machines of the gang and starts
	// the next one.
	ErrDissolved = errors.New("the gang is dissolved")
)
